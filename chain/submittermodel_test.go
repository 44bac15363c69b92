package chain

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

// Everything that can happen to a submitter, in any order: clients accept, repeat, cancel, speed up and retry; the chain mines, loses what waits, reorganises, and
// brings back what was lost; its node refuses what is to replace something; another program uses the key; owners die anywhere, and go on after they were taken for dead. In the end every accepted operation has
// ended in the one way that fits what was asked, and was mined at most once.
//
// PACTWIRE_TEST_SEED repeats the steps of one run, though not their timing; PACTWIRE_TEST_LONG makes many runs.
func TestSubmitterAgainstAModel(t *testing.T) {
	t.Parallel()
	runs := 6
	if os.Getenv("PACTWIRE_TEST_LONG") != "" {
		runs = 60
	}
	seeds := make([]int, runs)
	for i := range seeds {
		seeds[i] = int(rand.Uint32())
	}
	if n, err := strconv.Atoi(os.Getenv("PACTWIRE_TEST_SEED")); err == nil {
		seeds = []int{n}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			newSubmitterModel(t, modelSetups.Example(seed)).run(rapid.SliceOfN(modelSteps, 30, 60).Example(seed))
		})
	}
}

// modelSetup is what does not change during a run.
type modelSetup struct {
	confirmations uint64
	maxInFlight   int
	batchSize     int
}

var modelSetups = rapid.Custom(func(t *rapid.T) modelSetup {
	return modelSetup{
		confirmations: rapid.Uint64Range(0, 3).Draw(t, "confirmations"), maxInFlight: rapid.SampledFrom([]int{5, 64}).Draw(t, "in flight"),
		batchSize: rapid.SampledFrom([]int{2, 200}).Draw(t, "batch"),
	}
})

// modelStep is one thing that happens. What the numbers mean depends on the action.
type modelStep struct {
	action          string
	a, b, c         int
	pause, patience time.Duration // until the next step; of a client who leaves: no time is no hurry
}

var modelSteps = rapid.Custom(func(t *rapid.T) modelStep {
	number := rapid.IntRange(0, 1<<16)
	return modelStep{
		action: rapid.SampledFrom([]string{
			"accept", "mine", "cancel", "reorganise", "stop", "start", "speed up", "usurp", "retry", "lose", "bring back", "foreign", "outbid", "accept", "mine",
			"cancel", "accept", "mine", "refuse", "speed up",
		}).Draw(t, "action"),
		a: number.Draw(t, "a"), b: number.Draw(t, "b"), c: number.Draw(t, "c"),
		pause:    time.Duration(rapid.SampledFrom([]int{0, 0, 1, 3, 10, 30, 60}).Draw(t, "pause")) * time.Millisecond,
		patience: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 2, 10}).Draw(t, "patience")) * time.Millisecond,
	}
})

// modelOperation is what the model knows of an operation.
type modelOperation struct {
	kind      string
	accepted  bool // the client knows it; otherwise it may be there or not
	cancelled bool // somebody asked for that before it had ended
}

// The kinds of operations.
const (
	modelPlain    = "plain"
	modelReverts  = "reverts"        // is mined and fails
	modelRefused  = "refused"        // no node takes it
	modelExplicit = "with its nonce" // fails when that is used up; otherwise it waits for those before it
)

type submitterModel struct {
	*submitBench
	t            *testing.T
	setup        modelSetup
	node         *lyingNode
	storage, zoo common.Address

	first, highest uint64                             // blocks: the first that may be undone, and the highest that there ever was
	seen           map[common.Hash]*types.Transaction // what the network knows of the key, in the pool or in blocks, now or once
	foreign        map[common.Hash]bool
	owners         []modelOwner
	retries        uint64

	clients    sync.WaitGroup
	mu         sync.Mutex
	operations map[uuid.UUID]*modelOperation
	order      []uuid.UUID
	keys       map[string]uuid.UUID            // what idempotency keys stand for
	taken      map[uint64][]*types.Transaction // what the node has taken from the submitters, by nonce
}

type modelOwner struct {
	*Submitter
	stop func()
}

