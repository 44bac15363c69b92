package chain

import (
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

func TestRangeSizer(t *testing.T) {
	t.Parallel()
	s := newRangeSizer(100, 1000, 4000)
	for range 10 {
		s.answered(s.next(), 0)
	}
	if s.next() != 1000 {
		t.Errorf("calm: %d blocks, want 1000", s.next())
	}
	s.answered(1000, 40_000)
	if s.next() != 100 {
		t.Errorf("dense: %d blocks, want 100", s.next())
	}
	for range doubtsAtMost {
		if s.tooMany(100, 50); s.next() != 100 {
			t.Errorf("refused what was answered before: %d blocks, want 100", s.next())
		}
	}
	if s.tooMany(100, 50); s.next() != 75 {
		t.Errorf("refused again and again: %d blocks, want 75", s.next())
	}
	s = newRangeSizer(2, 1000, 4000)
	if s.tooMany(2, 1); s.next() != 1 {
		t.Errorf("one block: %d", s.next())
	}
	s.begin()
	for range 4 * calmAtFirst {
		s.answered(s.next(), 0)
	}
	if s.next() < 2 {
		t.Error("never asks for more again")
	}
}

// readThrough asks for so many blocks as fetchParts does, and tells how many calls were refused and how many were answered.
func readThrough(s *rangeSizer, blocks int64, refuses func(blocks int64) bool) (refused, answered int64) {
	for blocks > 0 {
		size, last := min(s.next(), blocks), int64(0)
		for refuses(size) {
			refused++
			if last = 0; size > 1 {
				last, size = size, size/2
			}
		}
		if answered++; last > 0 {
			s.tooMany(last, size)
		}
		s.answered(size, 0)
		blocks -= size
	}
	return refused, answered
}

// TestALimitIsFound has a node that answers no more than a number of blocks: the sizer comes to ask for nearly as many, and tries more but seldom.
func TestALimitIsFound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.Int64Range(1, 5000).Draw(t, "limit")
		s := newRangeSizer(8, 5000, 2000)
		blocks := 2000 * limit
		refused, answered := readThrough(s, blocks, func(n int64) bool { return n > limit })
		if answered > 2*2000+20 {
			t.Errorf("%d answers for what %d would have brought", answered, blocks/limit)
		}
		if refused > 200 {
			t.Errorf("%d refusals among %d calls", refused, refused+answered)
		}
	})
}

// TestRefusalsThatHaveOtherReasons has a node that refuses two of three calls, however little they ask for: the ranges do not stay small for that.
func TestRefusalsThatHaveOtherReasons(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // no secret
	s := newRangeSizer(8, 5000, 2000)
	refused, answered := readThrough(s, 100_000, func(int64) bool { return random.IntN(3) > 0 })
	if answered > 5000 || refused > 15_000 {
		t.Errorf("%d answers and %d refusals for 100,000 blocks", answered, refused)
	}
}
