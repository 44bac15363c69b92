package delivery

import (
	"context"
	"sync"

	"github.com/pactwire/pactwire/store"
)

// A burst is what is written to a consumer at once: whatever the window has room for, within these bounds.
const (
	burstEvents = 512
	burstBytes  = 64 << 10
	batchBytes  = 1 << 20 // of the events of a batch
)

// turn is what the dispatcher does next.
type turn struct {
	session    *Session
	generation int
	scanned    int64
	room       int
	limit      int // of the window
	matcher    *Matcher
	withData   bool
	batch      bool // several events at once, acknowledged together
	redrive    bool // dead letters wait to be delivered again
}

// dispatch delivers to the active session until ctx ends.
func (f *feed) dispatch(ctx context.Context) {
	var r *reader
	defer func() { r.stop() }()
	var current batch
	yield := false // a redriven event has failed again: what is new gets a turn before the next one
	for ctx.Err() == nil {
		t := f.nextTurn()
		if t.session == nil {
			select {
			case <-ctx.Done():
			case <-f.wake:
			}
			continue
		}
		if r == nil || r.generation != t.generation {
			r.stop()
			r, current = f.readFrom(ctx, t.generation, t.scanned, t.matcher), batch{}
		}
		switch {
		case t.redrive && yield:
			yield = false
			if len(current.events) == 0 {
				select {
				case current = <-r.out:
					if len(current.events) == 0 {
						f.pass(t, current.through)
					}
				default:
				}
			}
			if len(current.events) > 0 && t.room > 0 {
				f.burst(ctx, t, &current)
			}
		case t.redrive:
			yield = f.redrive(ctx, t)
		case len(current.events) == 0:
			select {
			case <-ctx.Done():
			case <-f.wake:
			case current = <-r.out:
				if len(current.events) == 0 { // nothing for this subscription
					f.pass(t, current.through)
				}
			}
		case t.room == 0:
			select {
			case <-ctx.Done():
			case <-f.wake:
			}
		default:
			if t.batch {
				current.gather(r, t.room)
			}
			f.burst(ctx, t, &current)
		}
	}
}

// gather takes what else has been read already, for a batch.
func (b *batch) gather(r *reader, room int) {
	for len(b.events) < room {
		select {
		case more := <-r.out:
			b.events, b.through = append(b.events, more.events...), more.through
		default:
			return
		}
	}
}

// nextTurn looks at the sessions and the window.
func (f *feed) nextTurn() turn {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sessions) == 0 {
		return turn{}
	}
	if f.active == nil {
		f.active = f.sessions[0]
		f.reset()
		f.window.ackThrough(f.active.ackedThrough)
		f.active.ackedThrough = 0
		signal(f.dirty)
		f.generation++
	}
	f.window.limit = f.options.window()
	if f.active.readAhead != nil {
		f.window.limit = max(1, *f.active.readAhead)
	}
	t := turn{
		session: f.active, generation: f.generation, scanned: f.window.scanned, room: f.window.room(), limit: f.window.limit, matcher: f.matcher,
		withData: f.options.WithData, batch: f.options.Batch && !f.active.noBatches, redrive: f.redriven && f.active.consumer.Push != nil,
	}
	if t.batch && f.window.open > 0 {
		t.room = 0 // one batch at a time
	}
	return t
}

// current tells whether nothing has happened that makes the turn void. f.mu is held.
func (f *feed) current(t turn) bool { return f.active == t.session && f.generation == t.generation }

// pass moves the window over events that do not pass the filter.
func (f *feed) pass(t turn, through int64) {
	// A position that moved over foreign events alone is not worth a write each time: when it is lost, they are only filtered out again.
	const worthwhile = 1000
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.current(t) {
		return
	}
	f.window.pass(through)
	if f.window.position()-f.written >= worthwhile {
		signal(f.dirty)
	}
}

// buffers holds the memory of bursts between them, so that idle subscriptions hold none.
var buffers = sync.Pool{New: func() any { return new(burst) }}

type burst struct {
	bytes  []byte
	ends   []int
	frames [][]byte
	events []store.Event
}

