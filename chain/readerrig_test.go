package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// rig is a chain with a database and a reader that can be stopped and started.
type rig struct {
	t      testing.TB
	chain  *chaintest.Chain
	db     *store.DB
	client *Client
	log    *slog.Logger
	cfg    ReaderConfig
	stop   func()
}

func newRig(t testing.TB, confirmations uint64, options ...chaintest.Option) *rig {
	t.Helper()
	c := chaintest.New(t, options...)
	return newRigAt(t, c, c.WSURL(), confirmations)
}

// newRigAt reads the chain through another URL.
func newRigAt(t testing.TB, c *chaintest.Chain, url string, confirmations uint64) *rig {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("READER_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	db, err := store.Open(ctx, store.Config{URL: pgtest.New(t)}, log)
	if err != nil {
		t.Fatal(err)
	}
	client, err := Dial(ctx, Config{Name: "dev", URLs: strings.Split(url, ","), Confirmations: confirmations, PollInterval: 20 * time.Millisecond}, log)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.EnsureChain(ctx, "dev", client.ChainID(), client.Genesis()); err != nil {
		t.Fatal(err)
	}
	if err := db.EnsureNamespace(ctx, "default", "dev"); err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, chain: c, db: db, client: client, log: log, cfg: ReaderConfig{
		Chain: "dev", Confirmations: confirmations, PollInterval: 50 * time.Millisecond,
	}, stop: func() {}}
	done := make(chan struct{})
	go func() { defer close(done); _ = client.Run(ctx) }()
	t.Cleanup(func() {
		r.stop()
		cancel()
		<-done
		client.Close()
		_ = db.Close()
	})
	return r
}

// start runs a reader until stop.
func (r *rig) start() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	reader := NewReader(r.cfg, r.db, r.client, r.log)
	go func() { done <- reader.Run(ctx) }()
	r.stop = func() {
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("the reader ended: %v", err)
		}
		r.stop = func() {}
	}
}

// listen makes a listener for an event of a contract, by its signature.
func (r *rig) listen(artifact contracts.Artifact, signature string, address *common.Address, firstEvent string) store.Listener {
	r.t.Helper()
	i, err := contract.FromABI(artifact.ABI)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, e := range i.Events {
		compiled, err := contract.CompileEvent(e)
		if err != nil {
			r.t.Fatal(err)
		}
		if compiled.Signature != signature {
			continue
		}
		text, err := json.Marshal(e)
		if err != nil {
			r.t.Fatal(err)
		}
		block, canonical, err := ResolveFirstEvent(context.Background(), r.client, firstEvent)
		if err != nil {
			r.t.Fatal(err)
		}
		id := store.NewID()
		l := store.Listener{
			ID: id, Namespace: "default", Chain: "dev", Name: "sb-" + id.String(), ProtocolID: "sb-" + id.String(), Event: string(text),
			Signature: signature, Topic: "t", FirstEvent: canonical, FirstBlock: block, Created: store.Now(),
		}
		if address != nil {
			l.Address = address[:]
		}
		if !compiled.Anonymous {
			l.Topic0 = compiled.Topic0[:]
		}
		if err := r.db.CreateListener(context.Background(), l); err != nil {
			r.t.Fatal(err)
		}
		return l
	}
	r.t.Fatalf("%s has no event %s", artifact.Name, signature)
	return store.Listener{}
}

const readerLimit = 60 * time.Second

