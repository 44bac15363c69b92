package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"math/big"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

const (
	modelLease    = time.Second
	modelPatience = 30 * time.Second
)

// half is a replica as far as events go: a reader of the chain, and delivery.
type half struct {
	db      *store.DB
	manager *delivery.Manager
	crash   func()
}

func startHalf(t *testing.T, node *chaintest.Chain, url string) *half {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.NewTextHandler(logOutput(), nil))
	db, err := store.Open(ctx, store.Config{URL: url, LeaseTTL: modelLease, MaxConns: 8}, log)
	must(t, err)
	client, err := chain.Dial(ctx, chain.Config{Name: "dev", URLs: []string{node.WSURL()}, PollInterval: 20 * time.Millisecond}, log)
	must(t, err)
	_, err = db.EnsureChain(ctx, "dev", client.ChainID(), client.Genesis())
	must(t, err)
	must(t, db.EnsureNamespace(ctx, ns, "dev"))
	h := &half{db: db, manager: delivery.New(delivery.Config{}, db, log)}
	reader := chain.NewReader(chain.ReaderConfig{Chain: "dev", PollInterval: 50 * time.Millisecond}, db, client, log)
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{db.Run, client.Run, h.manager.Run, reader.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("a part ended: %v", err)
			}
		})
	}
	var once sync.Once
	h.crash = func() {
		once.Do(func() {
			_ = db.Close() // first: nothing is given back and nothing is flushed, as if the process had died
			cancel()
			running.Wait()
			client.Close()
		})
	}
	t.Cleanup(h.crash)
	return h
}

// heardEntry is an entry of the history as the model has it; its sequence is its index plus one.
type heardEntry struct {
	kind   string
	number int
}

// deliveredFrame is an event that an application has received.
type deliveredFrame struct {
	id       uuid.UUID
	sequence int64
	entry    heardEntry
}

// modelSession is an application's session.
type modelSession struct {
	*delivery.Session
	on     int // replica
	frames chan deliveredFrame
	flight []deliveredFrame // received and not acknowledged
	last   deliveredFrame   // acknowledged last
}

// eventWorld is a chain, two replicas, the applications of one durable subscription, and what ought to be true about them.
type eventWorld struct {
	t        *rapid.T
	outer    *testing.T
	chain    *chaintest.Chain
	url      string
	halves   [2]*half
	storage  common.Address
	name     string
	window   int
	next     int            // the next event's number
	start    uint64         // the head at the beginning
	blocks   [][]int        // the numbers in each block since then
	history  []heardEntry   // what must be recorded, in order
	acked    map[int64]bool // sequences
	sessions []*modelSession
	active   *modelSession
	position int64 // the highest that the store has shown
}

// mine sends some events and makes blocks until they are in one.
func (w *eventWorld) mine(t *rapid.T) {
	// Not the pool's view, which a reorganisation changes a moment later than the chain.
	nonce, err := w.chain.Client().NonceAt(context.Background(), w.chain.Accounts[2].Address, nil)
	must(w.outer, err)
	events := rapid.IntRange(0, 4).Draw(t, "events")
	for i := range events {
		data, err := contracts.SimpleStorage().Parsed.Pack("set", big.NewInt(int64(w.next)))
		must(w.outer, err)
		w.chain.SendRaw(w.outer, 2, &types.DynamicFeeTx{
			ChainID: big.NewInt(devnet.ChainID), Nonce: nonce + uint64(i), To: &w.storage, Data: data, Gas: 200_000, GasTipCap: big.NewInt(1),
			GasFeeCap: big.NewInt(1_000_000_000),
		})
		w.next++
	}
	w.chain.Mine(1)
	w.takeBlocks(events)
}

// takeBlocks takes the new blocks into the model, and makes more until they hold so many events.
func (w *eventWorld) takeBlocks(events int) {
	for tries := 0; ; tries++ {
		for n := w.start + uint64(len(w.blocks)) + 1; n <= w.chain.Head(); n++ {
			block, err := w.chain.Client().BlockByNumber(context.Background(), new(big.Int).SetUint64(n))
			must(w.outer, err)
			var numbers []int
			for _, tx := range block.Transactions() {
				number := int(new(big.Int).SetBytes(tx.Data()[4:]).Int64())
				numbers = append(numbers, number)
				w.history = append(w.history, heardEntry{store.EventBlockchainReceived, number})
			}
			w.blocks = append(w.blocks, numbers)
			events -= len(numbers)
		}
		if events <= 0 {
			return
		}
		if tries > 100 {
			w.t.Fatalf("%d transactions are not mined", events)
		}
		w.chain.Mine(1)
	}
}

