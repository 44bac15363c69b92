package webhook_test

import (
	"context"
	"database/sql"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// The lease goes to another owner while the last try is under way: the dead letter cannot be written then. It is written when the lease is back, and the
// position does not pass the event before.
func TestDeadLetterOutlivesALostLease(t *testing.T) {
	ctx, url := context.Background(), pgtest.New(t)
	raw, err := sql.Open("postgres", url)
	must(t, err)
	defer raw.Close()
	n := newNode(t, url, nil)
	trying, goOn := make(chan struct{}), make(chan struct{})
	var tries atomic.Int64
	r := newReceiver(t, func(w http.ResponseWriter, p posted) {
		if p.list[0] != 1 {
			return
		}
		if tries.Add(1) == 2 {
			close(trying)
			<-goOn
		}
		fail(w)
	})
	sub := n.put("hook", r.URL, fmt.Sprintf(quick, 1))
	n.append(2)
	<-trying
	var epoch int64
	err = raw.QueryRowContext(ctx, `UPDATE leases SET owner = gen_random_uuid(), epoch = epoch + 1, expires = now() + interval '1 second'
		WHERE name = $1 RETURNING epoch`, store.LeaseSubscription(sub.ID)).Scan(&epoch)
	must(t, err)
	_, err = n.db.ClaimSubscription(ctx, sub.ID, epoch)
	must(t, err)
	close(goOn)
	eventually(t, "both events are settled", func() bool {
		stored, err := n.db.Subscription(ctx, "default", "hook") // read before the dead letters are
		s := n.status("hook")
		if err == nil && stored.Position >= 1 && s.DeadLetters == 0 {
			t.Fatal("the position has passed an event that is nowhere")
		}
		return s.DeadLetters == 1 && s.Position == 2
	})
	if l := n.deadLetters(sub)[0]; l.Sequence != 1 {
		t.Errorf("the dead letter is %+v", l)
	}
}