// history waits until the history holds n entries, and returns all.
func (r *rig) history(n int) []store.Event {
	r.t.Helper()
	deadline := time.After(readerLimit)
	wake := r.db.Subscribe(store.TopicHistory("default"))
	defer wake.Close()
	for {
		var all []store.Event
		for {
			after := int64(0)
			if len(all) > 0 {
				after = all[len(all)-1].Sequence
			}
			page, err := r.db.EventsAfter(context.Background(), store.EventQuery{Namespace: "default", After: after, Limit: 1000, Bytes: 1 << 30})
			if err != nil {
				r.t.Fatal(err)
			}
			all = append(all, page.Events...)
			if len(page.Events) == 0 {
				break
			}
		}
		if len(all) >= n {
			return all
		}
		select {
		case <-deadline:
			r.t.Fatalf("the history has %d entries, want %d", len(all), n)
		case <-wake.C:
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// reached waits until the reader has recorded the block, and everybody is live.
func (r *rig) reached(block uint64) {
	r.t.Helper()
	deadline := time.Now().Add(readerLimit)
	for {
		chain, err := r.db.Chain(context.Background(), "dev")
		if err != nil {
			r.t.Fatal(err)
		}
		list, err := r.db.ListenersOfChain(context.Background(), "dev")
		if err != nil {
			r.t.Fatal(err)
		}
		done := chain.NextBlock > int64(block) && (chain.PinContract == nil || chain.PinLive)
		for _, l := range list {
			done = done && l.Live
		}
		if done {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("the reader stands at %d, want beyond %d; listeners %+v", chain.NextBlock, block, list)
		}
		time.Sleep(2 * time.Millisecond) // polls a condition
	}
}

// eventBody is a record as the history has it.
type eventBody struct {
	ID         uuid.UUID                  `json:"id"`
	Source     string                     `json:"source"`
	Namespace  string                     `json:"namespace"`
	Name       string                     `json:"name"`
	Listener   uuid.UUID                  `json:"listener"`
	ProtocolID string                     `json:"protocolId"`
	Output     map[string]json.RawMessage `json:"output"`
	Info       map[string]string          `json:"info"`
	Timestamp  string                     `json:"timestamp"`
	TX         map[string]string          `json:"tx"`
}

func bodyOf(t testing.TB, e store.Event) eventBody {
	t.Helper()
	var body eventBody
	if err := json.Unmarshal([]byte(e.Body), &body); err != nil {
		t.Fatalf("the body of event %d is no JSON: %v\n%s", e.Sequence, err, e.Body)
	}
	return body
}

// consistent compares what is recorded with what the chain has: the history, replayed, is exactly the logs of the canonical chain, each one once, and the
// records say the same.
func (r *rig) consistent(l store.Listener) {
	r.t.Helper()
	ctx := context.Background()
	query := ethereum.FilterQuery{FromBlock: big.NewInt(l.FirstBlock), ToBlock: new(big.Int).SetUint64(r.chain.Head() - r.cfg.Confirmations)}
	if l.Address != nil {
		query.Addresses = []common.Address{common.BytesToAddress(l.Address)}
	}
	if l.Topic0 != nil {
		query.Topics = [][]common.Hash{{common.BytesToHash(l.Topic0)}}
	}
	logs, err := r.chain.Client().FilterLogs(ctx, query)
	if err != nil {
		r.t.Fatal(err)
	}
	want := map[string]bool{}
	for _, log := range logs {
		want[fmt.Sprintf("%s/%d", log.BlockHash.Hex(), log.Index)] = true
	}
	have := map[string]uuid.UUID{}
	last := ""
	for _, e := range r.history(0) {
		if *e.Listener != l.ID {
			continue
		}
		body := bodyOf(r.t, e)
		key := body.Info["blockHash"] + "/" + body.Info["logIndex"]
		switch e.Type {
		case store.EventBlockchainReceived:
			if _, there := have[key]; there {
				r.t.Errorf("log %s was recorded twice", key)
			}
			have[key] = e.Reference
			if body.ProtocolID <= last {
				r.t.Errorf("%s came after %s", body.ProtocolID, last)
			}
			last = body.ProtocolID
		case store.EventBlockchainRemoved:
			if have[key] != e.Reference {
				r.t.Errorf("log %s was removed, but is not there", key)
			}
			delete(have, key)
			last = ""
		}
		record, err := r.db.BlockchainEvent(ctx, "default", e.Reference)
		if err != nil {
			r.t.Fatal(err)
		}
		if e.Type == store.EventBlockchainReceived && (record.Sequence != e.Sequence || record.Body != e.Body || record.ProtocolID != body.ProtocolID) {
			r.t.Errorf("the record of event %d is %+v", e.Sequence, record)
		}
	}
	for key := range want {
		if _, there := have[key]; !there {
			r.t.Errorf("log %s is missing", key)
		}
	}
	for key, id := range have {
		if !want[key] {
			r.t.Errorf("log %s is not on the chain", key)
		}
		if record, err := r.db.BlockchainEvent(ctx, "default", id); err != nil || record.Removed {
			r.t.Errorf("the record of log %s is marked as removed (%v)", key, err)
		}
	}
}
