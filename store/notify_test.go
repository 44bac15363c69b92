package store

import (
	"context"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/internal/pgtest"
)

// A process that is alone tells nobody; as soon as another one comes both do, and what one notifies wakes the other.
func TestProcessesKnowOfEachOther(t *testing.T) {
	url := pgtest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	var running errgroup.Group
	defer func() { stop(); _ = running.Wait() }()
	await := func(what string, is func() bool) {
		t.Helper()
		for deadline := time.Now().Add(10 * time.Second); !is(); time.Sleep(time.Millisecond) { // a poll with a deadline
			if time.Now().After(deadline) {
				t.Fatalf("never: %s", what)
			}
		}
	}
	aloneIn := func(db *DB, later time.Duration) bool {
		db.Notifier.mu.Lock()
		defer db.Notifier.mu.Unlock()
		return db.alone(time.Now().Add(later))
	}
	first := openAt(t, Config{URL: url})
	if aloneIn(first, time.Hour) {
		t.Error("it believes to be alone before it can hear anybody")
	}
	running.Go(func() error { return first.Run(ctx) })
	await("the first listens", func() bool { return aloneIn(first, hereAnswer+time.Millisecond) })
	if aloneIn(first, 0) {
		t.Error("it does not wait for answers")
	}
	second := openAt(t, Config{URL: url})
	running.Go(func() error { return second.Run(ctx) })
	await("each hears of the other", func() bool {
		return !aloneIn(first, hereAnswer+time.Millisecond) && !aloneIn(second, hereAnswer+time.Millisecond)
	})
	wakeup := second.Subscribe("topic")
	defer wakeup.Close()
	first.Notify("topic")
	select {
	case <-wakeup.C:
	case <-time.After(10 * time.Second):
		t.Fatal("the other process was not woken")
	}
	if !aloneIn(first, hereExpires+time.Second) {
		t.Error("who is silent for long is still believed to be there")
	}
}
