package delivery

import (
	"context"

	"github.com/google/uuid"
)

// Consumer is where a session's events go.
type Consumer struct {
	// Deliver writes frames to the application, in order, and returns when they are written. Blocking in it is back-pressure. The frames belong to the caller
	// again when it returns. An error ends the session.
	Deliver func(ctx context.Context, frames [][]byte) error
	// DeliverEvents stands in for Deliver where the consumer makes its own frames.
	DeliverEvents func(ctx context.Context, events []Outgoing) error
	// Push stands in for Deliver where the events are acknowledged by the delivery itself. It returns when they are delivered, with an *Undeliverable when
	// they will not be, or with what ended ctx.
	Push func(ctx context.Context, p Push) error
	// Ended is called once, and must not block, when the session ends for another reason than Close or an error of Deliver: its subscription was
	// deleted, or the service stops.
	Ended func(err error)
}

// Session is one application's use of a subscription. Its methods may be called by several goroutines.
type Session struct {
	feed      *feed
	consumer  Consumer
	autoAck   bool
	noBatches bool
	readAhead *int // overrides the subscription's

	ackedThrough int64 // until it counts; under the feed's lock
}

// Ref names the subscription.
func (s *Session) Ref() Ref { return s.feed.ref }

// Ack acknowledges an event, or the oldest one in flight if id is nil. It returns false when the event is not in flight in this session.
func (s *Session) Ack(id *uuid.UUID) bool { return s.feed.ack(s, id) }

// Nack asks for an event again; what is behind it and not acknowledged follows. It returns false when the event is not in flight in this session.
func (s *Session) Nack(id uuid.UUID) bool { return s.feed.nack(s, id) }

// Close ends the session. What it has not acknowledged goes to the next one.
func (s *Session) Close() { s.feed.remove(s) }
