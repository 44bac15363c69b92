package chain

import (
	"encoding/json"
	"fmt"
	"math/big"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/store"
)

// firstWith is true for the transaction with the nonce that came first.
func firstWith(nonce uint64) func(*types.Transaction) bool {
	var first atomic.Pointer[common.Hash]
	return func(tx *types.Transaction) bool {
		hash := tx.Hash()
		return tx.Nonce() == nonce && (first.CompareAndSwap(nil, &hash) || *first.Load() == hash)
	}
}

// TestWhatTheNodeForgetsToMineIsReplaced has a node that knows a transaction and never mines it, as anvil's pool does when it adds one at the moment that the one
// before it is mined. The market asks for no more than was offered.
func TestWhatTheNodeForgetsToMineIsReplaced(t *testing.T) {
	t.Parallel()
	b := newPickyBench(t)
	before := b.minedNonce(t, b.key)
	var ids []uuid.UUID
	b.refuse("transaction already imported", firstWith(before))
	b.submit(t, func(cfg *SubmitterConfig) { cfg.RebroadcastAfter = 100 * time.Millisecond })
	for v := range int64(3) {
		ids = append(ids, b.create(t, b.call(t, contracts.SimpleStorage(), b.to, "set", big.NewInt(v+1))))
	}
	op := b.sent(t, ids[0], 2)
	if a := op.Attempts; a[1].Reason != store.AttemptBump || !Replaces(a[1].MaxFeePerGas, a[0].MaxFeePerGas) || a[0].Refused != "" {
		t.Fatalf("attempts %+v", a)
	}
	b.inPool(t, op.Attempts[1].Hash)
	b.chain.SetAutomine(true)
	b.endsOnce(t, ids, before)
	for _, id := range ids[1:] {
		if op := b.get(t, id); len(op.Attempts) != 1 {
			t.Errorf("a later one was raised, too: %+v", op.Attempts)
		}
	}
}

// TestWhatBlocksPassOverIsRaised has miners that leave out what the node says to be offered enough.
func TestWhatBlocksPassOverIsRaised(t *testing.T) {
	t.Parallel()
	b := newPickyBench(t)
	before := b.minedNonce(t, b.key)
	pending := fmt.Sprintf(`"%#x"`, before+1)
	first := firstWith(before)
	var held atomic.Bool
	b.node.set(func(call rpcCall) string {
		if tx := sentWith(call); tx != nil && first(tx) {
			held.Store(true)
			return "already known"
		}
		return ""
	}, func(call rpcCall, result json.RawMessage) json.RawMessage {
		if held.Load() && call.Method == "eth_getTransactionCount" && string(call.Params[1]) == `"pending"` {
			return json.RawMessage(pending)
		}
		return result
	})
	b.submit(t, func(cfg *SubmitterConfig) {
		cfg.RebroadcastAfter, cfg.BumpAfter = 50*time.Millisecond, 100*time.Millisecond
	})
	id := b.create(t, b.call(t, contracts.SimpleStorage(), b.to, "set", big.NewInt(1)))
	until(t, "it is raised as blocks pass", func() bool {
		b.chain.Mine(1)
		return len(b.get(t, id).Attempts) > 1
	})
	b.chain.SetAutomine(true)
	b.endsOnce(t, []uuid.UUID{id}, before)
}

func TestWhenBlocksPassATransactionOver(t *testing.T) {
	s := newSendState(5)
	s.chainAt(5)
	next, later := &inflight{nonce: 5}, &inflight{nonce: 6}
	s.add(next, later)
	type step struct {
		overlooked bool
		head       uint64
		want       bool
	}
	for i, c := range []step{
		{false, 100, false}, // from here on
		{false, 102, false},
		{false, 103, true},
		{false, 105, false},
		{true, 105, true}, // what the node will not mine needs no more than a new block
		{true, 105, false},
		{true, 104, false}, // a reorganisation is no progress
		{false, 107, false},
		{false, 108, true},
	} {
		next.overlooked, later.overlooked = c.overlooked, c.overlooked
		if got := s.passedOver(next, c.head); got != c.want {
			t.Errorf("step %d: %v", i, got)
		}
		if s.passedOver(later, c.head) {
			t.Errorf("step %d: one that only waits for another is raised", i)
		}
	}
	fresh := &inflight{nonce: 5, overlooked: true}
	if !s.passedOver(fresh, 0) {
		t.Error("a chain that mines on demand makes no block before the replacement comes")
	}
	often := &inflight{nonce: 5, overlooked: true, hashes: make([]common.Hash, maxBeyond+1)}
	if s.passedOver(often, 0) {
		t.Error("it is raised for ever")
	}
}
