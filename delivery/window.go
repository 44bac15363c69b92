package delivery

import (
	"sort"

	"github.com/google/uuid"
)

// maxBeyond bounds how many acknowledged events may wait behind one that is not. An application that never acknowledges an event is stopped by it.
const maxBeyond = 4096

// window knows which events are in flight. It is not safe for concurrent use.
//
//	        position            scanned
//	───────────┼──────────────────┼─────────────► sequence
//	 consumed  │ flight: open or  │ skip: acknowledged, and passed over
//	           │ acknowledged     │ when reading gets there (again)
type window struct {
	limit    int   // of open events
	scanned  int64 // everything up to here is in flight, acknowledged or filtered out
	flight   []entry
	first    int // flight[:first] has left
	open     int // entries of flight that are not acknowledged
	byID     map[uuid.UUID]int64
	skip     []span              // above scanned; sorted, apart
	returned map[uuid.UUID]int64 // delivered in this session and due to come again after a nack
	acks     int64               // grows with each acknowledgement
}

type entry struct {
	sequence int64
	id       uuid.UUID
	acked    bool
}

// span is a run of sequences in which everything is acknowledged or filtered out.
type span struct{ first, last int64 }

// start puts the window at a position, with the acknowledgements beyond it as they were kept.
func (w *window) start(position int64, beyond []int64) {
	*w = window{limit: 1, scanned: position, byID: map[uuid.UUID]int64{}, returned: map[uuid.UUID]int64{}, acks: w.acks}
	for i := 0; i+1 < len(beyond); i += 2 {
		w.skip = append(w.skip, span{beyond[i], beyond[i+1]})
	}
}

// resume puts the window at a position as start does, and keeps what was acknowledged before: an acknowledgement counts even if the store could not keep it
// while the lease was away. Nothing may be in flight.
func (w *window) resume(position int64, beyond []int64) {
	known, skip := w.scanned, w.skip
	if w.byID == nil { // the first time
		known, skip = position, nil
	}
	w.start(max(position, known), beyond)
	for _, s := range skip {
		if s.last > w.scanned {
			w.addSkip(max(s.first, w.scanned+1), s.last)
		}
	}
	w.pass(w.scanned)
}

// room is the number of events that may be delivered now.
func (w *window) room() int {
	return max(0, min(w.limit-w.open, maxBeyond-(len(w.flight)-w.first-w.open)))
}

// deliver puts an event in flight. Sequences must grow.
func (w *window) deliver(sequence int64, id uuid.UUID) {
	w.flight = append(w.flight, entry{sequence: sequence, id: id})
	w.byID[id] = sequence
	delete(w.returned, id)
	w.open++
	w.pass(sequence)
}

// pass moves over everything up to a sequence that was not delivered.
func (w *window) pass(through int64) {
	w.scanned = max(w.scanned, through)
	for len(w.skip) > 0 && w.skip[0].last <= w.scanned {
		w.skip = w.skip[1:]
	}
}

// passAcked moves over an event that skips. It stays known as acknowledged until the position has passed it.
func (w *window) passAcked(sequence int64) {
	if w.first < len(w.flight) {
		w.flight = append(w.flight, entry{sequence: sequence, acked: true})
	}
	w.pass(sequence)
}

// skips tells whether the event was acknowledged before it came again.
func (w *window) skips(sequence int64) bool {
	for _, s := range w.skip {
		if sequence < s.first {
			return false
		}
		if sequence <= s.last {
			return true
		}
	}
	return false
}

// position is the sequence up to which everything is acknowledged or filtered out.
func (w *window) position() int64 {
	if w.first < len(w.flight) {
		return w.flight[w.first].sequence - 1
	}
	return w.scanned
}

// beyond lists what is acknowledged behind the position, as pairs of first and last sequence.
func (w *window) beyond() []int64 {
	const most = 2 * 1000 // the rest would come again after a crash
	var list []int64
	if len(w.flight)-w.first > w.open {
		run := false
		for _, e := range w.flight[w.first:] {
			switch {
			case e.acked && run:
				list[len(list)-1] = e.sequence
			case e.acked && len(list) < most:
				list = append(list, e.sequence, e.sequence)
			}
			run = e.acked && len(list) > 0 && list[len(list)-1] == e.sequence
		}
	}
	for _, s := range w.skip {
		if len(list) < most {
			list = append(list, max(s.first, w.scanned+1), s.last)
		}
	}
	return list
}

