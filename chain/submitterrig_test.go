package chain

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

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
	c := chaintest.New(t, options...)
	return newSubmitBenchAt(t, c, c.WSURL(), confirmations)
}

// newSubmitBenchAt reaches the chain through another URL.
func newSubmitBenchAt(t testing.TB, c *chaintest.Chain, url string, confirmations uint64) *submitBench {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	b := &submitBench{chain: c, url: pgtest.New(t)}
	var err error
	if b.db, err = store.Open(ctx, store.Config{URL: b.url, LeaseTTL: 2 * time.Second}, testLog(t)); err != nil {
		t.Fatal(err)
	}
	cfg := Config{Name: "dev", URLs: []string{url}, Confirmations: confirmations}
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
