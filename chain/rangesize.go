package chain

import "sync"

// rangeSizer decides how many blocks the next log fetch asks for: more while the answers are small, less when the node refuses or the answers grow. It is
// safe for concurrent use.
type rangeSizer struct {
	mu      sync.Mutex
	size    int64
	first   int64 // to begin with
	good    int64 // the node has answered as much
	doubts  int   // how often it has refused as much since
	ceiling int64 // the node has refused more
	calm    int   // answers since the ceiling moved
	need    int   // answers before more than the ceiling is tried
	largest int64
	aim     int // logs that one answer should have
}

// A node may refuse for a moment what it serves at other times, and refuse for reasons that have nothing to do with the range: so a range that was refused is tried
// again soon. Each time that this fails it takes twice as many answers before the next trial, so that a node's true limit costs next to nothing.
const (
	calmAtFirst = 4
	calmAtMost  = 256
	// doubtsAtMost is how often a node may refuse as many blocks as it has answered before, without answering so many again.
	doubtsAtMost = 2
)

func newRangeSizer(first, largest int64, aim int) *rangeSizer {
	return &rangeSizer{size: min(first, largest), first: min(first, largest), ceiling: largest, need: calmAtFirst, largest: largest, aim: aim}
}

// begin starts small again, for other logs than before: what was learned of rare ones would bring in very many of frequent ones at once.
func (s *rangeSizer) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.size = min(s.size, s.first)
}

func (s *rangeSizer) next() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// tooMany notes that the node refused so many blocks, and answered fewer of the same ones at the first attempt: its limit is somewhere in between.
func (s *rangeSizer) tooMany(refused, answered int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if refused > s.ceiling {
		return // asked for before the ceiling came down
	}
	if refused <= s.good { // the number of blocks was not the reason, unless it is always so
		if s.need = calmAtFirst; s.doubts < doubtsAtMost {
			s.doubts++
			return
		}
		s.good, s.doubts = answered, 0
	}
	s.ceiling, s.calm, s.need = max(answered+(refused-answered)/2, 1), 0, min(2*s.need, calmAtMost)
	s.size = min(s.size, s.ceiling)
}

// answered notes how many logs so many blocks held.
func (s *rangeSizer) answered(blocks int64, logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if blocks >= s.good {
		s.good, s.doubts = blocks, 0
	}
	if blocks > s.ceiling { // more than it seemed to serve
		s.ceiling, s.calm, s.need = blocks, 0, calmAtFirst
	}
	if s.calm++; s.calm >= s.need && s.ceiling < s.largest {
		s.ceiling, s.calm = min(s.ceiling*2, s.largest), 0
	}
	want := blocks * 2 // no faster near the aim, so that one dense stretch after a sparse one stays bearable
	if logs*8 < s.aim {
		want = blocks * 4
	}
	if logs > 0 {
		want = min(want, max(blocks*int64(s.aim)/int64(logs), 1))
	}
	if want < s.size && blocks < s.size && logs <= s.aim {
		return // a short range at the end says nothing about larger ones
	}
	s.size = min(max(want, 1), s.ceiling)
}
