package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// openHistory returns a database of its own with the namespaces default and other.
func openHistory(t testing.TB) *store.DB {
	t.Helper()
	return openHistoryAt(t, store.Config{URL: pgtest.New(t)})
}

// openHistoryAt is openHistory in the database that the settings name.
func openHistoryAt(t testing.TB, cfg store.Config) *store.DB {
	t.Helper()
	ctx := context.Background()
	db, err := store.Open(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.EnsureChain(ctx, "dev", big.NewInt(31337), common.Hash{1}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"default", "other"} {
		if err := db.EnsureNamespace(ctx, namespace, "dev"); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func TestEventsAfterPages(t *testing.T) {
	db, ctx := openHistory(t), context.Background()
	listener := store.NewID()
	empty, err := db.EventsAfter(ctx, store.EventQuery{Namespace: "default", Limit: 10, Bytes: 1000})
	if err != nil || len(empty.Events) != 0 || empty.Through != 0 || empty.Head != 0 {
		t.Fatalf("empty history: %+v, %v", empty, err)
	}
	if _, err := db.EventsAfter(ctx, store.EventQuery{Namespace: "nowhere", Limit: 10, Bytes: 1000}); err == nil {
		t.Fatal("an unknown namespace was read")
	}
	events := make([]store.Event, 20)
	for i := range events {
		events[i] = store.Event{
			Namespace: "default", Type: store.EventMessageConfirmed, Reference: store.NewID(), BodyKey: store.BodyMessage,
			Body: `{"x":"` + strings.Repeat("b", 92) + `"}`, Topics: []string{"a", `b"`},
		}
		if i%5 == 0 {
			events[i].Type, events[i].Listener = store.EventBlockchainReceived, &listener
		}
	}
	if err := db.AppendEvents(ctx, events); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name    string
		query   store.EventQuery
		want    string
		through int64
	}{
		{"all", store.EventQuery{Limit: 100, Bytes: 1 << 20}, "1-20", 20},
		{"rows bound", store.EventQuery{After: 3, Limit: 4, Bytes: 1 << 20}, "4-7", 7},
		{"bytes bound", store.EventQuery{After: 3, Limit: 100, Bytes: 250}, "4-6", 6},
		{"one too big", store.EventQuery{After: 3, Limit: 100, Bytes: 1}, "4-4", 4},
		{"at the end", store.EventQuery{After: 20, Limit: 4, Bytes: 1}, "", 20},
		{"beyond the end", store.EventQuery{After: 90, Limit: 4, Bytes: 1}, "", 90},
		{"by type", store.EventQuery{After: 18, Limit: 4, Bytes: 1000, TypeContains: "blockchain_event_"}, "", 20},
		{"by type, some", store.EventQuery{After: 10, Limit: 4, Bytes: 1000, TypeContains: "blockchain_event_received"}, "11,16", 20},
		{"by listener", store.EventQuery{Limit: 2, Bytes: 1000, Listener: &listener}, "1,6", 6},
		{"by a foreign listener", store.EventQuery{Limit: 2, Bytes: 1000, Listener: new(uuid.UUID)}, "", 20},
	} {
		c.query.Namespace = "default"
		page, err := db.EventsAfter(ctx, c.query)
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := sequences(page.Events); got != c.want || page.Through != c.through || page.Head != 20 {
			t.Errorf("%s: got %q through %d of %d, want %q through %d", c.name, got, page.Through, page.Head, c.want, c.through)
		}
	}
	one, err := db.EventByID(ctx, "default", events[7].ID)
	if err != nil || one.Sequence != 8 || one.Body != events[7].Body || !one.Created.Equal(events[7].Created) || len(one.Topics) != 2 {
		t.Errorf("by id: %+v, %v", one, err)
	}
	if _, err := db.EventByID(ctx, "other", events[7].ID); err == nil {
		t.Error("an event of another namespace was found")
	}
}

func sequences(events []store.Event) string {
	if len(events) == 0 {
		return ""
	}
	first, last := events[0].Sequence, events[len(events)-1].Sequence
	if last-first == int64(len(events)-1) {
		return fmt.Sprintf("%d-%d", first, last)
	}
	var list []string
	for i := range events {
		list = append(list, fmt.Sprint(events[i].Sequence))
	}
	return strings.Join(list, ",")
}

// Sequence order is commit order: a reader that tails the history while others append meets every sequence, in order, without a gap.
func TestTailingReaderSeesEverySequence(t *testing.T) {
	db, ctx := openHistory(t), context.Background()
	const writers, transactions = 8, 40
	var total int64
	var mu sync.Mutex
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 7))
			for range transactions {
				events := make([]store.Event, 1+random.IntN(5))
				for i := range events {
					// Both namespaces, in either order within one transaction.
					events[i] = store.Event{Namespace: []string{"default", "other"}[random.IntN(2)], Type: store.EventInvokeSucceeded, Reference: store.NewID()}
				}
				if err := db.AppendEvents(ctx, events); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for i := range events {
					if events[i].Namespace == "default" {
						total++
					}
				}
				mu.Unlock()
			}
		})
	}
	written := make(chan struct{})
	go func() { group.Wait(); close(written) }()
	var seen int64
	deadline := time.Now().Add(time.Minute)
	for done := false; ; {
		page, err := db.EventsAfter(ctx, store.EventQuery{Namespace: "default", After: seen, Limit: 7, Bytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		for i := range page.Events {
			if page.Events[i].Sequence != seen+1 {
				t.Fatalf("after %d came %d", seen, page.Events[i].Sequence)
			}
			seen++
		}
		if page.Through != seen {
			t.Fatalf("the page reaches to %d, but only %d was seen", page.Through, seen)
		}
		if done && len(page.Events) == 0 {
			break
		}
		select {
		case <-written:
			done = true
		default:
		}
		if time.Now().After(deadline) {
			t.Fatal("no end")
		}
	}
	if seen != total || seen == 0 {
		t.Errorf("saw %d of %d events", seen, total)
	}
}
