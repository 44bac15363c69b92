package chain

import (
	"context"
	"fmt"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
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

func TestForeignUseOfTheKey(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	b.submit(t)
	var ids []uuid.UUID
	foreign := 0
	for round := range 5 {
		for i := range 3 { // a second program sends with the same key, beside the submitter
			if tryForeign(t, b) {
				foreign++
			}
			ids = append(ids, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(round*10+i)))))
		}
		for _, id := range ids {
			b.succeeded(t, id)
		}
	}
	if foreign == 0 {
		t.Fatal("no foreign transaction got through")
	}
	b.oneEventEach(t, ids)
	deadline := time.Now().Add(10 * time.Second)
	for b.minedNonce(t, b.key) != before+uint64(len(ids)+foreign) {
		if time.Now().After(deadline) {
			t.Fatalf("nonce %d after %d, %d operations and %d foreign transactions", b.minedNonce(t, b.key), before, len(ids), foreign)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// tryForeign sends a transfer with the submitter's key, as another program would; it may lose the race for the nonce.
func tryForeign(t testing.TB, b *submitBench) bool {
	t.Helper()
	ctx := context.Background()
	nonce, err := b.chain.Client().PendingNonceAt(ctx, b.key)
	if err != nil {
		t.Fatal(err)
	}
	to := common.Address{1}
	tx, err := types.SignNewTx(b.chain.Accounts[0].Key, types.LatestSignerForChainID(b.client.ChainID()), &types.DynamicFeeTx{
		ChainID: b.client.ChainID(), Nonce: nonce, To: &to, Value: big.NewInt(1), Gas: 21_000, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(2_000_000_000),
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.chain.Client().SendTransaction(ctx, tx) == nil
}

func TestForeignTransactionTakesAnAssignedNonce(t *testing.T) {
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	stop := b.submit(t)
	stop()
	// Assigned and stored, never sent: the foreign transaction takes the nonce meanwhile.
	id := b.create(t, b.call(t, a, to, "set", big.NewInt(5)))
	s := NewSubmitter(SubmitterConfig{Chain: "dev", MaxInFlight: 10}, b.db, b.client, b.signer, testLog(t))
	err := b.db.WithLease(context.Background(), fmt.Sprintf("submitter/dev/%s", b.key.Hex()), func(ctx context.Context, lease store.Lease) error {
		k := s.newOwner(b.key, lease)
		if err := k.restore(ctx); err != nil {
			return err
		}
		_, err := k.assign(ctx)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !tryForeign(t, b) {
		t.Fatal("the foreign transaction was refused")
	}
	b.chain.Mine(1)
	b.chain.SetAutomine(true)
	b.submit(t)
	op := b.succeeded(t, id)
	if len(op.Attempts) != 2 || *op.TransactionHash != op.Attempts[1].Hash {
		t.Fatalf("attempts %v, mined %v", op.Attempts, op.TransactionHash)
	}
}
