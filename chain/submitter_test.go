package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// submitBench is a database, a chain and a client, without a submitter.
type submitBench struct {
	db     *store.DB
	url    string // of the database
	chain  *chaintest.Chain
	client *Client
	signer Signer
	key    common.Address

	mu      sync.Mutex
	running *Submitter // the last one that was started
	created int
}

func testLog(t testing.TB) *slog.Logger {
	if os.Getenv("PACTWIRE_TEST_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func newSubmitBench(t testing.TB, confirmations uint64, options ...chaintest.Option) *submitBench {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	b := &submitBench{chain: chaintest.New(t, options...), url: pgtest.New(t)}
	var err error
	if b.db, err = store.Open(ctx, store.Config{URL: b.url, LeaseTTL: 2 * time.Second}, testLog(t)); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Name: "dev", URLs: []string{b.chain.WSURL()}, Confirmations: confirmations}
	if b.client, err = Dial(ctx, cfg, testLog(t)); err != nil {
		t.Fatal(err)
	}
	var group errgroup.Group
	group.Go(func() error { return b.db.Run(ctx) })
	group.Go(func() error { return b.client.Run(ctx) })
	t.Cleanup(func() {
		stop()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		b.client.Close()
		if err := b.db.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := b.db.EnsureChain(ctx, "dev", b.client.ChainID(), b.client.Genesis()); err != nil {
		t.Fatal(err)
	}
	if err := b.db.EnsureNamespace(ctx, "default", "dev"); err != nil {
		t.Fatal(err)
	}
	b.key = b.chain.Accounts[0].Address
	b.signer = NewDevSigner(b.chain.Accounts[0].Key)
	return b
}

// submit runs a submitter until the returned function is called, or the test ends.
func (b *submitBench) submit(t testing.TB, change ...func(*SubmitterConfig)) (stop func()) {
	t.Helper()
	cfg := SubmitterConfig{
		Chain: "dev", MaxInFlight: 1024, PollInterval: 50 * time.Millisecond, RebroadcastAfter: 500 * time.Millisecond, ForeignAfter: 100 * time.Millisecond,
	}
	for _, c := range change {
		c(&cfg)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	s := NewSubmitter(cfg, b.db, b.client, b.signer, testLog(t))
	go func() { done <- s.Run(ctx) }()
	b.mu.Lock()
	b.running = s
	b.mu.Unlock()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func (b *submitBench) call(t testing.TB, a contracts.Artifact, to common.Address, method string, args ...any) store.NewOperation {
	t.Helper()
	data, err := a.Parsed.Pack(method, args...)
	if err != nil {
		t.Fatal(err)
	}
	return store.NewOperation{Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, To: &to, Data: data, Gas: 100_000}
}

// create has an operation accepted in one of the two ways: by the submitter, if one was started, or past it into the outbox.
func (b *submitBench) create(t testing.TB, n store.NewOperation) uuid.UUID {
	t.Helper()
	b.mu.Lock()
	b.created++
	accept := b.db.CreateOperation
	if b.running != nil && b.created%3 > 0 {
		accept = b.running.Accept
	}
	b.mu.Unlock()
	op, _, err := accept(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return op.ID
}

// await waits for the operation's end.
func (b *submitBench) await(t testing.TB, id uuid.UUID) store.Operation {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		op, err := b.db.Operation(context.Background(), "default", id)
		if err != nil {
			t.Fatal(err)
		}
		if op.Terminal() {
			return op
		}
		if time.Now().After(deadline) {
			t.Fatalf("operation %s is still %s (nonce %v, attempts %v)", id, op.Status, deref(op.Nonce), op.Attempts)
		}
		time.Sleep(5 * time.Millisecond) // a poll with a deadline
	}
}

func deref(n *uint64) any {
	if n == nil {
		return nil
	}
	return *n
}

func (b *submitBench) succeeded(t testing.TB, id uuid.UUID) store.Operation {
	t.Helper()
	op := b.await(t, id)
	if op.Status != store.OpSucceeded {
		t.Fatalf("operation %s is %s: %s", id, op.Status, op.Error)
	}
	return op
}

func (b *submitBench) minedNonce(t testing.TB, key common.Address) uint64 {
	t.Helper()
	n, err := b.chain.Client().NonceAt(context.Background(), key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (b *submitBench) eventsAfter(t testing.TB, after int64) []store.Event {
	t.Helper()
	page, err := b.db.EventsAfter(context.Background(), store.EventQuery{Namespace: "default", After: after, Limit: 500, Bytes: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	return page.Events
}

// eventsOf counts the events of the history by type and reference.
func (b *submitBench) eventsOf(t testing.TB) map[string]int {
	t.Helper()
	counts := map[string]int{}
	var last int64
	for {
		events := b.eventsAfter(t, last)
		if len(events) == 0 {
			return counts
		}
		for _, e := range events {
			counts[e.Type+" "+e.Reference.String()]++
			last = e.Sequence
		}
	}
}

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

// endsOnce checks that all operations succeed, that each was mined once, with no other transaction of the key in between, and that each has one event.
func (b *submitBench) endsOnce(t testing.TB, ids []uuid.UUID, before uint64) {
	t.Helper()
	used := map[uint64]bool{}
	for _, id := range ids {
		op := b.succeeded(t, id)
		tx, _, err := b.chain.Client().TransactionByHash(context.Background(), *op.TransactionHash)
		if err != nil {
			t.Fatal(err)
		}
		if used[tx.Nonce()] || tx.Nonce() < before || tx.Nonce() >= before+uint64(len(ids)) {
			t.Fatalf("nonce %d of %s", tx.Nonce(), id)
		}
		used[tx.Nonce()] = true
	}
	if now := b.minedNonce(t, b.key); now != before+uint64(len(ids)) {
		t.Fatalf("the chain's nonce went from %d to %d for %d operations", before, now, len(ids))
	}
	b.oneEventEach(t, ids)
}

func (b *submitBench) oneEventEach(t testing.TB, ids []uuid.UUID) {
	t.Helper()
	events := b.eventsOf(t)
	if len(events) != len(ids) {
		t.Fatalf("%d events for %d operations", len(events), len(ids))
	}
	for key, n := range events {
		if n != 1 {
			t.Fatalf("%d events %s", n, key)
		}
	}
}

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

func TestRefusedTransactionHoldsUpNobody(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	var good, bad []uuid.UUID
	one := big.NewInt(1)
	for i := range 12 {
		good = append(good, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(i)))))
		n := b.call(t, a, to, "set", one)
		switch i % 4 {
		case 0: // less gas than the bytes cost
			gas := uint64(100)
			n.Options.Gas = &gas
		case 1: // more than the account has
			n.Value = new(big.Int).Lsh(one, 200)
		case 2: // more than a block can hold
			gas := uint64(1 << 50)
			n.Options.Gas = &gas
		case 3: // a fee below the chain's
			n.Options.GasPrice = big.NewInt(0)
		}
		bad = append(bad, b.create(t, n))
	}
	b.submit(t)
	for _, id := range good {
		b.succeeded(t, id)
	}
	for i, id := range bad {
		if op := b.await(t, id); op.Status != store.OpFailed || op.Error == "" {
			t.Errorf("bad operation %d: %s %q", i, op.Status, op.Error)
		}
	}
	good = append(good, b.create(t, b.call(t, a, to, "set", one)))
	b.succeeded(t, good[len(good)-1])
	b.oneEventEach(t, append(good, bad...))
}

func TestNonceAskedFor(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	b.submit(t)
	b.succeeded(t, b.create(t, b.call(t, a, to, "set", big.NewInt(1))))
	with := func(nonce uint64) store.NewOperation {
		n := b.call(t, a, to, "set", big.NewInt(2))
		n.Options.Nonce = &nonce
		return n
	}
	if op := b.await(t, b.create(t, with(0))); op.Status != store.OpFailed || !strings.Contains(op.Error, "nonce 0") {
		t.Fatalf("a used nonce: %s %q", op.Status, op.Error)
	}
	if op := b.await(t, b.create(t, with(1<<63))); op.Status != store.OpFailed || !strings.Contains(op.Error, "too far") {
		t.Fatalf("a nonce far away: %s %q", op.Status, op.Error)
	}
	next := b.minedNonce(t, b.key)
	ahead := b.create(t, with(next+1)) // waits for the one before
	first := b.create(t, b.call(t, a, to, "set", big.NewInt(3)))
	b.succeeded(t, first)
	b.succeeded(t, ahead)
	b.succeeded(t, b.create(t, with(next+2)))
	b.succeeded(t, b.create(t, b.call(t, a, to, "set", big.NewInt(4))))
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

func TestPoorKeyEndsItsOperations(t *testing.T) {
	b := newSubmitBench(t, 0)
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	b.key, b.signer = crypto.PubkeyToAddress(key.PublicKey), NewDevSigner(key)
	b.submit(t)
	var ids []uuid.UUID
	for range 30 {
		ids = append(ids, b.create(t, store.NewOperation{Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, To: &b.key, Gas: 21_000}))
	}
	for _, id := range ids {
		if op := b.await(t, id); op.Status != store.OpFailed || !strings.Contains(op.Error, "cannot pay") {
			t.Fatalf("%s %q", op.Status, op.Error)
		}
	}
	// Once there are funds it goes on.
	b.chain.Await(t, b.chain.Send(t, 2, &b.key, big.NewInt(1e18), nil).Hash())
	b.succeeded(t, b.create(t, store.NewOperation{Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, To: &b.key, Gas: 21_000}))
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

func TestSubmitterIsMeasured(t *testing.T) {
	b := newSubmitBench(t, 0)
	registry := prometheus.NewRegistry()
	b.submit(t, func(c *SubmitterConfig) { c.Registerer = registry })
	NewSubmitter(SubmitterConfig{Chain: "other", Registerer: registry}, b.db, b.client, b.signer, testLog(t)) // a second chain shares the metrics
	b.succeeded(t, b.create(t, store.NewOperation{Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, To: &b.key, Gas: 21_000}))
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
	if values["pactwire_submitter_sent_total"] != 1 || values["pactwire_submitter_finished_total"] != 1 {
		t.Fatalf("%v", values)
	}
}