// burst delivers as much of the batch as the window has room for.
func (f *feed) burst(ctx context.Context, t turn, from *batch) {
	b := buffers.Get().(*burst) //nolint:forcetypeassert // nothing else is in the pool
	b.bytes, b.ends, b.frames, b.events = b.bytes[:0], b.ends[:0], b.frames[:0], b.events[:0]
	defer func() {
		clear(b.events)
		clear(b.frames)
		if cap(b.bytes) <= 4*burstBytes { // a huge event's memory is not kept
			buffers.Put(b)
		}
	}()

	f.mu.Lock()
	if !f.current(t) {
		f.mu.Unlock()
		return
	}
	room, size, taken, most := min(f.window.room(), burstEvents), 0, 0, burstBytes
	if t.batch {
		room, most = min(f.window.room(), t.room), batchBytes
	}
	for taken < len(from.events) && len(b.events) < room && size < most {
		e := &from.events[taken]
		taken++
		if f.window.skips(e.Sequence) {
			f.window.passAcked(e.Sequence)
			continue
		}
		f.window.deliver(e.Sequence, e.ID)
		size += len(e.Body) + 512
		b.events = append(b.events, *e)
	}
	from.events = from.events[taken:]
	if len(from.events) == 0 {
		f.window.pass(from.through)
	}
	var inFlight *inFlightBatch
	if t.batch && t.session.consumer.Push == nil && len(b.events) > 0 {
		inFlight = newInFlightBatch(b.events)
		f.batch = inFlight
	}
	f.mu.Unlock()

	for i := range b.events {
		body, err := f.body(ctx, t, &b.events[i])
		if err != nil {
			return // ctx ended
		}
		b.bytes = appendEvent(b.bytes, &b.events[i], f.refJSON, body)
		b.ends = append(b.ends, len(b.bytes))
	}
	start := 0
	for _, end := range b.ends {
		b.frames = append(b.frames, b.bytes[start:end:end])
		start = end
	}
	if len(b.frames) == 0 {
		return
	}
	if t.session.consumer.Push != nil {
		f.pushBurst(ctx, t, b)
		return
	}
	if inFlight != nil {
		b.frames = append(b.frames[:0], appendBatch(nil, inFlight.id, f.refJSON, b.bytes, b.ends))
	}
	var err error
	if deliver := t.session.consumer.DeliverEvents; deliver != nil {
		err = deliver(ctx, b.outgoing())
	} else {
		err = t.session.consumer.Deliver(ctx, b.frames)
	}
	if err != nil {
		f.remove(t.session)
		return
	}
	f.m.metrics.delivered.Add(float64(len(b.events)))
	if t.session.autoAck {
		f.ackAll(t, b.events)
	}
	f.recovered()
}

// ackAll acknowledges what was just delivered.
func (f *feed) ackAll(t turn, events []store.Event) {
	f.mu.Lock()
	if f.active == t.session {
		for i := range events {
			f.window.ack(&events[i].ID)
		}
	}
	f.mu.Unlock()
	f.m.metrics.acks.Add(float64(len(events)))
	signal(f.dirty)
}

// recovered forgets the last trouble.
func (f *feed) recovered() {
	f.mu.Lock()
	f.lastError = ""
	f.mu.Unlock()
}

// body returns the event's enrichment, with the values of its message if the subscription asks for them. It fails only when ctx ends.
func (f *feed) body(ctx context.Context, t turn, e *store.Event) (string, error) {
	if !t.withData || e.BodyKey != store.BodyMessage {
		return e.Body, nil
	}
	for {
		data, err := f.m.db.MessageData(ctx, e.Namespace, e.Reference)
		if err == nil {
			body, err := withValues(e.Body, data)
			if err != nil { // it will not become better: the event goes as it is rather than stopping all that follow
				f.m.log.ErrorContext(ctx, "put the data into a message", "subscription", f.ref.ID, "event", e.ID, "error", err)
				return e.Body, nil
			}
			return body, nil
		}
		f.trouble(ctx, "read the data of message "+e.Reference.String(), err)
		wait(ctx, pollInterval)
		if ctx.Err() != nil {
			return "", ctx.Err() //nolint:wrapcheck // only a signal to stop
		}
	}
}
