package delivery

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// Push is what a consumer with Consumer.Push gets to deliver at once: one event, or a batch.
type Push struct {
	Subscription Ref
	Options      Options
	Events       []Outgoing
	Tried        Attempt // what former tries of the same events came to, also those of a process that has died
	// Report keeps what a try came to, for those who ask and for the next process.
	Report func(ctx context.Context, a Attempt)
}

// Outgoing is one event on its way.
type Outgoing struct {
	ID       uuid.UUID
	Sequence int64
	Body     []byte // the event as applications see it; it belongs to the caller again when Push or DeliverEvents returns
}

// Attempt is what the tries of a delivery have come to.
type Attempt struct {
	Count  int       // tries so far
	Reason string    // why the last one failed
	Status int       // of the last answer; 0 when there was none
	Next   time.Time // when the next try is due
}

// Undeliverable says that events will not be delivered however often it is tried: they go to the subscription's dead letters.
type Undeliverable struct{ Attempt }

// Error implements error.
func (u *Undeliverable) Error() string {
	return fmt.Sprintf("given up after %d tries: %s", u.Count, u.Reason)
}

// Pong is what a webhook answered to a test.
type Pong struct {
	Delivered bool
	Status    int    // 0 when there was no answer
	Reason    string // why it failed
	Latency   time.Duration
}

var errChanged = errors.New("the subscription was changed")

// push has the consumer deliver events, anew whenever the subscription is changed. It returns an *Undeliverable, or what ended ctx.
func (f *feed) push(ctx context.Context, t turn, events []Outgoing, redriven bool) error {
	tried := f.tried(events[0].Sequence, redriven)
	for {
		f.mu.Lock()
		if f.active != t.session {
			f.mu.Unlock()
			return context.Canceled
		}
		pushing, cancel := context.WithCancelCause(ctx)
		f.interrupt = cancel
		p := Push{Subscription: f.ref, Options: f.options, Events: events, Tried: tried}
		epoch := f.epoch
		f.mu.Unlock()
		failed := tried.Count > 0
		p.Report = func(ctx context.Context, a Attempt) {
			failed = true
			f.hold(a)
			err := f.m.db.SaveAttempt(ctx, store.DeliveryAttempt{
				Subscription: f.ref.ID, Sequence: events[0].Sequence, Redriven: redriven, Attempts: a.Count, Reason: a.Reason, Status: a.Status, Next: a.Next,
			}, epoch)
			if err != nil && ctx.Err() == nil {
				f.m.log.WarnContext(ctx, "keep a delivery's tries", "subscription", f.ref.ID, "error", err)
			}
		}
		err := t.session.consumer.Push(pushing, p)
		changed := errors.Is(context.Cause(pushing), errChanged)
		cancel(nil)
		f.mu.Lock()
		f.interrupt = nil
		f.mu.Unlock()
		var undeliverable *Undeliverable
		switch {
		case err == nil:
			if failed {
				f.cleared(ctx, epoch)
			}
			return nil
		case errors.As(err, &undeliverable), ctx.Err() != nil:
			return err
		case !changed:
			return fmt.Errorf("push: %w", err)
		}
		tried = Attempt{} // a new address, or a new secret, deserves all tries
	}
}

// hold shows what the last try came to.
func (f *feed) hold(a Attempt) {
	f.mu.Lock()
	f.lastError = a.Reason
	f.mu.Unlock()
}

// tried returns the former tries of what is delivered now, if another led then.
func (f *feed) tried(sequence int64, redriven bool) Attempt {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.former
	if a == nil || a.Sequence != sequence || a.Redriven != redriven {
		return Attempt{}
	}
	f.former = nil
	return Attempt{Count: a.Attempts, Reason: a.Reason, Status: a.Status, Next: a.Next}
}

func (f *feed) cleared(ctx context.Context, epoch int64) {
	f.recovered()
	if err := f.m.db.ClearAttempt(ctx, f.ref.ID, epoch); err != nil && ctx.Err() == nil {
		f.m.log.WarnContext(ctx, "forget a delivery's tries", "subscription", f.ref.ID, "error", err)
	}
}

