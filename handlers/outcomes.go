package handlers

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// outcomes wakes the requests that wait for operations of one namespace. However many wait, each growth of the history is read once: by one of
// them, for all.
type outcomes struct {
	db        *store.DB
	namespace string

	dirty   atomic.Bool // the history may have grown since it was last read
	reading sync.Mutex  // held by the one that reads
	last    int64       // read up to here; reading is held

	mu      sync.Mutex
	waiting map[uuid.UUID][]chan struct{}
	begun   chan struct{} // closed when it is settled where reading begins
}

func newOutcomes(db *store.DB, namespace string) *outcomes {
	return &outcomes{db: db, namespace: namespace, waiting: map[uuid.UUID][]chan struct{}{}}
}

// wait returns the operation once its outcome is known.
func (o *outcomes) wait(ctx context.Context, id uuid.UUID) (store.Operation, error) {
	grown := o.db.Subscribe(store.TopicHistory(o.namespace))
	defer grown.Close()
	ended, err := o.register(ctx, id)
	defer o.unregister(id, ended)
	if err != nil {
		return store.Operation{}, err
	}
	poll := time.NewTicker(poll)
	defer poll.Stop()
	// It may have ended before it was waited for, and the notification of its end may get lost: it is looked at itself at once and now and then.
	for look := true; ; {
		if look {
			op, err := o.db.Operation(ctx, o.namespace, id)
			if err != nil || op.Terminal() {
				return op, err //nolint:wrapcheck // says what was done
			}
			look = false
		}
		select {
		case <-ctx.Done():
			return store.Operation{}, fmt.Errorf("wait for operation %s: %w", id, ctx.Err())
		case <-ended:
			look = true
		case <-poll.C:
			look = true
		case <-grown.C:
			if err := o.read(ctx); err != nil {
				return store.Operation{}, err
			}
		}
	}
}

// register makes a channel that is signalled when the operation ends. The first one of all settles where reading begins: at the head. The others wait for
// that, since they look at their operations afterwards: nobody needs what lies before the head.
func (o *outcomes) register(ctx context.Context, id uuid.UUID) (chan struct{}, error) {
	ended := make(chan struct{}, 1)
	o.mu.Lock()
	first := len(o.waiting) == 0
	if first {
		o.begun = make(chan struct{})
	}
	begun := o.begun
	o.waiting[id] = append(o.waiting[id], ended)
	o.mu.Unlock()
	if !first {
		select {
		case <-begun:
			return ended, nil
		case <-ctx.Done():
			return ended, fmt.Errorf("wait for operation %s: %w", id, ctx.Err())
		}
	}
	defer close(begun)
	o.reading.Lock()
	defer o.reading.Unlock()
	head, err := o.db.HeadSequence(ctx, o.namespace)
	if err != nil {
		return ended, err //nolint:wrapcheck // says what was done
	}
	o.last = max(o.last, head)
	return ended, nil
}

func (o *outcomes) unregister(id uuid.UUID, ended chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i, c := range o.waiting[id] {
		if c == ended {
			o.waiting[id] = append(o.waiting[id][:i:i], o.waiting[id][i+1:]...)
			break
		}
	}
	if len(o.waiting[id]) == 0 {
		delete(o.waiting, id)
	}
}

// read reads what is new in the history and signals those whom it concerns; when somebody else is reading, that one goes on for us.
func (o *outcomes) read(ctx context.Context) error {
	o.dirty.Store(true)
	for o.dirty.Load() && o.reading.TryLock() {
		err := o.readNew(ctx)
		o.reading.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}

// readNew reads as long as there is something new. o.reading is held.
func (o *outcomes) readNew(ctx context.Context) error {
	for o.dirty.Swap(false) {
		for more := true; more; {
			page, err := o.db.EventsAfter(ctx, store.EventQuery{
				Namespace: o.namespace, After: o.last, Limit: 500, Bytes: 4 << 20, TypeContains: "blockchain_invoke_op_",
			})
			if err != nil {
				o.dirty.Store(true) // the next one reads it
				return err          //nolint:wrapcheck // says what was done
			}
			o.signal(page.Events)
			o.last, more = page.Through, page.Through < page.Head
		}
	}
	return nil
}

func (o *outcomes) signal(events []store.Event) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range events {
		for _, ended := range o.waiting[events[i].Reference] {
			select {
			case ended <- struct{}{}:
			default:
			}
		}
	}
}