// reorganise replaces the newest blocks, with or without what they held.
func (w *eventWorld) reorganise(t *rapid.T) {
	if len(w.blocks) == 0 {
		return
	}
	depth := rapid.IntRange(1, min(4, len(w.blocks))).Draw(t, "depth")
	undone := slices.Concat(w.blocks[len(w.blocks)-depth:]...)
	w.blocks = w.blocks[:len(w.blocks)-depth]
	for _, n := range slices.Backward(undone) {
		w.history = append(w.history, heardEntry{store.EventBlockchainRemoved, n})
	}
	if rapid.Bool().Draw(t, "again") {
		w.chain.Reorg(w.outer, depth)
		w.takeBlocks(len(undone))
	} else {
		w.chain.ReorgDropping(w.outer, depth)
		w.takeBlocks(0)
	}
}

func (w *eventWorld) open() []int64 {
	var list []int64
	for i := range w.history {
		if s := int64(i + 1); !w.acked[s] {
			list = append(list, s)
		}
	}
	return list
}

// settle waits until the chain is recorded, and takes what must be delivered now, each frame being the one that is due.
func (w *eventWorld) settle() {
	for deadline := time.Now().Add(modelPatience); ; time.Sleep(2 * time.Millisecond) { // polls a condition
		head, err := w.halves[0].db.HeadSequence(context.Background(), ns)
		must(w.outer, err)
		if head > int64(len(w.history)) {
			w.t.Fatalf("the history has %d entries, want %d", head, len(w.history))
		}
		if head == int64(len(w.history)) {
			break
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("the history has %d entries after %s, want %d", head, modelPatience, len(w.history))
		}
	}
	for len(w.sessions) > 0 {
		open, flying := w.open(), 0
		if w.active != nil {
			flying = len(w.active.flight)
		}
		if flying >= min(w.window, len(open)) {
			return
		}
		from, f := w.receive()
		if w.active == nil {
			w.active = from
		}
		if from != w.active {
			w.t.Fatalf("%d came to a second session", f.sequence)
		}
		due := slices.IndexFunc(open, func(s int64) bool {
			return !slices.ContainsFunc(from.flight, func(f deliveredFrame) bool { return f.sequence == s })
		})
		if due < 0 || f.sequence != open[due] {
			w.t.Fatalf("%d came; open %v, in flight %v", f.sequence, open, from.flight)
		}
		if want := w.history[f.sequence-1]; f.entry != want {
			w.t.Fatalf("event %d is %+v, want %+v", f.sequence, f.entry, want)
		}
		from.flight = append(from.flight, f)
	}
}

func (w *eventWorld) receive() (*modelSession, deliveredFrame) {
	for deadline := time.Now().Add(modelPatience); time.Now().Before(deadline); time.Sleep(200 * time.Microsecond) { // polls a condition
		for _, s := range w.sessions {
			select {
			case f := <-s.frames:
				return s, f
			default:
			}
		}
	}
	w.t.Fatalf("nothing came; open %v of %d", w.open(), w.window)
	return nil, deliveredFrame{}
}

func (w *eventWorld) connect(t *rapid.T) {
	if len(w.sessions) >= 3 {
		return
	}
	on := rapid.IntRange(0, 1).Draw(t, "replica")
	s := &modelSession{on: on, frames: make(chan deliveredFrame, 10_000)}
	session, err := w.halves[on].manager.Start(context.Background(), delivery.StartRequest{Namespace: ns, Name: w.name}, delivery.Consumer{
		Deliver: func(_ context.Context, frames [][]byte) error {
			for _, frame := range frames {
				var e gen.Event
				if err := json.Unmarshal(frame, &e); err != nil {
					return err
				}
				var output struct{ Value string }
				if e.Blockchainevent != nil {
					if err := json.Unmarshal(e.Blockchainevent.Output, &output); err != nil {
						return err
					}
				}
				number, err := strconv.Atoi(output.Value)
				if err != nil {
					return err
				}
				s.frames <- deliveredFrame{e.ID, e.Sequence, heardEntry{string(e.Type), number}}
			}
			return nil
		},
	})
	must(w.outer, err)
	s.Session = session
	w.sessions = append(w.sessions, s)
}

func (w *eventWorld) ack(t *rapid.T) {
	if w.active == nil || len(w.active.flight) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.active.flight)-1).Draw(t, "which")
	f := w.active.flight[i]
	if !w.active.Ack(&f.id) {
		t.Fatalf("the acknowledgement of %d was refused", f.sequence)
	}
	w.active.flight = slices.Delete(w.active.flight, i, i+1)
	w.active.last, w.acked[f.sequence] = f, true
}

// ackWrongly acknowledges twice, on a session that stands by, and on one that is gone.
func (w *eventWorld) ackWrongly(t *rapid.T) {
	if w.active == nil {
		return
	}
	if last := w.active.last; last.sequence > 0 && w.active.Ack(&last.id) {
		t.Fatalf("a second acknowledgement of %d was taken", last.sequence)
	}
	for _, s := range w.sessions {
		if s != w.active && len(w.active.flight) > 0 && s.Ack(&w.active.flight[0].id) {
			t.Fatal("an acknowledgement of a session that stands by was taken")
		}
	}
}

