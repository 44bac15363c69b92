package chain

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// A transaction may stay unmined although it offers what the market asks for. Sending the same bytes again changes nothing then, but a replacement may:
//
//   - The node holds the transaction and will not mine it. Anvil 1.7 keeps one as waiting for the one before it when that one is mined at the very moment; other
//     pools did the like after reorganisations. It answers that it knows the transaction, and its own next nonce for the key is still that transaction's.
//   - The miners ask for more than the node suggests, or do not see it.
//
// Only the lowest nonce is raised for that, since the later ones wait for it; only as the chain goes on, since a chain that stands still mines nothing at any fee;
// and not for ever.

const (
	passedBy  = 3  // blocks that leave a transaction out before its fee is raised although the market asks for no more
	maxBeyond = 20 // transactions for one nonce, after which only the market raises its fee. With an eighth each time, that is ten times the first offer
)

// isNext tells whether the transaction with the hash is what the chain waits for, and has been offered long enough to be looked at closely.
func (s *sendState) isNext(t *inflight, hash common.Hash, now time.Time, after time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return t.nonce == s.mined && t.hash == hash && !t.explicit && now.Sub(t.bumped) >= after
}

// lookFor asks whether the node, which says that it has t already, counts it among what it will mine. If not, its fee is raised at once.
func (k *keySubmitter) lookFor(ctx context.Context, t *inflight) {
	mined, pending, err := k.chainNonces(ctx)
	if err != nil || mined != t.nonce || pending != mined {
		return // when it cannot be asked now, the next time will do
	}
	k.state.overlook(t)
}

// overlook notes that the node has t and will not mine it.
func (s *sendState) overlook(t *inflight) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.overlooked, t.reprice, t.again = true, true, time.Now()
	signal(s.kick)
}

// passedOver tells whether the fee of t is to be raised beyond the market. It is asked when the head is at the block.
func (s *sendState) passedOver(t *inflight, head uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	overlooked := t.overlooked
	t.overlooked = false
	switch {
	case t.nonce != s.mined || len(t.hashes) > maxBeyond:
		return false
	case !t.judged:
		t.judged, t.judgedAt = true, head
		return overlooked
	case head >= t.judgedAt+passedBy, overlooked && head > t.judgedAt:
		t.judgedAt = head
		return true
	}
	return false
}
