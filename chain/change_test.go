package chain

import (
	"bytes"
	"context"
	"math/big"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

// until polls a condition.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !condition(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not in time", what)
		}
	}
}

func (b *submitBench) get(t testing.TB, id uuid.UUID) store.Operation {
	t.Helper()
	op, err := b.db.Operation(context.Background(), "default", id)
	if err != nil {
		t.Fatal(err)
	}
	return op
}

// sent waits until the node's pool has the operation's newest transaction.
func (b *submitBench) sent(t testing.TB, id uuid.UUID, attempts int) store.Operation {
	t.Helper()
	var op store.Operation
	until(t, "the transaction is in the pool", func() bool {
		op = b.get(t, id)
		if len(op.Attempts) < attempts {
			return false
		}
		_, pending, err := b.chain.Client().TransactionByHash(context.Background(), op.Attempts[len(op.Attempts)-1].Hash)
		return err == nil && pending
	})
	return op
}

func (b *submitBench) change(t testing.TB, id uuid.UUID, request store.ChangeRequest) {
	t.Helper()
	if err := b.db.RequestChange(context.Background(), "default", id, request); err != nil {
		t.Fatal(err)
	}
}

func TestCancelledOperationsAreReplacedByNothing(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	stop := b.submit(t)
	before := b.minedNonce(t, b.key)
	first, second := b.create(t, b.call(t, a, to, "set", big.NewInt(1))), b.create(t, b.call(t, a, to, "set", big.NewInt(2)))
	b.sent(t, first, 1)
	b.sent(t, second, 1)
	b.change(t, first, store.ChangeRequest{Kind: store.ChangeCancel})
	op := b.sent(t, first, 2)
	if op.Attempts[1].Reason != store.AttemptCancel || op.Attempts[0].Reason != store.AttemptSubmit || op.Attempts[1].Nonce != op.Attempts[0].Nonce ||
		op.Attempts[1].MaxFeePerGas.Cmp(op.Attempts[0].MaxFeePerGas) <= 0 {
		t.Fatalf("attempts %+v", op.Attempts)
	}
	// A restart remembers that it is a cancellation.
	stop()
	b.submit(t)
	b.chain.SetAutomine(true)
	b.chain.Mine(1)
	op = b.await(t, first)
	if op.Status != store.OpFailed || op.Error != cancelledMined || *op.TransactionHash != op.Attempts[1].Hash || len(op.Attempts) != 2 {
		t.Fatalf("the cancelled operation is %s: %q, mined %v of %+v", op.Status, op.Error, op.TransactionHash, op.Attempts)
	}
	b.succeeded(t, second)
	got, err := b.client.Call(context.Background(), CallRequest{To: to, Data: a.Parsed.Methods["get"].ID})
	if err != nil || new(big.Int).SetBytes(got).Int64() != 2 {
		t.Fatalf("get answered %x, %v", got, err)
	}
	if now := b.minedNonce(t, b.key); now != before+2 {
		t.Fatalf("%d nonces were used, want 2", now-before)
	}
	if err := b.db.RequestChange(context.Background(), "default", first, store.ChangeRequest{Kind: store.ChangeCancel}); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Fatalf("changing an ended operation: %v", err)
	}
	b.oneEventEach(t, []uuid.UUID{first, second})
}

func TestCancellationThatComesTooLateLeavesASuccess(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	stop := b.submit(t)
	id := b.create(t, b.call(t, a, to, "set", big.NewInt(7)))
	b.sent(t, id, 1)
	stop() // nobody sees it mined
	b.chain.Mine(1)
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeCancel})
	b.submit(t)
	b.succeeded(t, id)
	b.oneEventEach(t, []uuid.UUID{id})
}

func TestUnsentOperationsAreDropped(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	call := b.call(t, a, to, "set", big.NewInt(7))
	call.Gas = 2_000_000
	for i := range 20_000 { // more than fits into a row; the contract does not look at it
		call.Data = append(call.Data, byte(i*i>>3))
	}
	id := b.create(t, call)
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeCancel})
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp}) // does not take it back
	b.submit(t)
	op := b.await(t, id)
	if op.Status != store.OpFailed || op.Error != cancelledUnsent || len(op.Attempts) != 0 {
		t.Fatalf("%s: %q, attempts %+v", op.Status, op.Error, op.Attempts)
	}
	// It can be done again, by its own data.
	n, err := b.db.FailedOperation(context.Background(), "default", id)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(n.Data, call.Data) {
		t.Fatalf("%d bytes of call data were kept, want %d", len(n.Data), len(call.Data))
	}
	n.Gas = 2_000_000
	again, err := b.db.RetryOperation(context.Background(), id, n)
	if err != nil {
		t.Fatal(err)
	}
	if old := b.get(t, id); old.Retry == nil || *old.Retry != again.ID || again.Transaction != old.Transaction {
		t.Fatalf("the old operation is %+v, the new one %+v", old, again)
	}
	if _, err := b.db.RetryOperation(context.Background(), id, n); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Fatalf("a second retry: %v", err)
	}
	b.sent(t, again.ID, 1)
	b.chain.Mine(1)
	b.succeeded(t, again.ID)
	if _, err := b.db.FailedOperation(context.Background(), "default", again.ID); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Fatalf("retry of a success: %v", err)
	}
}