// ack acknowledges one event, or the oldest open one if id is nil. It returns false when the event is not in flight.
func (w *window) ack(id *uuid.UUID) bool {
	if id == nil {
		for i := w.first; i < len(w.flight); i++ {
			if !w.flight[i].acked {
				w.acked(i)
				return true
			}
		}
		return false
	}
	if sequence, ok := w.byID[*id]; ok {
		w.acked(w.find(sequence))
		return true
	}
	if sequence, ok := w.returned[*id]; ok {
		delete(w.returned, *id)
		w.addSkip(sequence, sequence)
		w.acks++
		return true
	}
	return false
}

// ackThrough acknowledges everything up to a sequence, also what was not delivered. Nothing may be in flight.
func (w *window) ackThrough(sequence int64) {
	if sequence <= w.scanned {
		return
	}
	for id, returned := range w.returned {
		if returned <= sequence {
			delete(w.returned, id)
		}
	}
	w.acks++
	w.pass(sequence)
}

// find returns the index of an entry of flight, or where it would be.
func (w *window) find(sequence int64) int {
	if w.first < len(w.flight) && w.flight[w.first].sequence == sequence { // the usual case
		return w.first
	}
	return w.first + sort.Search(len(w.flight)-w.first, func(i int) bool { return w.flight[w.first+i].sequence >= sequence })
}

func (w *window) acked(i int) {
	w.flight[i].acked = true
	delete(w.byID, w.flight[i].id)
	w.open--
	w.acks++
	w.trim()
}

// trim lets the acknowledged entries at the front go.
func (w *window) trim() {
	for w.first < len(w.flight) && w.flight[w.first].acked {
		w.first++
	}
	switch {
	case w.first == len(w.flight):
		w.flight, w.first = w.flight[:0], 0
	case w.first > 32 && w.first > len(w.flight)/2:
		w.flight, w.first = w.flight[:copy(w.flight, w.flight[w.first:])], 0
	}
}

// nack takes an event and everything behind it out of flight, so that they are read and delivered again; what was acknowledged behind it is not. It returns
// false when the event is not in flight.
func (w *window) nack(id uuid.UUID) bool {
	sequence, ok := w.byID[id]
	if ok {
		w.rewind(sequence)
	}
	return ok
}

// reset takes everything out of flight, for a new session. What the former one acknowledges from now on counts no more.
func (w *window) reset() {
	if w.first < len(w.flight) {
		w.rewind(w.flight[w.first].sequence)
	}
	clear(w.returned)
}

// rewind goes back to just before a sequence.
func (w *window) rewind(sequence int64) {
	from := w.find(sequence)
	for i := len(w.flight) - 1; i >= from; i-- {
		e := &w.flight[i]
		if e.acked {
			w.addSkip(e.sequence, e.sequence)
			continue
		}
		delete(w.byID, e.id)
		w.returned[e.id] = e.sequence
		w.open--
	}
	w.flight = w.flight[:from]
	w.scanned = sequence - 1
	w.trim()
}

// addSkip adds a run to skip, joined with its neighbours if they touch.
func (w *window) addSkip(first, last int64) {
	i := sort.Search(len(w.skip), func(i int) bool { return w.skip[i].last >= first-1 })
	if i < len(w.skip) && w.skip[i].first <= last+1 {
		w.skip[i].first, w.skip[i].last = min(w.skip[i].first, first), max(w.skip[i].last, last)
		if i+1 < len(w.skip) && w.skip[i+1].first <= w.skip[i].last+1 {
			w.skip[i].last = max(w.skip[i].last, w.skip[i+1].last)
			w.skip = append(w.skip[:i+1], w.skip[i+2:]...)
		}
		return
	}
	w.skip = append(w.skip, span{})
	copy(w.skip[i+1:], w.skip[i:])
	w.skip[i] = span{first, last}
}
