package delivery

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// feed is one subscription in this process, durable or ephemeral, with the sessions that use it. It lives while there are sessions.
//
//	standing by ──lease──► leading: dispatcher and cursor run; sessions[0] is the active one
//	     ▲                    │
//	     └──── lease lost ────┘          no session left, or deleted ──► ended
type feed struct {
	m         *Manager
	ref       Ref
	refJSON   []byte
	ephemeral bool
	transport string // durable
	tail      *tail
	wake      chan struct{} // something changed that the dispatcher should look at
	dirty     chan struct{} // the position should be written
	ended     chan struct{} // closed when closed is set

	mu         sync.Mutex
	matcher    *Matcher
	options    Options
	updated    time.Time  // of the subscription, as matcher and options are
	sessions   []*Session // in the order in which they came
	active     *Session   // the one that window is about; nil when none is
	generation int        // grows when reading must start again from window.scanned
	window     window
	leading    bool
	written    int64 // the position that the store has
	lastError  string
	closed     bool
	batch      *inFlightBatch // the one that is not acknowledged yet

	// Of feeds whose consumer is pushed to.
	epoch     int64                   // of the lease
	former    *store.DeliveryAttempt  // what was tried when another led, until it is tried again
	redriven  bool                    // there may be dead letters to deliver again
	interrupt context.CancelCauseFunc // ends the delivery that is under way, because the subscription was changed
	letters   []store.DeadLetter      // to be kept together with the position
	kept      chan struct{}           // closed when they are
}

func (m *Manager) newFeed(ref Ref, ephemeral bool, matcher *Matcher, options Options) *feed {
	return &feed{
		m: m, ref: ref, refJSON: mustMarshal(ref), ephemeral: ephemeral, matcher: matcher, options: options,
		wake: make(chan struct{}, 1), dirty: make(chan struct{}, 1), ended: make(chan struct{}),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add gives the feed another session. It returns false when the feed has ended.
func (f *feed) add(s *Session) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return false
	}
	s.feed = f
	f.sessions = append(f.sessions, s)
	signal(f.wake)
	return true
}

// remove takes a session away; the last one ends the feed.
func (f *feed) remove(s *Session) {
	f.mu.Lock()
	i := slices.Index(f.sessions, s)
	if i < 0 {
		f.mu.Unlock()
		return
	}
	f.sessions = slices.Delete(f.sessions, i, i+1)
	if f.active == s {
		f.active = nil
		f.reset()
		f.generation++
	}
	ended := len(f.sessions) == 0
	if ended {
		f.closed = true
		close(f.ended)
	}
	signal(f.wake)
	f.mu.Unlock()
	if ended {
		f.m.forget(f)
	}
}

// end takes all sessions away and tells them why.
func (f *feed) end(err error) {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return
	}
	sessions := f.sessions
	f.sessions, f.active, f.closed = nil, nil, true
	f.reset()
	close(f.ended)
	f.mu.Unlock()
	f.m.forget(f)
	for _, s := range sessions {
		if s.consumer.Ended != nil {
			s.consumer.Ended(err)
		}
	}
}

// reset takes everything out of flight, for a new session. f.mu is held.
func (f *feed) reset() {
	f.window.reset()
	f.batch = nil
}

func (f *feed) ack(s *Session, id *uuid.UUID) bool {
	f.mu.Lock()
	ok, count := false, 1
	switch {
	case f.active != s:
	case f.batch != nil && (id == nil || *id == f.batch.id):
		for i := range f.batch.events {
			f.window.ack(&f.batch.events[i])
		}
		ok, count, f.batch = true, len(f.batch.events), nil
	default:
		ok = f.window.ack(id)
	}
	f.mu.Unlock()
	if ok {
		f.m.metrics.acks.Add(float64(count))
		signal(f.wake)
		signal(f.dirty)
	}
	return ok
}

func (f *feed) nack(s *Session, id uuid.UUID) bool {
	f.mu.Lock()
	if f.active == s && f.batch != nil && id == f.batch.id {
		id = f.batch.firstOpen(&f.window)
	}
	ok := f.active == s && f.window.nack(id)
	if ok {
		f.batch = nil
		f.generation++
	}
	f.mu.Unlock()
	if ok {
		signal(f.wake)
	}
	return ok
}

