package chain

import (
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// sendState is what the submitter of one key knows of its nonces. It does no I/O.
//
//	never given      given, in flight                   mined, not finished      finished
//	next …           holes and inflight, ≥ mined        inflight, < mined        not here
type sendState struct {
	mu     sync.Mutex
	byN    map[uint64]*inflight
	next   uint64               // the lowest nonce never given
	mined  uint64               // the chain's own next nonce: all below are used up
	avoid  map[uint64]time.Time // nonces that a foreign transaction in the pool will use up, and since when we think so
	gaps   bool                 // there may be holes
	full   bool                 // more waits than there is room for
	kick   chan struct{}        // the preparer should look again
	verify chan struct{}        // the confirmer should look again
}

func newSendState(next uint64) *sendState {
	return &sendState{
		byN: map[uint64]*inflight{}, next: next, avoid: map[uint64]time.Time{}, gaps: true,
		kick: make(chan struct{}, 1), verify: make(chan struct{}, 1),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// add puts transactions in flight.
func (s *sendState) add(items ...*inflight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range items {
		s.byN[t.nonce] = t
	}
}

// drop takes transactions out of flight; those nonces that are not used up become holes.
func (s *sendState) drop(items ...*inflight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range items {
		if s.byN[t.nonce] != t {
			continue
		}
		delete(s.byN, t.nonce)
		if t.nonce >= s.mined {
			s.gaps = true
		}
	}
	if s.gaps || s.full {
		signal(s.kick)
	}
}

// saturated notes whether more waits than was given nonces: then drop wakes the preparer.
func (s *sendState) saturated(full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.full = full
}

// current tells whether the transaction is still in flight with its nonce.
func (s *sendState) current(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byN[t.nonce] == t
}

// chainAtLeast notes that the chain's next nonce has come so far.
func (s *sendState) chainAtLeast(mined uint64) {
	s.mu.Lock()
	past := mined <= s.mined
	s.mu.Unlock()
	if !past {
		s.chainAt(mined)
	}
}

// chainAt notes the chain's next nonce. It goes back with a reorganisation.
func (s *sendState) chainAt(mined uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if mined < s.mined {
		s.gaps = true
	}
	s.mined = mined
	for n := range s.avoid {
		if n < mined {
			delete(s.avoid, n)
		}
	}
	if s.next < mined {
		s.next = mined
	}
}

// foreign notes that a foreign transaction in the pool will use up the nonce.
func (s *sendState) foreign(nonce uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if nonce >= s.mined {
		s.avoid[nonce] = time.Now()
	}
}

// count is the number of transactions in flight.
func (s *sendState) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.byN)
}

// at returns the transaction in flight with the nonce.
func (s *sendState) at(nonce uint64) *inflight {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.byN[nonce]
}

// below returns what is in flight with a nonce below limit, in the order of the nonces.
func (s *sendState) below(limit uint64) []*inflight {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*inflight
	for nonce, t := range s.byN {
		if nonce < limit {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, byNonce)
	return found
}

// lowest returns the hashes of the transactions that are sent now for the lowest nonces in flight; none where more than limit are in flight.
func (s *sendState) lowest(limit int) []common.Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byN) > limit {
		return nil
	}
	hashes := make([]common.Hash, 0, len(s.byN))
	for _, t := range s.byN {
		hashes = append(hashes, t.hash)
	}
	return hashes
}

func byNonce(a, b *inflight) int {
	switch {
	case a.nonce < b.nonce:
		return -1
	case a.nonce > b.nonce:
		return 1
	}
	return 0
}

// unfunded tells whether nothing of ours that a node holds, and that will leave the account with its funds once it is mined, is in flight below t.
func (s *sendState) unfunded(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nonce, other := range s.byN {
		if nonce < t.nonce && nonce >= s.mined && other.possible {
			return false
		}
	}
	return true
}

// needless tells whether a filler holds up nothing: only fillers are in flight above it.
func (s *sendState) needless(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nonce, other := range s.byN {
		if nonce > t.nonce && !other.filler {
			return false
		}
	}
	return true
}

// due is what should be sent again now: what was planned, and when the chain's next nonce has not moved, the lowest that no head has brought for
// `rebroadcast`, because a node may have lost them. stuck are those of them whose fee is to be raised.
func (s *sendState) due(now time.Time, rebroadcast, bump time.Duration, limit int) (again, stuck []*inflight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for nonce, since := range s.avoid {
		if now.Sub(since) >= rebroadcast { // perhaps the pool has dropped it
			delete(s.avoid, nonce)
			s.gaps = true
		}
	}
	var found []*inflight
	for _, t := range s.byN {
		planned := !t.again.IsZero() && !now.Before(t.again)
		lost := t.again.IsZero() && now.Sub(t.offered) >= rebroadcast
		if t.nonce >= s.mined && (planned || lost) {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, byNonce)
	for i, t := range found {
		if i == limit {
			break
		}
		first := t.nonce < s.mined+stuckWindow
		if t.reprice || (!t.explicit && first && t.possible && t.refusals == 0 && now.Sub(t.bumped) >= bump) {
			stuck = append(stuck, t)
		} else {
			again = append(again, t)
		}
		t.again, t.offered, t.reprice = time.Time{}, now, false
	}
	return again, stuck
}

// stuckWindow is how many of the lowest nonces are bumped at once: the later ones only wait for them.
const stuckWindow = 16

// oldest tells since when the oldest transaction in flight has its nonce.
func (s *sendState) oldest() (time.Time, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var oldest time.Time
	for _, t := range s.byN {
		if oldest.IsZero() || t.assigned.Before(oldest) {
			oldest = t.assigned
		}
	}
	return oldest, !oldest.IsZero()
}

// planned tells whether something is to be sent again at a certain time, or in another version.
func (s *sendState) planned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.byN {
		if (!t.again.IsZero() || t.rejected != nil) && t.nonce >= s.mined {
			return true
		}
	}
	return false
}
