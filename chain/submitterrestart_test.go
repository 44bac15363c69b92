package chain

import (
	"context"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

func TestRestartsInTheMiddle(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	const n = 400
	ids := make([]uuid.UUID, n)
	var group errgroup.Group
	group.Go(func() error {
		for i := range ids {
			op, _, err := b.db.CreateOperation(context.Background(), b.call(t, a, to, "set", big.NewInt(int64(i))))
			if err != nil {
				return err
			}
			ids[i] = op.ID
		}
		return nil
	})
	for i := range 12 { // a context that ends anywhere is what a crash is to the submitter: it does nothing more
		stop := b.submit(t, func(c *SubmitterConfig) { c.BatchSize = 20 })
		time.Sleep(time.Duration(10+7*i) * time.Millisecond) // not a synchronisation: where the crash falls is left to chance
		stop()
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	b.submit(t)
	b.endsOnce(t, ids, before)
}

func TestStoredBytesAreSentAgain(t *testing.T) {
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	// A submitter that died between storing and sending: it gave nonces and signed.
	ctx := context.Background()
	var ids []uuid.UUID
	for i := range 3 {
		ids = append(ids, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(i)))))
	}
	s := NewSubmitter(SubmitterConfig{Chain: "dev", MaxInFlight: 10}, b.db, b.client, b.signer, testLog(t))
	err := b.db.WithLease(ctx, fmt.Sprintf("submitter/dev/%s", b.key.Hex()), func(ctx context.Context, lease store.Lease) error {
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
	stored, err := b.db.SignedOutbox(ctx, "dev", b.key)
	if err != nil || len(stored) != 3 {
		t.Fatalf("%d stored, %v", len(stored), err)
	}
	b.submit(t)
	b.chain.SetAutomine(true)
	b.endsOnce(t, ids, before)
	for i, row := range stored {
		op, err := b.db.Operation(ctx, "default", row.Operation)
		if err != nil || len(op.Attempts) != 1 || op.Attempts[0].Hash != row.Hashes[0] || *op.TransactionHash != row.Hashes[0] {
			t.Fatalf("row %d: attempts %v, stored %v, %v", i, op.Attempts, row.Hashes, err)
		}
	}
}

func TestTwoSubmittersShareNothing(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	stop := b.submit(t)
	b.submit(t)
	var ids []uuid.UUID
	for i := range 100 {
		ids = append(ids, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(i)))))
		if i == 50 {
			stop() // one of them, perhaps the owner, goes
		}
	}
	b.endsOnce(t, ids, before)
}

func TestNodeAwayForAWhile(t *testing.T) {
	dir := t.TempDir()
	b := newSubmitBench(t, 0, chaintest.InFolder(dir))
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	address := strings.TrimPrefix(b.chain.WSURL(), "ws://")
	b.submit(t)
	var ids []uuid.UUID
	for i := range 60 {
		ids = append(ids, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(i)))))
		if i == 30 {
			b.chain.Stop(t)
		}
	}
	b.chain = chaintest.New(t, chaintest.InFolder(dir), chaintest.Listen(address))
	b.endsOnce(t, ids, before)
}

func TestReorganisedTransactionIsSentAgain(t *testing.T) {
	b := newSubmitBench(t, 2, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	b.submit(t)
	id := b.create(t, b.call(t, a, to, "set", big.NewInt(1)))
	deadline := time.Now().Add(10 * time.Second)
	for b.minedNonce(t, b.key) == 0 {
		b.chain.Mine(1)
		if time.Now().After(deadline) {
			t.Fatal("the transaction is not mined")
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.chain.ReorgDropping(t, 1)
	if n := b.minedNonce(t, b.key); n != 0 {
		t.Fatalf("nonce %d after the reorganisation", n)
	}
	for {
		op, err := b.db.Operation(context.Background(), "default", id)
		if err != nil {
			t.Fatal(err)
		}
		if op.Terminal() {
			if op.Status != store.OpSucceeded || b.minedNonce(t, b.key) != 1 {
				t.Fatalf("%s %q, nonce %d", op.Status, op.Error, b.minedNonce(t, b.key))
			}
			return
		}
		if time.Now().After(deadline.Add(10 * time.Second)) {
			t.Fatalf("still %s", op.Status)
		}
		b.chain.Mine(1)
		time.Sleep(50 * time.Millisecond)
	}
}
