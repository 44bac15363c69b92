package chain

import "sync"

// rangeSizer decides how many blocks the next log fetch asks for: more while the answers are small, less when the node refuses or the answers grow. It is
// safe for concurrent use.
type rangeSizer struct {
	mu      sync.Mutex
	size    int64
	first   int64 // to begin with
	ceiling int64 // the node has refused more
	calm    int   // successes since the ceiling came down
	largest int64
	aim     int // logs that one answer should have
}

// calmBeforeMore is how many answers it takes before a range is tried again that was refused once: a busy node may refuse what it serves at other times.
const calmBeforeMore = 50

func newRangeSizer(first, largest int64, aim int) *rangeSizer {
	return &rangeSizer{size: min(first, largest), first: min(first, largest), ceiling: largest, largest: largest, aim: aim}
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

// refused notes that so many blocks were too many, and returns how many to try instead.
func (s *rangeSizer) refused(blocks int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	half := max(blocks/2, 1)
	s.ceiling, s.calm = max(min(s.ceiling, blocks-1), 1), 0
	s.size = min(s.size, half)
	return half
}

// answered notes how many logs so many blocks held.
func (s *rangeSizer) answered(blocks int64, logs int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calm++; s.calm >= calmBeforeMore {
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
