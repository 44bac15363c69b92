package chain

import (
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// supersede puts another version in the place of what is sent now. The state is locked.
func (t *inflight) supersede(v version) {
	if t.rejected == nil && !t.noted { // what was refused is nothing to go back to
		t.earlier = append(slices.Clone(t.earlier), t.version)
	}
	t.hashes = append(slices.Clone(t.hashes), v.hash)
	t.version, t.rejected, t.noted = v, nil, false
}

// replacement is what has to be known of a transaction to judge its refusal.
type replacement struct {
	version
	some   bool // it was signed in the place of another one
	wished bool
}

func (s *sendState) replacing(t *inflight) replacement {
	s.mu.Lock()
	defer s.mu.Unlock()
	return replacement{t.version, len(t.earlier) > 0, t.wished}
}

// reject notes that the node does not take what is sent now: the preparer decides what to send instead.
func (s *sendState) reject(t *inflight, r *rejection, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.hash != r.hash {
		return
	}
	t.rejected, t.refusals, t.again, t.reprice, t.offered = r, 0, time.Time{}, false, now
	signal(s.kick)
}

// rejections are the transactions that were rejected, in the order of the nonces.
func (s *sendState) rejections() []*inflight {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*inflight
	for nonce, t := range s.byN {
		if t.rejected != nil && nonce >= s.mined {
			found = append(found, t)
		}
	}
	slices.SortFunc(found, byNonce)
	return found
}

func (s *sendState) rejectionOf(t *inflight) rejection {
	s.mu.Lock()
	defer s.mu.Unlock()
	return *t.rejected
}

func (s *sendState) outbidsOf(t *inflight) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.outbids
}

// outbid notes that the rejected transaction was signed anew with a higher fee.
func (s *sendState) outbid(t *inflight, hash common.Hash, offer fees, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.supersede(version{hash: hash, fees: offer})
	t.outbids++
	t.bumped, t.offered = now, now
}

// goingBack is the version to go back to: the last one that a node has taken, or the last one when nobody knows of any. There is none of what is cancelled: what
// would do the operation after all is not sent again.
func (s *sendState) goingBack(t *inflight) (version, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(t.earlier) == 0 || t.cancelAt != never {
		return version{}, false
	}
	for _, v := range slices.Backward(t.earlier) {
		if v.taken {
			return v, true
		}
	}
	return t.earlier[len(t.earlier)-1], true
}

// wentBack notes that an earlier version is sent again. After each time, our own raising of the fee waits longer.
func (s *sendState) wentBack(t *inflight, hash common.Hash, now time.Time, bump time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(t.earlier, func(v version) bool { return v.hash == hash })
	t.version, t.earlier = t.earlier[i], t.earlier[:i]
	t.rejected, t.noted, t.wished, t.outbids, t.offered = nil, false, false, 0, now
	t.bumped = now.Add(bump << min(t.declined, 6))
	t.declined++
}

// rest has the rejected transaction sent again when it is due. It returns true the first time.
func (s *sendState) rest(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := !t.noted
	t.rejected, t.noted = nil, true
	return first
}
