package ws_test

import (
	"context"
	"testing"

	"github.com/pactwire/pactwire/internal/pgtest"
)

// The status is the same whichever replica is asked.
func TestStatusAcrossReplicas(t *testing.T) {
	url := pgtest.New(t)
	a, b := newNode(t, url), newNode(t, url)
	a.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":5}`)
	a.append(9)
	active := a.dial("/ws?namespace=default&name=sub")
	got := active.expect(1, 2, 3, 4, 5)
	standby := b.dial("/ws?namespace=default&name=sub")
	active.ack(got[0])
	active.expect(6)
	for _, n := range []*node{a, b} {
		eventually(t, "two consumers, five in flight, position 1", func() bool {
			s, err := n.manager.Status(context.Background(), must(n.db.Subscription(context.Background(), "default", "sub")))
			return err == nil && s.Consumers == 2 && s.InFlight == 5 && s.Position == 1 && s.Lag == 8
		})
	}
	active.leave()
	standby.expect(2, 3, 4, 5, 6)
	for _, n := range []*node{a, b} {
		eventually(t, "one consumer is left", func() bool {
			s, err := n.manager.Status(context.Background(), must(n.db.Subscription(context.Background(), "default", "sub")))
			return err == nil && s.Consumers == 1 && s.InFlight == 5
		})
	}
}
