package chain

import (
	"math/big"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// A foreign transaction is undone while as many transactions as may be in flight wait behind its nonce: nothing of them can be mined before that is filled.
func TestUndoneForeignTransactionHoldsUpNobody(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 1, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	if !tryForeign(t, b) {
		t.Fatal("the foreign transaction was refused")
	}
	b.chain.Mine(1)
	b.submit(t, func(c *SubmitterConfig) { c.MaxInFlight, c.RebroadcastAfter = 3, 100*time.Millisecond })
	var ids []uuid.UUID
	for i := range 5 {
		ids = append(ids, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(i)))))
	}
	until(t, "all that may be in flight is", func() bool {
		rows, err := b.db.SignedOutbox(t.Context(), "dev", b.key)
		return err == nil && len(rows) == 3
	})
	b.chain.ReorgDropping(t, 1)
	until(t, "all have ended", func() bool {
		b.chain.Mine(1)
		for _, id := range ids {
			if op := b.get(t, id); !op.Terminal() {
				return false
			}
		}
		return true
	})
	for _, id := range ids {
		b.succeeded(t, id)
	}
	b.oneEventEach(t, ids)
	if now := b.minedNonce(t, b.key); now != 6 {
		t.Errorf("the chain's nonce is %d after five operations and a transfer of nothing", now)
	}
}
