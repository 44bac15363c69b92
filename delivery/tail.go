package delivery

import (
	"context"
	"log/slog"
	"sort"
	"sync"
	"time"

	"github.com/pactwire/pactwire/store"
)

const (
	pageRows  = 500
	pageBytes = 1 << 20

	tailRows  = 2048    // newest events of a namespace that are kept in memory
	tailBytes = 8 << 20 // of their bodies
)

// pollInterval is how long a wake-up that got lost can delay an event.
const pollInterval = time.Second

// tail holds the newest events of one namespace, so that each is read once, however many sessions wait for it.
type tail struct {
	namespace string

	mu     sync.Mutex
	base   int64 // events holds everything in (base, head]
	head   int64
	events []store.Event
	bytes  int
	grown  chan struct{} // closed when head moves
}

func newTail(namespace string) *tail {
	return &tail{namespace: namespace, grown: make(chan struct{})}
}

// after returns at most limit events behind a sequence, copied, and how far they reach. If ok is false the sequence lies before what is held here: read the
// store. If there is nothing behind it yet, grown is closed when there is.
func (t *tail) after(sequence int64, limit int) (events []store.Event, through int64, grown <-chan struct{}, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if sequence < t.base {
		return nil, sequence, nil, false
	}
	if sequence >= t.head {
		return nil, sequence, t.grown, true
	}
	from := sort.Search(len(t.events), func(i int) bool { return t.events[i].Sequence > sequence })
	to, size := from, 0
	for to < len(t.events) && to-from < limit && (size == 0 || size < pageBytes) {
		size += len(t.events[to].Body)
		to++
	}
	through = t.head
	if to < len(t.events) {
		through = t.events[to-1].Sequence
	}
	// Copied, so that a slow reader does not hold the bodies of all that was here with it.
	return append([]store.Event(nil), t.events[from:to]...), through, nil, true
}

func (t *tail) add(page store.EventPage) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if page.Through <= t.head {
		return
	}
	t.events = append(t.events, page.Events...)
	for i := range page.Events {
		t.bytes += len(page.Events[i].Body)
	}
	drop := 0
	for drop < len(t.events) && (len(t.events)-drop > tailRows || t.bytes > tailBytes) {
		t.bytes -= len(t.events[drop].Body)
		t.base = t.events[drop].Sequence
		drop++
	}
	if drop > 0 {
		clear(t.events[:drop])
		t.events = t.events[drop:]
	}
	t.head = page.Through
	close(t.grown)
	t.grown = make(chan struct{})
}

// begin sets where the tail starts.
func (t *tail) begin(head int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.base, t.head = head, head
	close(t.grown)
	t.grown = make(chan struct{})
}

// run follows the history until ctx ends. It is woken, and polls.
func (t *tail) run(ctx context.Context, db *store.DB, log *slog.Logger) {
	wake := db.Subscribe(store.TopicHistory(t.namespace))
	defer wake.Close()
	head, started := int64(0), false
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for ctx.Err() == nil {
		var err error
		more := false
		if !started {
			if head, err = db.HeadSequence(ctx, t.namespace); err == nil {
				t.begin(head)
				started, more = true, true
			}
		} else {
			var page store.EventPage
			page, err = db.EventsAfter(ctx, store.EventQuery{Namespace: t.namespace, After: head, Limit: pageRows, Bytes: pageBytes})
			if err == nil && page.Through > head {
				t.add(page)
				head = page.Through
				more = head < page.Head
			}
		}
		if err != nil && ctx.Err() == nil {
			log.WarnContext(ctx, "read the end of the history", "namespace", t.namespace, "error", err)
			select { // not woken: whoever writes would drive the attempts
			case <-ctx.Done():
			case <-poll.C:
			}
			continue
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-wake.C:
		case <-poll.C:
		}
	}
}
