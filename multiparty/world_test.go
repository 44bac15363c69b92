package multiparty

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/sharedstorage"
	chainstorage "github.com/pactwire/pactwire/sharedstorage/chain"
	"github.com/pactwire/pactwire/store"
)

const (
	theChain     = "dev"
	theNetwork   = "consortium"
	longestWait  = 60 * time.Second
	deployerName = "deployer"
)

// world is one chain with a pin contract, whose admin is account 9.
type world struct {
	chain *chaintest.Chain
	pin   common.Address

	confirmations uint64 // that the parties wait for
}

const admin = 9

func newWorld(t testing.TB, options ...chaintest.Option) *world {
	t.Helper()
	c := chaintest.New(t, options...)
	return &world{chain: c, pin: c.DeployAs(t, admin, contracts.Pactwire(), deployerName, "")}
}

// register makes an account a member.
func (w *world) register(t testing.TB, account int, name string) {
	t.Helper()
	w.chain.Transact(t, admin, w.pin, contracts.Pactwire(), "addMember", w.chain.Accounts[account].Address, name, "http://"+name)
}

// pinAs pins whatever is given.
func (w *world) pinAs(t testing.TB, account int, batch uuid.UUID, hash [32]byte, location string, payload []byte) {
	t.Helper()
	receipt := w.chain.Transact(t, account, w.pin, contracts.Pactwire(), "pin", NetworkHash(theNetwork), [16]byte(batch), hash, location, payload)
	if receipt.Status != 1 {
		t.Fatal("the pin reverted")
	}
}

// party is a whole member: its own database, reader, submitter, network. Its namespace has a name of its own.
type party struct {
	*Network
	world     *world
	url       string // of the database
	account   int
	namespace string
	storage   sharedstorage.Storage
	db        *store.DB
	client    *chain.Client
	stop      func()
}

// join starts a party on a new database.
func (w *world) join(t testing.TB, account int, namespace string) *party {
	t.Helper()
	return w.joinWith(t, account, namespace, chainstorage.Storage{})
}

// joinWith is join with a shared storage.
func (w *world) joinWith(t testing.TB, account int, namespace string, storage sharedstorage.Storage) *party {
	t.Helper()
	p := &party{world: w, url: pgtest.New(t), account: account, namespace: namespace, storage: storage}
	p.start(t)
	return p
}

func testLog() *slog.Logger {
	out, level := io.Writer(io.Discard), slog.LevelInfo
	if os.Getenv("PACTWIRE_TEST_LOG") != "" {
		out, level = os.Stderr, slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}

// open connects the party to its database and its node.
func (p *party) open(t testing.TB) {
	t.Helper()
	ctx := context.Background()
	var err error
	if p.db, err = store.Open(ctx, store.Config{URL: p.url, MaxConns: 12, LeaseTTL: 2 * time.Second}, testLog()); err != nil {
		t.Fatal(err)
	}
	if p.client, err = chain.Dial(ctx, chain.Config{Name: theChain, URLs: []string{p.world.chain.WSURL()}, Confirmations: p.world.confirmations}, testLog()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.db.EnsureChain(ctx, theChain, p.client.ChainID(), p.client.Genesis()); err != nil {
		t.Fatal(err)
	}
	if err := p.db.EnsureNamespace(ctx, p.namespace, theChain); err != nil {
		t.Fatal(err)
	}
}

// start runs all of the party. It is stopped with the test, or before.
func (p *party) start(t testing.TB) {
	t.Helper()
	p.open(t)
	if p.storage == nil {
		p.storage = chainstorage.Storage{}
	}
	key := p.world.chain.Accounts[p.account]
	if err := p.db.SetPinContract(context.Background(), theChain, p.world.pin, 0); err != nil {
		t.Fatal(err)
	}
	var err error
	p.Network, err = New(Config{
		Namespace: p.namespace, NetworkName: theNetwork, Chain: theChain, Key: key.Address, PinContract: p.world.pin,
	}, p.db, p.client, p.storage, testLog())
	if err != nil {
		t.Fatal(err)
	}
	p.run(t, p.db.Notifier.Run, p.client.Run, p.Network.Run,
		chain.NewReader(chain.ReaderConfig{Chain: theChain, Confirmations: p.world.confirmations}, p.db, p.client, testLog()).Run,
		chain.NewSubmitter(chain.SubmitterConfig{Chain: theChain}, p.db, p.client, chain.NewDevSigner(key.Key), testLog()).Run)
}

func (p *party) run(t testing.TB, parts ...func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var group errgroup.Group
	for _, part := range parts {
		group.Go(func() error { return part(ctx) })
	}
	stopped := false
	p.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := group.Wait(); err != nil {
			t.Errorf("a part of %s ended with %v", p.namespace, err)
		}
		p.client.Close()
		if err := p.db.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(func() { p.stop() })
}

// restart ends everything of the party and starts it anew.
func (p *party) restart(t testing.TB) {
	t.Helper()
	p.stop()
	p.start(t)
}

func eventually(t testing.TB, what string, check func() (bool, error)) {
	t.Helper()
	deadline := time.Now().Add(longestWait)
	for {
		ok, err := check()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s did not come true in %s; last error: %v", what, longestWait, err)
		}
		time.Sleep(25 * time.Millisecond)
	}
}

func limited(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longestWait)
	t.Cleanup(cancel)
	return ctx
}

// events reads the party's whole history.
func (p *party) events(t testing.TB) []store.Event {
	t.Helper()
	page, err := p.db.EventsAfter(context.Background(), store.EventQuery{Namespace: p.namespace, Limit: 10_000, Bytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	return page.Events
}

// outcomes tells, by message id, how often the party's history says that it was confirmed or rejected.
func (p *party) outcomes(t testing.TB) map[uuid.UUID][]string {
	t.Helper()
	out := map[uuid.UUID][]string{}
	for _, e := range p.events(t) {
		if e.Type == store.EventMessageConfirmed || e.Type == store.EventMessageRejected {
			out[e.Reference] = append(out[e.Reference], e.Type)
		}
	}
	return out
}

// settled waits until the party has applied n messages or more, and no message of its own is undecided.
func (p *party) settled(t testing.TB, n int) {
	t.Helper()
	eventually(t, p.namespace+" has applied everything", func() (bool, error) { return len(p.outcomes(t)) >= n, nil })
}

func (p *party) state(t testing.TB, id uuid.UUID) string {
	t.Helper()
	m, err := p.db.Message(context.Background(), p.namespace, id)
	if err != nil {
		t.Fatal(err)
	}
	return m.State
}

func (p *party) say(t testing.TB, value string) store.Message {
	t.Helper()
	m, err := p.BroadcastMessage(limited(t), MessageInput{Tag: "said", Topics: []string{"talk"}, Data: []json.RawMessage{json.RawMessage(value)}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// expensive sends a transaction to the pin contract that comes before all others in its block.
func (w *world) expensive(t testing.TB, account int, data []byte) {
	t.Helper()
	ctx, from := context.Background(), w.chain.Accounts[account]
	nonce, err := w.chain.Client().PendingNonceAt(ctx, from.Address)
	if err != nil {
		t.Fatal(err)
	}
	w.chain.SendRaw(t, account, &types.DynamicFeeTx{
		ChainID: big.NewInt(devnet.ChainID), Nonce: nonce, To: &w.pin, Data: data, Gas: 200_000,
		GasTipCap: big.NewInt(900_000_000_000), GasFeeCap: big.NewInt(1_000_000_000_000),
	})
}