func (w *eventWorld) nack(t *rapid.T) {
	if w.active == nil || len(w.active.flight) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.active.flight)-1).Draw(t, "which")
	if !w.active.Nack(w.active.flight[i].id) {
		t.Fatal("a nack was refused")
	}
	w.active.flight = w.active.flight[:i]
}

func (w *eventWorld) leave(t *rapid.T) {
	if len(w.sessions) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.sessions)-1).Draw(t, "who")
	s := w.sessions[i]
	s.Close()
	if len(s.flight) > 0 && s.Ack(&s.flight[0].id) {
		t.Fatal("a late acknowledgement was taken")
	}
	w.quit(i)
}

func (w *eventWorld) quit(i int) {
	if w.active == w.sessions[i] {
		w.active = nil
	}
	w.sessions = slices.Delete(w.sessions, i, i+1)
}

// die has a replica die and another one take its place. What the store knows to be acknowledged must have been, and is all that stays so.
func (w *eventWorld) die(t *rapid.T) {
	on := rapid.IntRange(0, 1).Draw(t, "replica")
	mine := w.active != nil && w.active.on == on
	w.halves[on].crash()
	for i := len(w.sessions) - 1; i >= 0; i-- {
		if w.sessions[i].on == on {
			w.quit(i)
		}
	}
	w.halves[on] = startHalf(w.outer, w.chain, w.url)
	if !mine {
		return
	}
	sub, err := w.halves[on].db.Subscription(context.Background(), ns, w.name)
	must(w.outer, err)
	if sub.Position < w.position {
		t.Fatalf("the position went back from %d to %d", w.position, sub.Position)
	}
	w.position = sub.Position
	kept := map[int64]bool{}
	for s := int64(1); s <= sub.Position; s++ {
		kept[s] = true
	}
	for i := 0; i+1 < len(sub.Beyond); i += 2 {
		for s := sub.Beyond[i]; s <= sub.Beyond[i+1]; s++ {
			kept[s] = true
		}
	}
	for s := range kept {
		if !w.acked[s] {
			t.Fatalf("the store takes %d for acknowledged, and it is not", s)
		}
	}
	w.acked = kept
}

// listen makes the listener for the storage's event.
func (w *eventWorld) listen() {
	i, err := contract.FromABI(contracts.SimpleStorage().ABI)
	must(w.outer, err)
	compiled, err := contract.CompileEvent(i.Events[0])
	must(w.outer, err)
	text, err := json.Marshal(i.Events[0])
	must(w.outer, err)
	must(w.outer, w.halves[0].db.CreateListener(context.Background(), store.Listener{
		ID: store.NewID(), Namespace: ns, Chain: "dev", Name: "l", ProtocolID: "sb-l", Event: string(text), Signature: compiled.Signature,
		FirstEvent: "oldest", Address: w.storage[:], Topic0: compiled.Topic0[:], Created: store.Now(),
	}))
}

// TestEventModel goes from the chain through the store to the application, with everything that may happen on the way, and compares with a model in memory.
func TestEventModel(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	if flag.Lookup("rapid.checks").Value.String() == flag.Lookup("rapid.checks").DefValue {
		// Each check starts a chain and a database: a few long ones find as much as many short ones. -rapid.checks asks for more.
		must(t, flag.Set("rapid.checks", "3"))
	}
	rapid.Check(t, func(r *rapid.T) {
		w := &eventWorld{
			t: r, outer: t, chain: chaintest.New(t, chaintest.Manual()), url: pgtest.New(t), name: "app", window: rapid.IntRange(1, 6).Draw(r, "window"),
			next: 1, acked: map[int64]bool{},
		}
		w.storage = w.chain.Deploy(t, contracts.SimpleStorage())
		w.start = w.chain.Head()
		for i := range w.halves {
			w.halves[i] = startHalf(t, w.chain, w.url)
		}
		defer func() {
			for _, h := range w.halves {
				h.crash()
			}
		}()
		w.listen()
		_, err := w.halves[0].manager.Create(context.Background(), delivery.SubscriptionRequest{
			Namespace: ns, Name: w.name, Options: json.RawMessage(`{"firstEvent":"oldest","readAhead":` + strconv.Itoa(w.window) + `}`),
		})
		must(t, err)
		r.Repeat(map[string]func(*rapid.T){
			"mine": w.mine, "mine more": w.mine, "reorganise": w.reorganise, "connect": w.connect, "ack": w.ack, "ack more": w.ack, "ack on": w.ack,
			"ack wrongly": w.ackWrongly, "nack": w.nack, "leave": w.leave, "die": w.die,
			"": func(*rapid.T) { w.settle() },
		})
		if len(w.sessions) == 0 {
			w.connect(r)
		}
		for w.settle(); len(w.open()) > 0; w.settle() {
			w.ack(r)
		}
	})
}
