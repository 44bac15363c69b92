package delivery

import (
	"context"
	"errors"
	"time"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// batch is a piece of the history for one subscription: the events that pass its filter, and how far it reaches.
type batch struct {
	events  []store.Event
	through int64
}

// reader reads ahead while its consumer is busy: one batch waits in out, or is being read.
type reader struct {
	generation int
	out        chan batch
	cancel     context.CancelFunc
	done       chan struct{}
}

// readFrom starts reading behind a sequence. Stop the reader when it is no longer needed.
func (f *feed) readFrom(ctx context.Context, generation int, after int64, matcher *Matcher) *reader {
	ctx, cancel := context.WithCancel(ctx)
	r := &reader{generation: generation, out: make(chan batch), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		f.read(ctx, after, matcher, r.out)
	}()
	return r
}

func (r *reader) stop() {
	if r != nil {
		r.cancel()
		<-r.done
	}
}

// minRows is the smallest page. Pages grow while the consumer waits for them and shrink while they wait for it, so that a thousand slow consumers hold little.
const minRows = 50

func (f *feed) read(ctx context.Context, after int64, matcher *Matcher, out chan<- batch) {
	rows := minRows
	for ctx.Err() == nil {
		events, through, grown, ok := f.tail.after(after, pageRows)
		if grown != nil {
			select {
			case <-grown:
			case <-ctx.Done():
			}
			continue
		}
		if !ok {
			page, err := f.m.db.EventsAfter(ctx, store.EventQuery{
				Namespace: f.ref.Namespace, After: after, Limit: rows, Bytes: pageBytes,
				TypeContains: matcher.typeContains, Listener: matcher.listenerID,
			})
			if err != nil {
				f.trouble(ctx, "read the history", err)
				wait(ctx, pollInterval)
				continue
			}
			if page.Through == after {
				// The tail is ahead of what is readable here? It cannot be; do not spin all the same.
				wait(ctx, pollInterval)
				continue
			}
			events, through = page.Events, page.Through
		}
		passed := events[:0]
		for i := range events {
			if matcher.Match(&events[i]) {
				passed = append(passed, events[i])
			}
		}
		clear(events[len(passed):])
		after = through
		asked := time.Now()
		select {
		case out <- batch{passed, through}:
		case <-ctx.Done():
		}
		switch waited := time.Since(asked); {
		case waited < time.Millisecond:
			rows = min(2*rows, pageRows)
		case waited > 100*time.Millisecond:
			rows = max(rows/2, minRows)
		}
	}
}

// trouble remembers and logs what keeps events from being delivered.
func (f *feed) trouble(ctx context.Context, doing string, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return
	}
	// Clients read lastError: it says no more than what is meant for them.
	message := doing + ": internal error"
	var known *pactwire.Error
	if errors.As(err, &known) {
		message = doing + ": " + known.Message
	}
	f.mu.Lock()
	f.lastError = message
	f.mu.Unlock()
	f.m.log.WarnContext(ctx, "delivery is held up", "subscription", f.ref.ID, "doing", doing, "error", err)
}

// wait sleeps, unless ctx ends.
func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
