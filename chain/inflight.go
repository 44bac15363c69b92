package chain

import (
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
)

// inflight is one transaction of ours that has a nonce and has not ended.
type inflight struct {
	operation uuid.UUID
	filler    bool
	nonce     uint64
	hashes    []common.Hash // of every transaction signed for the operation; any of them may be mined
	version                 // what is sent now
	earlier   []version     // what was signed for the nonce before that, without what was refused
	wished    bool          // a client has asked for what is sent now
	cancelAt  int           // hashes from this index on cancel the operation; never
	assigned  time.Time

	// possible: some node may have one of its transactions. From then on it must not get another nonce unless its own was used up by a foreign one.
	possible bool
	offered  time.Time  // when it was last sent, or first signed
	bumped   time.Time  // when its fee was last raised, or it was first signed
	again    time.Time  // send it again at this time; zero: not planned
	refusals int        // in a row
	reprice  bool       // send it again with a higher fee
	rejected *rejection // the node does not take what is sent now
	noted    bool       // that is known already
	outbids  int        // how often it was raised because the pool asked for more
	declined int        // how often one was gone back to
	missing  int        // how often in a row its nonce was used up and none of its transactions found
	missed   time.Time  // the first of these times

	overlooked bool   // a node has it and will not mine it
	judged     bool   // it was once judged whether blocks pass it over,
	judgedAt   uint64 // at this block
}

// never is the cancelAt of what nobody has cancelled.
const never = -1

// version is one of the transactions that were signed for a nonce.
type version struct {
	hash     common.Hash
	fees     fees
	explicit bool // the fees are the caller's wish: they are not changed
	taken    bool // a node has taken it
}

// sent notes that a node has taken the transaction with the hash, or one in its place.
func (s *sendState) sent(t *inflight, hash common.Hash, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.possible, t.refusals, t.again, t.offered = true, 0, time.Time{}, now
	t.taken = t.taken || t.hash == hash
}

// unclear notes that the transaction may have reached a node.
func (s *sendState) unclear(t *inflight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.possible = true
}

// refused plans another try, later each time, and returns how often in a row the transaction was refused.
func (s *sendState) refused(t *inflight, now time.Time, reprice bool) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.refusals++
	t.reprice = t.reprice || reprice
	t.again = now.Add(min(50*time.Millisecond<<min(t.refusals-1, 8), 10*time.Second))
	if reprice && t.refusals == 1 {
		t.again = now
	}
	signal(s.kick)
	return t.refusals
}

// raised notes that the transaction was signed anew.
func (s *sendState) raised(t *inflight, hash common.Hash, offer fees, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.supersede(version{hash: hash, fees: offer})
	t.bumped, t.wished = now, false
}

// notRaised notes that there was no room to raise the fee.
func (s *sendState) notRaised(t *inflight, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.bumped = now
}

// replaced notes that another transaction was signed for the nonce because a client asked for it.
func (s *sendState) replaced(t *inflight, hash common.Hash, offer fees, cancel, explicit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel && t.cancelAt == never {
		t.cancelAt = len(t.hashes)
	}
	t.supersede(version{hash: hash, fees: offer, explicit: explicit})
	now := time.Now()
	t.bumped, t.offered, t.wished, t.outbids = now, now, true, 0
	t.again, t.refusals, t.reprice = time.Time{}, 0, false
}

func (s *sendState) feesOf(t *inflight) fees {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.fees
}

func (s *sendState) hashesOf(t *inflight) []common.Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.hashes
}

func (s *sendState) isPossible(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.possible
}

// isTaken tells whether a node is known to have taken any of its transactions.
func (s *sendState) isTaken(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.taken || slices.ContainsFunc(t.earlier, func(v version) bool { return v.taken })
}

// isIdle tells whether no node has any of its transactions, and none is on its way to one.
func (s *sendState) isIdle(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !t.possible && !t.again.IsZero()
}

func (s *sendState) isExplicit(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.explicit
}

// isCancelled tells whether a cancellation was signed.
func (s *sendState) isCancelled(t *inflight) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.cancelAt != never
}

// cancels tells whether the transaction with the hash is one that cancels the operation.
func (s *sendState) cancels(t *inflight, hash common.Hash) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.cancelAt != never && slices.Index(t.hashes, hash) >= t.cancelAt
}

// lost notes that the nonce is used up and none of the transactions found; true when that has been so long enough, and looked at often enough, to
// be no mere delay of the node's index.
func (s *sendState) lost(t *inflight, now time.Time, after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.missing == 0 {
		t.missed = now
	}
	t.missing++
	return t.missing >= 3 && now.Sub(t.missed) >= after
}

// missingFor tells for how long none of the transactions has been found.
func (s *sendState) missingFor(t *inflight, now time.Time) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.missing == 0 {
		return 0
	}
	return now.Sub(t.missed)
}

// found takes back what lost noted.
func (s *sendState) found(t *inflight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.missing = 0
}