func newSubmitterModel(t *testing.T, setup modelSetup) *submitterModel {
	chain := chaintest.New(t, chaintest.Manual())
	node := newLyingNode(t, chain.HTTPURL())
	node.announcements = chain.WSURL()
	m := &submitterModel{
		submitBench: newSubmitBenchAt(t, chain, node.socketURL(), setup.confirmations), t: t, setup: setup, node: node,
		seen: map[common.Hash]*types.Transaction{}, foreign: map[common.Hash]bool{}, operations: map[uuid.UUID]*modelOperation{}, keys: map[string]uuid.UUID{},
		taken: map[uint64][]*types.Transaction{},
	}
	m.storage, m.zoo = m.chain.Deploy(t, contracts.SimpleStorage()), m.chain.Deploy(t, contracts.Zoo(), "zoo")
	m.first = m.chain.Head() + 1
	return m
}

func (m *submitterModel) run(steps []modelStep) {
	m.t.Logf("%+v", m.setup)
	m.start()
	actions := map[string]func(modelStep){
		"accept": m.accept, "mine": func(s modelStep) { m.mine(1 + s.a%3) }, "reorganise": m.reorganise, "lose": m.lose, "bring back": m.bringBack,
		"start": func(modelStep) { m.start() }, "stop": m.stop, "usurp": m.usurp, "foreign": m.useKey, "outbid": m.outbid, "cancel": m.cancel,
		"speed up": m.speedUp, "retry": m.retry, "refuse": m.refuse,
	}
	m.refuse(modelStep{})
	for _, s := range steps {
		m.t.Logf("%+v", s)
		actions[s.action](s)
		time.Sleep(s.pause) // not a synchronisation: how far the submitter has come at the next step is left to chance
	}
	m.clients.Wait()
	m.node.set(nil, nil)
	m.start()
	m.settle()
	m.check()
}

// accept lets some clients ask at the same time, with an idempotency key that others may have used, or without.
func (m *submitterModel) accept(s modelStep) {
	for i := range 1 + s.a%6 {
		n, kind := m.newOperation(s.b + i)
		if kind == modelPlain && (s.c+i)%3 == 0 {
			n.IdempotencyKey, n.BodyHash = fmt.Sprint("key ", (s.c+i)%5), []byte{1}
		}
		by := m.db.CreateOperation
		if m.running != nil && s.c%4 > 0 { // it may have been stopped
			by = m.running.Accept
		}
		m.clients.Go(func() { m.ask(n, kind, s.patience, by) })
	}
}

func (m *submitterModel) newOperation(choice int) (store.NewOperation, string) {
	n, kind := m.call(m.t, contracts.SimpleStorage(), m.storage, "set", big.NewInt(int64(choice))), modelPlain
	switch choice % 16 {
	case 0, 1:
		n, kind = m.call(m.t, contracts.Zoo(), m.zoo, "failWith", "because"), modelReverts
	case 2, 3:
		gas := uint64(100)
		n.Options.Gas, kind = &gas, modelRefused
	case 4:
		nonce := m.minedNonce(m.t, m.key) + uint64(choice>>4)%4
		n.Options.Nonce, kind = &nonce, modelExplicit
	case 5:
		n.Options.MaxFeePerGas = big.NewInt(20e9)
	}
	n.ID = store.NewID()
	n.Data = append(n.Data, n.ID[:]...) // the contracts do not look at it; no two operations have the same transaction
	return n, kind
}

type acceptFunc = func(context.Context, store.NewOperation) (store.Operation, bool, error)

// ask is a client that has an operation accepted. One with an idempotency key asks until it has an answer.
func (m *submitterModel) ask(n store.NewOperation, kind string, patience time.Duration, by acceptFunc) {
	m.know(n.ID, modelOperation{kind: kind})
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	if patience > 0 {
		defer time.AfterFunc(patience, leave).Stop()
	}
	op, _, err := by(ctx, n)
	if err != nil && n.IdempotencyKey != "" {
		n.ID = store.NewID()
		m.know(n.ID, modelOperation{kind: kind})
		if op, _, err = m.db.CreateOperation(context.Background(), n); err != nil {
			m.t.Errorf("asked again: %v", err)
		}
	}
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.operations[op.ID]
	if known == nil {
		m.t.Errorf("operation %s was accepted; nobody has asked for it", op.ID)
		return
	}
	known.accepted = true
	if n.IdempotencyKey == "" {
		if op.ID != n.ID {
			m.t.Errorf("operation %s was accepted as %s", n.ID, op.ID)
		}
		return
	}
	if _, used := m.keys[n.IdempotencyKey]; !used {
		m.keys[n.IdempotencyKey] = op.ID
	}
	if first := m.keys[n.IdempotencyKey]; first != op.ID {
		m.t.Errorf("%s stands for %s and for %s", n.IdempotencyKey, first, op.ID)
	}
}

