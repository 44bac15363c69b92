package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

func TestInvokeSucceeds(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	b.submit(t)
	op := b.succeeded(t, b.create(t, b.call(t, a, to, "set", big.NewInt(42))))
	out, ok := op.Mined()
	if !ok || op.TransactionHash == nil || out.TransactionHash != op.TransactionHash.Hex() || len(op.Attempts) != 1 {
		t.Fatalf("output %s, hash %v, attempts %v", op.Output, op.TransactionHash, op.Attempts)
	}
	receipt, err := b.chain.Client().TransactionReceipt(context.Background(), *op.TransactionHash)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(receipt.BlockNumber) != out.BlockNumber || receipt.BlockHash.Hex() != out.BlockHash || fmt.Sprint(receipt.GasUsed) != out.GasUsed {
		t.Fatalf("the output %+v does not fit the receipt %+v", out, receipt)
	}
	got, err := b.client.Call(context.Background(), CallRequest{To: to, Data: a.Parsed.Methods["get"].ID})
	if err != nil || new(big.Int).SetBytes(got).Int64() != 42 {
		t.Fatalf("get answered %x, %v", got, err)
	}
	tx, err := b.db.Transaction(context.Background(), "default", op.Transaction)
	if err != nil || tx.Type != store.TxInvoke || len(tx.BlockchainIDs) != 1 || tx.BlockchainIDs[0] != op.TransactionHash.Hex() {
		t.Fatalf("transaction %+v, %v", tx, err)
	}
	events := b.eventsAfter(t, 0)
	if len(events) != 1 {
		t.Fatalf("events %v", events)
	}
	var body store.Operation
	if err := json.Unmarshal([]byte(events[0].Body), &body); err != nil {
		t.Fatal(err)
	}
	if e := events[0]; e.Type != store.EventInvokeSucceeded || e.Reference != op.ID || *e.Transaction != op.Transaction || body.ID != op.ID ||
		body.Status != store.OpSucceeded {
		t.Fatalf("event %+v", e)
	}
}

func TestContractCreationTellsTheAddress(t *testing.T) {
	b := newSubmitBench(t, 0)
	b.submit(t)
	id := b.create(t, store.NewOperation{
		Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, Data: contracts.SimpleStorage().Bytecode, Gas: 1_000_000,
	})
	out, _ := b.succeeded(t, id).Mined()
	code, err := b.chain.Client().CodeAt(context.Background(), common.HexToAddress(out.ContractAddress), nil)
	if err != nil || len(code) == 0 {
		t.Fatalf("no code at %q: %v", out.ContractAddress, err)
	}
}

func TestMinedFailureIsExplained(t *testing.T) {
	b := newSubmitBench(t, 0)
	zoo := contracts.Zoo()
	to := b.chain.Deploy(t, zoo, "zoo")
	iface, err := contract.FromABI(zoo.ABI)
	if err != nil {
		t.Fatal(err)
	}
	b.submit(t)
	for _, c := range []struct {
		method string
		args   []any
		gas    uint64
		name   string
		text   string
	}{
		{"failDenied", []any{big.NewInt(7), "no\x00way\xff"}, 100_000, "Denied", "Denied"},
		{"failWith", []any{"because"}, 100_000, "Error", "because"},
		{"failSilently", nil, 100_000, "", "reverted"},
		{"failAssert", nil, 100_000, "Panic", ""},
		{"burnGas", []any{big.NewInt(1_000_000)}, 50_000, "", "gas"},
	} {
		n := b.call(t, zoo, to, c.method, c.args...)
		n.Errors, n.Options.Gas = iface.Errors, &c.gas
		op := b.await(t, b.create(t, n))
		if op.Status != store.OpFailed || !strings.Contains(op.Error, c.text) {
			t.Errorf("%s: %s %q", c.method, op.Status, op.Error)
		}
		if c.name != "" && (op.Revert == nil || op.Revert.Name != c.name) {
			t.Errorf("%s: revert %+v", c.method, op.Revert)
		}
		if _, mined := op.Mined(); !mined {
			t.Errorf("%s: no output: %s", c.method, op.Output)
		}
	}
	for key, n := range b.eventsOf(t) {
		if n != 1 || !strings.HasPrefix(key, store.EventInvokeFailed) {
			t.Errorf("%d events %s", n, key)
		}
	}
}