func TestSpeedUpRaisesTheFee(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	b.submit(t)
	id := b.create(t, b.call(t, a, to, "set", big.NewInt(7)))
	b.sent(t, id, 1)
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp})
	b.sent(t, id, 2)
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp, MaxFeePerGas: big.NewInt(1e13)})
	b.sent(t, id, 3)
	// Not a tenth more: nothing comes of it, and nothing is held up.
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp, MaxFeePerGas: big.NewInt(1e13 + 1)})
	until(t, "the request is answered", func() bool {
		calls, err := b.db.RequestedOutbox(context.Background(), "dev", b.key, 10)
		return err == nil && len(calls) == 0
	})
	b.chain.Mine(1)
	op := b.succeeded(t, id)
	if len(op.Attempts) != 3 || *op.TransactionHash != op.Attempts[2].Hash || op.Attempts[2].MaxFeePerGas.Cmp(big.NewInt(1e13)) != 0 ||
		op.Attempts[2].Reason != store.AttemptSpeedUp {
		t.Fatalf("attempts %+v, mined %s", op.Attempts, op.TransactionHash)
	}
	for i := range op.Attempts[1:] {
		before, after := op.Attempts[i], op.Attempts[i+1]
		if !Replaces(after.MaxFeePerGas, before.MaxFeePerGas) || !Replaces(after.MaxPriorityFeePerGas, before.MaxPriorityFeePerGas) {
			t.Errorf("attempt %d does not outbid the one before: %+v", i+2, op.Attempts)
		}
	}
}

// What is signed with a key that no process holds any more is followed to its end; what is not waits, is reported, and can be cancelled.
func TestOperationsOfAKeyThatNobodyHolds(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	stop := b.submit(t)
	signed := b.create(t, b.call(t, a, to, "set", big.NewInt(1)))
	b.sent(t, signed, 1)
	stop()
	b.signer = NewDevSigner(b.chain.Accounts[1].Key) // the configuration has changed
	waiting := b.create(t, b.call(t, a, to, "set", big.NewInt(2)))
	registry := prometheus.NewRegistry()
	quick := func(c *SubmitterConfig) {
		c.OrphanInterval, c.OrphanTurn, c.Registerer = 50*time.Millisecond, 500*time.Millisecond, registry
	}
	stop = b.submit(t, quick)
	b.chain.Mine(1)
	b.succeeded(t, signed)
	until(t, "the waiting operation is reported", func() bool { return gauge(t, registry, "pactwire_submitter_orphaned_operations") == 1 })
	if op := b.get(t, waiting); op.Terminal() || len(op.Attempts) != 0 {
		t.Fatalf("the waiting operation is %s, attempts %+v", op.Status, op.Attempts)
	}
	b.change(t, waiting, store.ChangeRequest{Kind: store.ChangeCancel})
	if op := b.await(t, waiting); op.Status != store.OpFailed || op.Error != cancelledUnsent {
		t.Fatalf("%s: %q", op.Status, op.Error)
	}
	until(t, "nothing is reported", func() bool { return gauge(t, registry, "pactwire_submitter_orphaned_operations") == -1 })
	// The key comes back.
	stop()
	b.signer = NewDevSigner(b.chain.Accounts[0].Key)
	b.submit(t, quick)
	last := b.create(t, b.call(t, a, to, "set", big.NewInt(3)))
	b.sent(t, last, 1)
	b.chain.Mine(1)
	b.succeeded(t, last)
}

// gauge is the value of a gauge; -1 when it is not there.
func gauge(t testing.TB, registry *prometheus.Registry, name string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

func TestFeesOfAReplacement(t *testing.T) {
	t.Parallel()
	gwei := func(n int64) *big.Int { return big.NewInt(n * 1e9) }
	market := fees{max: gwei(21), tip: gwei(1)}
	for name, c := range map[string]struct {
		old, want fees
		asked     store.TxOptions
		limit     *big.Int
		ok        bool
	}{
		"by itself":           {old: fees{max: gwei(40), tip: gwei(8)}, want: fees{max: big.NewInt(45e9 + 1), tip: big.NewInt(9e9 + 1)}, ok: true},
		"limit reached":       {old: fees{max: gwei(40), tip: gwei(8)}, limit: gwei(43)},
		"beyond the limit":    {old: fees{max: gwei(40), tip: gwei(8)}, limit: gwei(43), asked: store.TxOptions{MaxFeePerGas: gwei(50)}, want: fees{max: gwei(50), tip: big.NewInt(9e9 + 1)}, ok: true},
		"too little asked":    {old: fees{max: gwei(40), tip: gwei(8)}, asked: store.TxOptions{MaxFeePerGas: gwei(43)}},
		"from nothing":        {old: fees{max: new(big.Int), tip: new(big.Int)}, asked: store.TxOptions{MaxFeePerGas: new(big.Int)}},
		"legacy":              {old: fees{price: gwei(10)}, asked: store.TxOptions{GasPrice: gwei(11)}, want: fees{price: gwei(11)}, ok: true},
		"legacy, replaced":    {old: fees{price: gwei(10)}, asked: store.TxOptions{MaxFeePerGas: gwei(20), MaxPriorityFeePerGas: gwei(11)}, want: fees{max: gwei(20), tip: gwei(11)}, ok: true},
		"a tip that is small": {old: fees{max: gwei(40), tip: gwei(8)}, asked: store.TxOptions{MaxFeePerGas: gwei(50), MaxPriorityFeePerGas: gwei(8)}},
	} {
		got, ok := market.replacing(c.old, c.asked, c.limit)
		if ok != c.ok || ok && (!same(got.max, c.want.max) || !same(got.tip, c.want.tip) || !same(got.price, c.want.price)) {
			t.Errorf("%s: got %v %v, want %v %v", name, got, ok, c.want, c.ok)
		}
	}
}

func same(a, b *big.Int) bool { return (a == nil) == (b == nil) && (a == nil || a.Cmp(b) == 0) }