// acceptPlain has another operation accepted, one that must succeed.
func (m *submitterModel) acceptPlain() {
	n, kind := m.newOperation(6)
	m.ask(n, kind, 0, m.db.CreateOperation)
}

func (m *submitterModel) kind(id uuid.UUID) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if op := m.operations[id]; op != nil {
		return op.kind
	}
	return "" // a filler
}

func (m *submitterModel) know(id uuid.UUID, op modelOperation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.operations[id] = &op
	m.order = append(m.order, id)
}

// start runs another submitter beside those that run.
func (m *submitterModel) start() {
	if len(m.owners) == 3 {
		return
	}
	stop := m.submit(m.t, func(c *SubmitterConfig) {
		c.MaxInFlight, c.BatchSize, c.MessageSize = m.setup.maxInFlight, m.setup.batchSize, 4
		c.PollInterval, c.RebroadcastAfter, c.BumpAfter, c.ForeignAfter = 30*time.Millisecond, 200*time.Millisecond, 300*time.Millisecond, 50*time.Millisecond
	})
	m.owners = append(m.owners, modelOwner{m.running, stop})
}

// stop ends a submitter wherever it is: it does nothing more, as after a crash.
func (m *submitterModel) stop(s modelStep) {
	if len(m.owners) == 0 {
		return
	}
	i := s.a % len(m.owners)
	m.owners[i].stop()
	m.owners = slices.Delete(m.owners, i, i+1)
}

// usurp gives the key to another submitter while its owner goes on, as when that was taken for dead.
func (m *submitterModel) usurp(modelStep) {
	if len(m.owners) < 2 {
		m.start()
	}
	if err := m.db.ReleaseAllLeases(context.Background()); err != nil {
		m.t.Fatal(err)
	}
	m.db.Notify(store.TopicLease(m.running.leaseName(m.key)))
}

// some picks one of the newest operations.
func (m *submitterModel) some(choice int) (uuid.UUID, *modelOperation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.order) == 0 {
		return uuid.Nil, nil
	}
	id := m.order[len(m.order)-1-choice%min(len(m.order), 12)]
	return id, m.operations[id]
}

func (m *submitterModel) cancel(s modelStep) {
	id, op := m.some(s.a)
	if op != nil && m.request(id, store.ChangeRequest{Kind: store.ChangeCancel}) {
		op.cancelled = true
	}
}

func (m *submitterModel) speedUp(s modelStep) {
	request := store.ChangeRequest{Kind: store.ChangeSpeedUp}
	if s.b%3 == 0 {
		request.MaxFeePerGas = big.NewInt(int64(1+s.c%40) * 1e9)
	}
	if id, op := m.some(s.a); op != nil {
		m.request(id, request)
	}
}

// request asks for a change; false when the operation has ended, or is not there.
func (m *submitterModel) request(id uuid.UUID, request store.ChangeRequest) bool {
	err := m.db.RequestChange(context.Background(), "default", id, request)
	if err != nil && pactwire.KindOf(err) != pactwire.KindConflict && pactwire.KindOf(err) != pactwire.KindNotFound {
		m.t.Errorf("%s operation %s: %v", request.Kind, id, err)
	}
	return err == nil
}

// retry does a failed operation again, and tries to do so twice.
func (m *submitterModel) retry(s modelStep) {
	ctx := context.Background()
	for i := range 12 {
		id, op := m.some(s.a + i)
		if op == nil {
			return
		}
		n, err := m.db.FailedOperation(ctx, "default", id)
		if err != nil {
			continue // it has not failed
		}
		n.Gas = 100_000
		if op.kind != modelRefused { // as with the data: another transaction than the failed one's
			m.retries++
			gas := 150_000 + m.retries
			n.Options.Gas = &gas
		}
		again, err := m.db.RetryOperation(ctx, id, n)
		if err != nil {
			m.t.Errorf("retry operation %s: %v", id, err)
			return
		}
		kind := op.kind
		if kind == modelExplicit {
			kind = modelPlain
		}
		m.know(again.ID, modelOperation{kind: kind, accepted: true})
		if _, err := m.db.RetryOperation(ctx, id, n); pactwire.KindOf(err) != pactwire.KindConflict {
			m.t.Errorf("operation %s was done again twice: %v", id, err)
		}
		return
	}
}
