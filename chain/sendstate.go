package chain

import (
	"slices"
	"sync"
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
	fees      fees          // of the last one
	explicit  bool          // the fees are the caller's wish: they are not changed
	cancelAt  int           // hashes from this index on cancel the operation; never
	assigned  time.Time

	// possible: some node may have one of its transactions. From then on it must not get another nonce unless its own was used up by a foreign one.
	possible bool
	offered  time.Time // when it was last sent, or first signed
	bumped   time.Time // when its fee was last raised, or it was first signed
	again    time.Time // send it again at this time; zero: not planned
	refusals int       // in a row
	reprice  bool      // send it again with a higher fee
	missing  int       // how often in a row its nonce was used up and none of its transactions found
	missed   time.Time // the first of these times
}

// never is the cancelAt of what nobody has cancelled.
const never = -1

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

// nonces plans the giving of nonces. Holes are used first.
type nonces struct {
	holes []uint64
	next  uint64
	taken map[uint64]struct{} // given out of turn, because they were asked for
	state *sendState
}

// plan begins the giving of nonces. At the top, nonces that were given and are free again are taken back, so that only holes below something
// in flight remain.
func (s *sendState) plan() *nonces {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := &nonces{next: s.next, taken: map[uint64]struct{}{}, state: s}
	if !s.gaps {
		return n
	}
	for n.next > s.mined && s.freeLocked(n.next-1) {
		n.next--
	}
	for i := s.mined; i < n.next; i++ {
		if s.freeLocked(i) {
			n.holes = append(n.holes, i)
		}
	}
	s.gaps = len(n.holes) > 0
	s.next = n.next
	return n
}

func (s *sendState) freeLocked(nonce uint64) bool {
	_, avoided := s.avoid[nonce]
	return s.byN[nonce] == nil && !avoided
}

func (n *nonces) free(nonce uint64) bool {
	if _, taken := n.taken[nonce]; taken {
		return false
	}
	n.state.mu.Lock()
	defer n.state.mu.Unlock()
	return nonce >= n.state.mined && n.state.freeLocked(nonce)
}

// give returns the next free nonce.
func (n *nonces) give() uint64 {
	for len(n.holes) > 0 {
		nonce := n.holes[0]
		n.holes = n.holes[1:]
		if n.free(nonce) {
			n.taken[nonce] = struct{}{}
			return nonce
		}
	}
	for !n.free(n.next) {
		n.next++
	}
	n.taken[n.next] = struct{}{}
	n.next++
	return n.next - 1
}

// giveExactly gives this nonce; false when it is used up or in flight.
func (n *nonces) giveExactly(nonce uint64) bool {
	if !n.free(nonce) {
		return false
	}
	n.taken[nonce] = struct{}{}
	return true
}

// left are the holes that are still open below a nonce in flight, at most limit of them.
func (n *nonces) left(limit int) []uint64 {
	var open []uint64
	for _, nonce := range n.holes {
		if len(open) < limit && n.free(nonce) {
			open = append(open, nonce)
		}
	}
	return open
}

// given makes the plan true, after it was stored. unused says that not all of its nonces were.
func (s *sendState) given(n *nonces, items []*inflight, unused bool) {
	s.add(items...)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next = max(s.next, n.next)
	s.gaps = s.gaps || unused
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

// lowest returns the hashes of the transactions that were signed last for the lowest nonces in flight; none where more than limit are in flight.
func (s *sendState) lowest(limit int) []common.Hash {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byN) > limit {
		return nil
	}
	hashes := make([]common.Hash, 0, len(s.byN))
	for _, t := range s.byN {
		hashes = append(hashes, t.hashes[len(t.hashes)-1])
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

// sent notes that a node has taken the transaction.
func (s *sendState) sent(t *inflight, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.possible, t.refusals, t.again, t.offered = true, 0, time.Time{}, now
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

// planned tells whether something is to be sent again at a certain time.
func (s *sendState) planned() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.byN {
		if !t.again.IsZero() && t.nonce >= s.mined {
			return true
		}
	}
	return false
}

// raised notes that the transaction was signed anew.
func (s *sendState) raised(t *inflight, hash common.Hash, offer fees, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.hashes = append(slices.Clone(t.hashes), hash)
	t.fees, t.bumped = offer, now
}

// notRaised notes that there was no room to raise the fee.
func (s *sendState) notRaised(t *inflight, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.bumped = now
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

// replaced notes that another transaction was signed for the nonce because a client asked for it.
func (s *sendState) replaced(t *inflight, hash common.Hash, offer fees, cancel, explicit bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel && t.cancelAt == never {
		t.cancelAt = len(t.hashes)
	}
	t.hashes = append(slices.Clone(t.hashes), hash)
	now := time.Now()
	t.fees, t.bumped, t.offered, t.explicit = offer, now, now, explicit
	t.again, t.refusals, t.reprice = time.Time{}, 0, false
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
