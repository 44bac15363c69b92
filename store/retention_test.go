package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jmoiron/sqlx"
)

// openHistory makes a namespace with n events.
func openHistory(t *testing.T, n int) *DB {
	t.Helper()
	db := openForTest(t, Config{})
	ctx := t.Context()
	if _, err := db.EnsureChain(ctx, "dev", big.NewInt(1), common.Hash{1}); err != nil {
		t.Fatal(err)
	}
	if err := db.EnsureNamespace(ctx, "default", "dev"); err != nil {
		t.Fatal(err)
	}
	appendSome(t, db, n)
	return db
}

func appendSome(t *testing.T, db *DB, n int) {
	t.Helper()
	events := make([]Event, n)
	for i := range events {
		events[i] = Event{Namespace: "default", Type: "test", Reference: NewID(), Topic: "t"}
	}
	if err := db.AppendEvents(t.Context(), events); err != nil {
		t.Fatal(err)
	}
}

func subscribeAt(t *testing.T, db *DB, name string, position int64) Subscription {
	t.Helper()
	s := Subscription{Namespace: "default", Name: name, Transport: "websockets", Filter: json.RawMessage(`{}`)}
	err := db.CreateSubscription(t.Context(), &s, func(int64) (json.RawMessage, int64) { return json.RawMessage(`{}`), position })
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// pruneAll prunes until there is nothing more, and returns what the last call found.
func pruneAll(t *testing.T, db *DB, keep Retention) (last Pruned, removed int64) {
	t.Helper()
	for more := true; more; more = last.More {
		var err error
		if last, err = db.PruneHistory(t.Context(), "default", keep); err != nil {
			t.Fatal(err)
		}
		if last.Removed > prunePiece {
			t.Errorf("%d events went at once", last.Removed)
		}
		removed += last.Removed
	}
	return last, removed
}

// all reads the history behind a sequence.
func all(t *testing.T, db *DB, after int64) []int64 {
	t.Helper()
	var list []int64
	for {
		page, err := db.EventsAfter(t.Context(), EventQuery{Namespace: "default", After: after, Limit: 100, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page.Events {
			list = append(list, e.Sequence)
		}
		if page.Through == after {
			return list
		}
		after = page.Through
	}
}

func TestRetentionByCountWaitsForSubscriptions(t *testing.T) {
	t.Parallel()
	db := openHistory(t, 5000)
	slow := subscribeAt(t, db, "slow", 3000)
	last, removed := pruneAll(t, db, Retention{Count: 100})
	if removed != 3000 || last.HeldBack != 1900 {
		t.Errorf("%d events went, %d are held back", removed, last.HeldBack)
	}
	if err := db.MoveSubscriptions(t.Context(), []Move{{ID: slow.ID, Position: 4950}})[0]; err != nil {
		t.Fatal(err)
	}
	if last, removed = pruneAll(t, db, Retention{Count: 100}); removed != 1900 || last.HeldBack != 0 || last.Kept != 100 {
		t.Errorf("%d events went, %+v", removed, last)
	}
	if n, err := db.HistoryEvents(t.Context(), "default"); err != nil || n != 100 {
		t.Errorf("%d events are left (%v)", n, err)
	}
	// From the beginning means from what is left, for whoever is new and for whoever was far behind.
	if s := subscribeAt(t, db, "new", -1); s.Position != 4900 {
		t.Errorf("a new subscription starts at %d", s.Position)
	}
	if list := all(t, db, -1); len(list) != 100 || list[0] != 4901 || list[99] != 5000 {
		t.Errorf("the history from the beginning: %d events", len(list))
	}
	appendSome(t, db, 10)
	if list := all(t, db, 4995); len(list) != 15 {
		t.Errorf("%d events behind 4995", len(list))
	}
	if _, removed = pruneAll(t, db, Retention{Count: 50, Force: true}); removed != 60 {
		t.Errorf("%d events went by force", removed)
	}
	if size, err := db.HistorySize(t.Context()); err != nil || size <= 0 {
		t.Errorf("the size is %d (%v)", size, err)
	}
}

func TestRetentionByAge(t *testing.T) {
	t.Parallel()
	db := openHistory(t, 300)
	if _, err := db.db.ExecContext(t.Context(), `UPDATE events SET created = now() - interval '3 hours' WHERE sequence <= 123`); err != nil {
		t.Fatal(err)
	}
	if _, removed := pruneAll(t, db, Retention{Age: 4 * time.Hour}); removed != 0 {
		t.Errorf("%d events went that are not old enough", removed)
	}
	if last, removed := pruneAll(t, db, Retention{Age: 2 * time.Hour, Count: 1000}); removed != 123 || last.Kept != 177 {
		t.Errorf("%d events went, %+v", removed, last)
	}
	if _, removed := pruneAll(t, db, Retention{}); removed != 0 {
		t.Errorf("%d events went although everything is kept", removed)
	}
}

// TestPruningHalfDoneIsFinished has a process die between the mark and the removal.
func TestPruningHalfDoneIsFinished(t *testing.T) {
	t.Parallel()
	db := openHistory(t, 50)
	if _, err := db.db.ExecContext(t.Context(), `UPDATE namespaces SET pruned = 20`); err != nil {
		t.Fatal(err)
	}
	if _, removed := pruneAll(t, db, Retention{Count: 40}); removed != 20 {
		t.Errorf("%d events went", removed)
	}
}

// TestASubscriptionMadeWhilePruningMissesNothing makes subscriptions from the beginning beside the pruning: the first event that one may read is there, and so
// are all that follow.
func TestASubscriptionMadeWhilePruningMissesNothing(t *testing.T) {
	t.Parallel()
	db := openHistory(t, 6000)
	ctx, cancel := context.WithCancel(t.Context())
	var pruning sync.WaitGroup
	pruning.Go(func() {
		for ctx.Err() == nil {
			if _, err := db.PruneHistory(ctx, "default", Retention{Count: 10}); err != nil && ctx.Err() == nil {
				t.Error(err)
			}
		}
	})
	for i := range 5 {
		s := subscribeAt(t, db, fmt.Sprintf("s%d", i), -1)
		list := all(t, db, s.Position)
		if want := 6000 - int(max(s.Position, 0)); len(list) != want {
			t.Errorf("%d events behind %d, want %d", len(list), s.Position, want)
		}
		if err := db.DeleteSubscription(ctx, "default", s.Name); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	pruning.Wait()
}

// TestAppendingGoesOnWhilePruning makes sure that a removal under way does not hold up who appends.
func TestAppendingGoesOnWhilePruning(t *testing.T) {
	t.Parallel()
	db := openHistory(t, 100)
	err := db.inTx(t.Context(), "test", func(tx *sqlx.Tx) error {
		if _, err := tx.ExecContext(t.Context(), `DELETE FROM events WHERE sequence <= 50`); err != nil {
			return err
		}
		limited, stop := context.WithTimeout(t.Context(), 10*time.Second)
		defer stop()
		return db.AppendEvents(limited, []Event{{Namespace: "default", Type: "test", Reference: NewID()}})
	})
	if err != nil {
		t.Error(err)
	}
}