func (b *burst) outgoing() []Outgoing {
	events := make([]Outgoing, len(b.events))
	for i := range b.events {
		events[i] = Outgoing{ID: b.events[i].ID, Sequence: b.events[i].Sequence, Body: b.frames[i]}
	}
	return events
}

// pushBurst delivers events of the history through a consumer's Push, and acknowledges them: as delivered, or as dead letters.
func (f *feed) pushBurst(ctx context.Context, t turn, b *burst) {
	events := b.outgoing()
	err := f.push(ctx, t, events, false)
	var undeliverable *Undeliverable
	switch {
	case err == nil:
		f.m.metrics.delivered.Add(float64(len(events)))
		f.ackAll(t, b.events)
		f.recovered()
	case errors.As(err, &undeliverable):
		f.bury(ctx, t, events, undeliverable)
	case ctx.Err() == nil:
		f.remove(t.session)
	}
}

// bury acknowledges events together with their dead letters, and waits until both are kept: they are written in one transaction.
func (f *feed) bury(ctx context.Context, t turn, events []Outgoing, why *Undeliverable) {
	letters := letters(f.ref.ID, events, why)
	kept := make(chan struct{})
	f.mu.Lock()
	if f.active != t.session {
		f.mu.Unlock()
		return
	}
	for i := range events {
		f.window.ack(&events[i].ID)
	}
	f.letters, f.kept = append(f.letters, letters...), kept
	f.mu.Unlock()
	signal(f.dirty)
	select {
	case <-kept:
		f.m.metrics.dead.Add(float64(len(events)))
		f.m.log.WarnContext(ctx, "events went to the dead letters", "subscription", f.ref.ID, "events", len(events), "tries", why.Count, "reason", why.Reason)
	case <-ctx.Done():
	}
}

func letters(subscription uuid.UUID, events []Outgoing, why *Undeliverable) []store.DeadLetter {
	list := make([]store.DeadLetter, len(events))
	for i, e := range events {
		list[i] = store.DeadLetter{
			Subscription: subscription, Sequence: e.Sequence, Event: e.ID, Payload: string(e.Body), Attempts: why.Count, Reason: why.Reason, Status: why.Status,
		}
	}
	return list
}

// redrive delivers the oldest dead letters that were asked for again. They keep their order, and go before what is new. It tells whether they have
// failed again.
func (f *feed) redrive(ctx context.Context, t turn) (again bool) {
	limit := 1
	if t.batch {
		limit = t.limit
	}
	// Looked at before the list is read, so that what is asked for meanwhile is seen in the next round.
	f.mu.Lock()
	f.redriven = false
	epoch := f.epoch
	f.mu.Unlock()
	list, err := f.m.db.NextRedriven(ctx, f.ref.ID, limit, batchBytes)
	if err == nil && len(list) > 0 {
		events := make([]Outgoing, len(list))
		for i := range list {
			events[i] = Outgoing{ID: list[i].Event, Sequence: list[i].Sequence, Body: []byte(list[i].Payload)}
		}
		err = f.push(ctx, t, events, true)
		var undeliverable *Undeliverable
		var delivered []int64
		var failed []store.DeadLetter
		if errors.As(err, &undeliverable) {
			failed, err, again = letters(f.ref.ID, events, undeliverable), nil, true
		}
		if err == nil && failed == nil {
			f.m.metrics.delivered.Add(float64(len(events)))
			for i := range events {
				delivered = append(delivered, events[i].Sequence)
			}
		}
		if err == nil {
			err = f.m.db.SettleRedriven(ctx, f.ref.ID, epoch, delivered, failed)
		}
	}
	if err != nil && ctx.Err() == nil {
		f.trouble(ctx, "redrive dead letters", err)
		wait(ctx, pollInterval)
	}
	if err != nil || len(list) > 0 { // there may be more
		f.mu.Lock()
		f.redriven = true
		f.mu.Unlock()
	}
	return again
}
