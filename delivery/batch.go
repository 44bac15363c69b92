package delivery

import (
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// inFlightBatch is a batch that was delivered as one frame and is acknowledged as one: by its id, or by any acknowledgement without an id.
// Its events can be acknowledged one by one as well; the next batch comes when none of them is open.
type inFlightBatch struct {
	id     uuid.UUID
	events []uuid.UUID
}

func newInFlightBatch(events []store.Event) *inFlightBatch {
	b := &inFlightBatch{id: store.NewID(), events: make([]uuid.UUID, len(events))}
	for i := range events {
		b.events[i] = events[i].ID
	}
	return b
}

// firstOpen is the first of its events that is not acknowledged.
func (b *inFlightBatch) firstOpen(w *window) uuid.UUID {
	for _, id := range b.events {
		if _, open := w.byID[id]; open {
			return id
		}
	}
	return b.id
}