func TestManyAtOnceGetGaplessNonces(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	b.submit(t)
	const n = 500
	ids := make([]uuid.UUID, n)
	var group errgroup.Group
	group.SetLimit(64)
	for i := range ids {
		group.Go(func() error {
			op, _, err := b.db.CreateOperation(context.Background(), b.call(t, a, to, "set", big.NewInt(int64(i))))
			ids[i] = op.ID
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	b.endsOnce(t, ids, before)
}

func TestConfirmationsAreWaitedFor(t *testing.T) {
	b := newSubmitBench(t, 3, chaintest.Manual())
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
	op, err := b.db.Operation(context.Background(), "default", id)
	if err != nil || op.Status != store.OpPending {
		t.Fatalf("%s right after it was mined, %v", op.Status, err)
	}
	b.chain.Mine(3)
	b.succeeded(t, id)
}

func TestStuckTransactionIsBumped(t *testing.T) {
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	cfg := SubmitterConfig{
		Chain: "dev", PollInterval: 20 * time.Millisecond, BumpAfter: 100 * time.Millisecond, RebroadcastAfter: 50 * time.Millisecond,
		MaxFeePerGas: big.NewInt(1e12),
	}
	s := NewSubmitter(cfg, b.db, b.client, b.signer, testLog(t))
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	id := b.create(t, b.call(t, a, to, "set", big.NewInt(1)))
	deadline := time.Now().Add(10 * time.Second)
	suggest := func(f fees) { // what others pay, from now on
		s.market.mu.Lock()
		defer s.market.mu.Unlock()
		s.market.last, s.market.asked = f, time.Now().Add(time.Hour)
	}
	for n := int64(1); ; {
		op, err := b.db.Operation(context.Background(), "default", id)
		if err != nil {
			t.Fatal(err)
		}
		if int64(len(op.Attempts)) == n {
			if n == 3 {
				break
			}
			n++
			suggest(fees{max: big.NewInt(4e9 << n), tip: big.NewInt(1e9 << n)})
		}
		if time.Now().After(deadline) {
			t.Fatalf("attempts %v", op.Attempts)
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.chain.SetAutomine(true)
	op := b.succeeded(t, id)
	if op.TransactionHash == nil || *op.TransactionHash == op.Attempts[0].Hash {
		t.Fatalf("mined %v of %v", op.TransactionHash, op.Attempts)
	}
}

func TestIdempotencyKey(t *testing.T) {
	b := newSubmitBench(t, 0)
	n := store.NewOperation{
		Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, To: &b.key, Gas: 21_000, IdempotencyKey: "once", BodyHash: []byte{1},
	}
	ctx := context.Background()
	first, existed, err := b.db.CreateOperation(ctx, n)
	if err != nil || existed {
		t.Fatal(existed, err)
	}
	again, existed, err := b.db.CreateOperation(ctx, n)
	if err != nil || !existed || again.ID != first.ID {
		t.Fatal(again.ID, existed, err)
	}
	n.BodyHash = []byte{2}
	if _, _, err := b.db.CreateOperation(ctx, n); err == nil || !strings.Contains(err.Error(), "once") {
		t.Fatal(err)
	}
}

func TestSubmitsOverHTTP(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	c, err := Dial(context.Background(), Config{Name: "dev", URLs: []string{b.chain.HTTPURL()}, PollInterval: 10 * time.Millisecond}, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	ws := b.client
	b.client = c
	defer func() { b.client = ws }()
	b.submit(t)
	var ids []uuid.UUID
	for i := range 20 {
		ids = append(ids, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(i)))))
	}
	for _, id := range ids {
		b.succeeded(t, id)
	}
}

func TestSubmitterIsMeasured(t *testing.T) {
	b := newSubmitBench(t, 0)
	registry := prometheus.NewRegistry()
	b.submit(t, func(c *SubmitterConfig) { c.Registerer = registry })
	NewSubmitter(SubmitterConfig{Chain: "other", Registerer: registry}, b.db, b.client, b.signer, testLog(t)) // a second chain shares the metrics
	b.succeeded(t, b.create(t, store.NewOperation{Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, To: &b.key, Gas: 21_000}))
	until(t, "it is counted", func() bool { // a moment after the operation has ended
		families, err := registry.Gather()
		if err != nil {
			t.Fatal(err)
		}
		values := map[string]float64{}
		for _, f := range families {
			for _, m := range f.GetMetric() {
				values[f.GetName()] += m.GetCounter().GetValue()
			}
		}
		return values["pactwire_submitter_sent_total"] == 1 && values["pactwire_submitter_finished_total"] == 1
	})
}