// run serves the sessions until they are gone or ctx ends.
func (f *feed) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-f.ended:
			cancel()
		case <-ctx.Done():
		}
	}()
	if f.ephemeral {
		f.dispatch(ctx)
	}
	for !f.ephemeral && ctx.Err() == nil {
		if err := f.m.db.WithLease(ctx, store.LeaseSubscription(f.ref.ID), f.lead); err != nil {
			f.trouble(ctx, "deliver", err)
			wait(ctx, 100*time.Millisecond)
		}
	}
	cancel()
	<-stopped
}

// lead serves the sessions while this process holds the lease.
func (f *feed) lead(ctx context.Context, lease store.Lease) error {
	sub, err := f.m.db.ClaimSubscription(ctx, f.ref.ID, lease.Epoch)
	if gone(err) {
		f.end(err)
		return nil
	}
	if err != nil {
		// Fenced off from the start: the epochs of leases and subscriptions disagree. Trying again at once would only keep the database busy.
		f.trouble(ctx, "take over the subscription", err)
		wait(ctx, pollInterval)
		return err //nolint:wrapcheck // the store has said what it was doing
	}
	f.update(ctx, sub)
	var former *store.DeliveryAttempt
	if f.transport == TransportWebhooks {
		if a, ok, err := f.m.db.Attempt(ctx, f.ref.ID); err == nil && ok { // otherwise the tries are counted anew
			former = &a
		}
	}
	f.mu.Lock()
	f.window.resume(sub.Position, sub.Beyond)
	f.written, f.active, f.leading = sub.Position, nil, true
	f.epoch, f.former, f.redriven, f.batch = lease.Epoch, former, true, nil
	// Dead letters that could not be written under the last lease are acknowledged here, and nowhere else: they go on waiting, unless another process has
	// settled their events meanwhile.
	f.letters = slices.DeleteFunc(f.letters, func(l store.DeadLetter) bool { return l.Sequence <= sub.Position })
	f.generation++
	signal(f.dirty) // what could not be written under the last lease
	f.mu.Unlock()

	work, cancel := context.WithCancel(ctx)
	defer cancel()
	c := cursor{feed: f, epoch: lease.Epoch}
	moved := make(chan error, 1)
	go func() {
		defer cancel() // without the right to move on, there is nothing to deliver
		moved <- c.run(work)
	}()
	f.dispatch(work)
	cancel()
	err = <-moved

	f.mu.Lock()
	f.active, f.leading = nil, false
	f.reset()
	f.mu.Unlock()
	if err == nil {
		err = c.flush(ctx)
	}
	if gone(err) {
		f.end(err)
		return nil
	}
	return err
}

// update takes over the filter and the options of the subscription, if they are newer.
func (f *feed) update(ctx context.Context, sub store.Subscription) {
	at := version(sub)
	f.mu.Lock()
	same := f.updated.Equal(at)
	f.mu.Unlock()
	if same {
		return
	}
	if sub.Transport != f.transport {
		f.end(pactwire.Conflict("transport_changed", "The subscription %q has another transport now.", f.ref.Name))
		return
	}
	matcher, options, err := compile(sub)
	if err != nil {
		f.trouble(ctx, "read the subscription's filter", err)
		return
	}
	f.mu.Lock()
	f.matcher, f.options, f.updated = matcher, options, at
	f.generation++ // what was read ahead passed the old filter
	if f.interrupt != nil {
		f.interrupt(errChanged)
	}
	f.mu.Unlock()
	signal(f.wake)
}

func compile(sub store.Subscription) (*Matcher, Options, error) {
	filter, err := ParseFilter(sub.Filter)
	if err != nil {
		return nil, Options{}, err
	}
	matcher, err := filter.Compile()
	if err != nil {
		return nil, Options{}, err
	}
	var options Options
	if err := json.Unmarshal(sub.Options, &options); err != nil {
		return nil, Options{}, err //nolint:wrapcheck // it goes to the log with what was done
	}
	return matcher, options, nil
}
