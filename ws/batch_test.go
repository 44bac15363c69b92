package ws_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/pgtest"
)

// batchFrame is an event_batch.
type batchFrame struct {
	Type         string
	ID           string
	Subscription delivery.Ref
	Events       []frame
}

func (c *client) batch(want ...int64) batchFrame {
	c.t.Helper()
	f := c.next()
	var b batchFrame
	if err := json.Unmarshal([]byte(f.raw), &b); err != nil || b.Type != "event_batch" || len(b.Events) != len(want) {
		c.t.Fatalf("want a batch of %v, got %d events: %.300s", want, len(b.Events), f.raw)
	}
	for i, e := range b.Events {
		if e.Sequence != want[i] || e.Subscription.ID != b.Subscription.ID {
			c.t.Fatalf("want a batch of %v, got %.300s", want, f.raw)
		}
	}
	return b
}

func (n *node) positionIs(name string, want int64) {
	n.t.Helper()
	eventually(n.t, "the position is right", func() bool { return n.position(name) == want })
}

func TestBatchesAreAcknowledgedByOneAck(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", "", `{"firstEvent":"oldest","batch":true,"batchTimeout":"500ms","readAhead":4}`)
	n.append(10)
	c := n.dial("/ws?namespace=default&name=sub")
	first := c.batch(1, 2, 3, 4)
	c.expectNothing() // one batch at a time
	c.send(`{"type":"ack","id":%q,"subscription":{"id":%q}}`, first.ID, first.Subscription.ID)
	second := c.batch(5, 6, 7, 8)
	n.positionIs("sub", 4)

	c.send(`{"type":"ack","id":%q}`, first.ID)
	c.expectError("not in flight")
	c.send(`{"type":"nack","id":%q}`, second.ID)
	again := c.batch(5, 6, 7, 8)
	if again.ID == second.ID {
		t.Error("a batch that comes again has the same id")
	}
	// Some of it one by one: what is left comes again.
	c.send(`{"type":"ack","id":%q}`, again.Events[0].ID)
	c.send(`{"type":"nack","id":%q}`, again.ID)
	rest := c.batch(6, 7, 8, 9)
	c.send(`{"type":"ack"}`) // the oldest in flight is the batch
	last := c.batch(10)
	n.positionIs("sub", 9)
	c.leave()
	if rest.ID == last.ID {
		t.Error("two batches have one id")
	}

	// Unacknowledged, it comes to the next connection; one acknowledgement an event does as well.
	c = n.dial("/ws?namespace=default&name=sub")
	events := c.batch(10).Events
	n.append(3)
	c.expectNothing()
	c.send(`{"type":"ack","id":%q}`, events[0].ID)
	c.batch(11, 12, 13)
}

func TestBatchesOfEphemeralAndAutoackSubscriptions(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	c := n.dial("/ws?namespace=default&ephemeral&batch&readahead=3&autoack")
	n.append(7)
	c.batch(1, 2, 3)
	c.batch(4, 5, 6)
	c.batch(7)

	d := n.dial("/ws")
	d.send(`{"type":"start","namespace":"default","ephemeral":true,"options":{"firstEvent":"oldest","batch":true}}`)
	d.batch(upTo(7)...)

	n.subscribe("plain", "", `{"firstEvent":"oldest"}`)
	e := n.dial("/ws")
	e.send(`{"type":"start","namespace":"default","name":"plain","options":{"batch":true}}`)
	e.expectError("options")

	n.subscribe("auto", "", `{"firstEvent":"oldest","batch":true,"readAhead":5}`)
	f := n.dial("/ws?namespace=default&name=auto&autoack")
	f.batch(1, 2, 3, 4, 5)
	f.batch(6, 7)
	n.positionIs("auto", 7)
}

// A subscription that changes its transport ends for its connections, and goes on where it was.
func TestChangedTransportEndsSessions(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	sub := n.subscribe("sub", "", `{"firstEvent":"oldest"}`)
	n.append(2)
	c := n.dial("/ws?namespace=default&name=sub")
	c.ack(c.expect(1)[0])
	c.expect(2)
	_, _, err := n.manager.Put(context.Background(), delivery.SubscriptionRequest{
		Namespace: "default", Name: "sub", Transport: "webhooks", Options: json.RawMessage(`{"url":"http://127.0.0.1:1"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	c.expectError("another transport")
	n.positionIs("sub", 1)
	if _, err := n.manager.Prepare(context.Background(), delivery.StartRequest{Namespace: "default", Name: sub.ID.String()}); err == nil {
		t.Error("a webhook was started over a connection")
	}
	if sub.ID == uuid.Nil {
		t.Error("no id")
	}
}
