package multiparty

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

const liar = 5

// pinSample pins a batch of the liar's.
func (w *world) pinSample(t *testing.T, s *sample) {
	t.Helper()
	packed, hash := s.encode(t)
	w.pinAs(t, liar, s.batch, hash, "", packed)
}

func (w *world) chunkAs(t *testing.T, account int, batch uuid.UUID, index uint32, data []byte) {
	t.Helper()
	receipt := w.chain.Transact(t, account, w.pin, contracts.Pactwire(), "chunk", NetworkHash(theNetwork), [16]byte(batch), index, data)
	if receipt.Status != 1 {
		t.Fatal("the chunk reverted")
	}
}

// lastPin returns the payload of the newest BatchPin on the chain, as anybody can read it.
func (p *party) lastPin(t *testing.T) *batchPin {
	t.Helper()
	pins, err := p.db.WaitingPins(context.Background(), theChain, "nobody", nil, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, pin := range slices.Backward(pins) {
		if b, err := readBatchPin(&pin); err == nil && len(b.payload) > 0 {
			return b
		}
	}
	t.Fatal("there is no pin")
	return nil
}

func TestALiarChangesAndStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, 2, "bob")
	w.register(t, liar, "liar \xff\x00")
	a, b := w.join(t, 1, "alice"), w.join(t, 2, "bob")
	address := w.chain.Accounts[liar].Address
	i, err := a.BroadcastInterface(limited(t), simpleStorage(t, "simple", "1"), "")
	if err != nil {
		t.Fatal(err)
	}
	api, err := a.BroadcastAPI(limited(t), store.API{Name: "api", Interface: *i.ID}, "")
	if err != nil {
		t.Fatal(err)
	}
	said := a.say(t, `"truth"`)
	if err := a.WaitConfirmed(limited(t), said.ID); err != nil {
		t.Fatal(err)
	}
	before := a.definitions(t)

	var want []string // a piece of the reason of each refused batch, in order
	refusedFor := func(reason string) { want = append(want, reason) }

	copied := a.lastPin(t) // of alice
	w.pinAs(t, liar, copied.id, copied.hash, "", copied.payload)
	refusedFor("author is not the one who pinned it")

	s := newSample(t, address, theNetwork, "a lie")
	packed, hash := s.encode(t)
	w.pinAs(t, liar, s.batch, [32]byte{1}, "", packed)
	refusedFor("hash that was pinned")
	w.pinAs(t, liar, s.batch, hash, "", []byte("garbage"))
	refusedFor("gzip")
	w.pinAs(t, liar, s.batch, hash, "", nil)
	refusedFor("gzip")
	bomb := make([]byte, 40<<20)
	w.pinAs(t, liar, s.batch, [32]byte(sum(bomb)), "", pack(t, bomb))
	refusedFor("more than")
	w.pinAs(t, liar, s.batch, hash, "ipfs://nowhere", packed)
	refusedFor("bytes of contexts")
	w.pinAs(t, liar, s.batch, hash, "chunks:2", nil)
	refusedFor("0 chunks of 2")
	w.chunkAs(t, liar, s.batch, 1, packed)
	w.pinAs(t, liar, s.batch, hash, "chunks:1", nil)
	refusedFor("in the place of chunk 0")

	foreign := newSample(t, w.chain.Accounts[1].Address, theNetwork, "alice said that")
	foreignPacked, foreignHash := foreign.encode(t)
	w.pinAs(t, liar, foreign.batch, foreignHash, "", foreignPacked)
	refusedFor("author is not the one")

	// What was refused before was not applied, so that the honest form of the same batch is. Once.
	w.pinAs(t, liar, s.batch, hash, "", packed)
	w.pinAs(t, liar, s.batch, hash, "", packed)
	refusedFor("the batch was pinned before")
	again := &sample{author: s.author, network: s.network, batch: store.NewID(), messages: s.messages, data: s.data}
	w.pinSample(t, again)
	refusedFor("was pinned before")
	stolen := newSample(t, address, theNetwork)
	stolen.addAs(t, said.ID, "", "alice's id")
	w.pinSample(t, stolen)
	refusedFor("was pinned before")

	// Definitions that are wrong, or not the liar's to make: the messages are rejected.
	bad := newSample(t, address, theNetwork)
	bad.add(t, store.TagDefineInterface, map[string]any{"name": "x\x00", "version": "1"})
	bad.add(t, store.TagDefineAPI, apiDefinition{ID: api.ID, Namespace: theNetwork, Name: "api", Interface: reference{*i.ID}})
	bad.add(t, store.TagDefineAPI, apiDefinition{ID: uuid.New(), Namespace: theNetwork, Name: "api", Interface: reference{*i.ID}})
	bad.add(t, store.TagDefineAPI, apiDefinition{ID: uuid.New(), Namespace: theNetwork, Name: "other", Interface: reference{uuid.New()}})
	message := store.NewID()
	copyOf := i
	copyOf.Message, copyOf.Version = &message, "2"
	setNamespace(&copyOf, theNetwork)
	bad.addAs(t, message, store.TagDefineInterface, copyOf) // alice's ids under another version
	setNamespace(&i, "alice")
	w.pinSample(t, bad)

	for range 20 {
		w.pinAs(t, liar, uuid.New(), [32]byte{}, "", []byte("noise"))
		refusedFor("gzip")
	}
	last := a.say(t, `"still here"`)
	for _, p := range []*party{a, b} {
		eventually(t, "the message after the lies arrives at "+p.namespace, func() (bool, error) {
			m, err := p.db.Message(context.Background(), p.namespace, last.ID)
			return err == nil && m.State == store.StateConfirmed, err
		})
		refused, err := p.db.RefusedPins(context.Background(), p.namespace, 1000)
		if err != nil {
			t.Fatal(err)
		}
		slices.Reverse(refused)
		if len(refused) != len(want) {
			t.Fatalf("%s refused %d batches, want %d: %+v", p.namespace, len(refused), len(want), refused)
		}
		for n := range want {
			if !strings.Contains(refused[n].Reason, want[n]) || refused[n].Author != store.Account(address.Bytes()) {
				t.Errorf("%s refused batch %d: %+v, want %q", p.namespace, n, refused[n], want[n])
			}
		}
		for _, m := range bad.messages {
			if got := p.state(t, m.ID); got != store.StateRejected {
				t.Errorf("%s: the message %s with a bad definition is %s", p.namespace, m.Tag, got)
			}
		}
		if got := p.state(t, s.messages[0].ID); got != store.StateConfirmed {
			t.Errorf("%s: the honest message is %s", p.namespace, got)
		}
	}
	if after := a.definitions(t); !slices.Equal(after[:len(before)], before) {
		t.Errorf("what was confirmed has changed:\n%s\n\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
	}
	sameDefinitions(t, a, b)
}

// A member that sees an id before it is pinned can take it. The network then agrees that the id is that member's; nobody is held up.
func TestAnIDThatIsTakenIsTheTakers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, liar, "liar")
	p := &party{world: w, url: pgtest.New(t), account: 1, namespace: "alice"}
	p.start(t)
	p.stop()

	// Alice's message waits while nothing of her runs.
	p.open(t)
	n, err := New(p.cfg, p.db, p.client, p.storage, testLog())
	if err != nil {
		t.Fatal(err)
	}
	m, err := n.BroadcastMessage(limited(t), MessageInput{Data: []json.RawMessage{json.RawMessage(`"mine"`)}})
	if err != nil {
		t.Fatal(err)
	}
	p.client.Close()
	if err := p.db.Close(); err != nil {
		t.Fatal(err)
	}
	s := newSample(t, w.chain.Accounts[liar].Address, theNetwork)
	s.addAs(t, m.ID, "", "not mine")
	w.pinSample(t, s)

	p.start(t)
	eventually(t, "the taker's message is in force", func() (bool, error) {
		got, err := p.db.Message(context.Background(), "alice", m.ID)
		return err == nil && got.State == store.StateConfirmed && got.Author == s.messages[0].Author && !got.Local, err
	})
	data, err := p.db.MessageData(context.Background(), "alice", m.ID)
	if err != nil || len(data) != 1 || data[0].Value != `"not mine"` {
		t.Errorf("data %+v, %v", data, err)
	}
	deadline := time.Now().Add(longestWait)
	for { // a batch with the lost message may be refused on the way
		last := p.say(t, `"next"`)
		if err := p.WaitConfirmed(limited(t), last.ID); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// The whole batch is refused when one of its messages is a repetition, and its author is told about every message in it.
func TestTheMessagesOfAnOwnBatchThatIsRefusedAreRejected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, liar, "liar")
	w.chain.SetAutomine(false)
	p := w.join(t, 1, "alice")
	inFlight := 0
	for range maxInFlight {
		p.say(t, `"one batch each"`)
		eventually(t, "it is sent", func() (bool, error) {
			n, err := p.db.BatchesInFlight(context.Background(), "alice")
			ok := n > inFlight
			inFlight = n
			return ok, err
		})
	}
	first, second := p.say(t, `"one"`), p.say(t, `"batch"`)
	w.chain.Mine(1) // lets the next batch go
	eventually(t, "both are sent", func() (bool, error) {
		return p.state(t, first.ID) == store.StateSent && p.state(t, second.ID) == store.StateSent, nil
	})
	s := newSample(t, w.chain.Accounts[liar].Address, theNetwork)
	s.addAs(t, first.ID, "", "taken")
	packed, hash := s.encode(t)
	data, err := contracts.Pactwire().Parsed.Pack("pin", NetworkHash(theNetwork), [16]byte(s.batch), hash, "", packed)
	if err != nil {
		t.Fatal(err)
	}
	w.expensive(t, liar, data)
	w.chain.SetAutomine(true)
	w.chain.Mine(1)
	eventually(t, "the other message is decided", func() (bool, error) { return p.state(t, second.ID) != store.StateSent, nil })
	m, err := p.db.Message(context.Background(), "alice", second.ID)
	if err != nil || m.State != store.StateRejected || !strings.Contains(m.Reason, "was pinned before") {
		t.Errorf("the message is %s: %s, %v", m.State, m.Reason, err)
	}
	if got := p.outcomes(t)[second.ID]; !slices.Equal(got, []string{store.EventMessageRejected}) {
		t.Errorf("the history says %v", got)
	}
}

// The contract lets only members pin; the order is checked once more here.
func TestABatchOfWhomThisMemberDoesNotKnowIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, liar, "liar")
	p := w.join(t, 1, "alice")
	eventually(t, "the member is known", func() (bool, error) {
		members, err := p.db.Members(context.Background(), "alice")
		return len(members) == 2, err
	})
	raw, err := sql.Open("postgres", p.url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	if _, err := raw.Exec(`UPDATE members SET active = false WHERE account = $1`, w.chain.Accounts[liar].Address.Bytes()); err != nil {
		t.Fatal(err)
	}
	s := newSample(t, w.chain.Accounts[liar].Address, theNetwork, "hello")
	w.pinSample(t, s)
	eventually(t, "the batch is refused", func() (bool, error) {
		refused, err := p.db.RefusedPins(context.Background(), "alice", 10)
		return len(refused) == 1 && strings.Contains(refused[0].Reason, "not a member"), err
	})
	if _, err := p.db.Message(context.Background(), "alice", s.messages[0].ID); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("its message: %v", err)
	}
}

func TestARotatedKeyKeepsItsDefinitions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, 2, "bob")
	p, b := w.join(t, 1, "alice"), w.join(t, 2, "bob")
	i, err := p.BroadcastInterface(limited(t), simpleStorage(t, "simple", "1"), "")
	if err != nil {
		t.Fatal(err)
	}
	api, err := p.BroadcastAPI(limited(t), store.API{Name: "api", Interface: *i.ID}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitConfirmed(limited(t), api.Message); err != nil {
		t.Fatal(err)
	}
	p.stop()
	w.chain.Transact(t, 1, w.pin, contracts.Pactwire(), "rotateMember", w.chain.Accounts[4].Address)
	p.account = 4
	p.start(t)
	eventually(t, "the rotation is known", func() (bool, error) {
		members, err := p.db.Members(context.Background(), "alice")
		return slices.ContainsFunc(members, func(m store.Member) bool {
			return m.Name == "alice" && store.Account(m.Account) == p.Author()
		}), err
	})
	update, err := p.UpdateAPI(limited(t), api.ID, *i.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []*party{p, b} {
		at.settled(t, 3)
		if got := at.state(t, update.Message); got != store.StateConfirmed {
			t.Errorf("%s: the update by the new key is %s", at.namespace, got)
		}
	}
	// The old key is nobody's any more; the contract refuses it before anything reaches the chain.
	w.register(t, 3, "carol")
	w.chain.Transact(t, admin, w.pin, contracts.Pactwire(), "removeMember", w.chain.Accounts[3].Address)
	eventually(t, "the removal is known", func() (bool, error) {
		members, err := b.db.Members(context.Background(), "bob")
		return err == nil && !slices.ContainsFunc(members, func(m store.Member) bool { return m.Name == "carol" }), err
	})
}

// Thousands of batches that are nothing cost the others time, and nothing else.
func TestThousandsOfLyingBatchesHoldUpNobody(t *testing.T) {
	t.Parallel()
	const lies = 2000
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, liar, "liar")
	a := w.join(t, 1, "alice")
	first := a.say(t, `"before"`)
	if err := a.WaitConfirmed(limited(t), first.ID); err != nil {
		t.Fatal(err)
	}
	for n := range lies {
		w.pinAs(t, liar, uuid.New(), [32]byte{}, "", []byte("noise"))
		if n%250 == 0 { // a busy machine may fall behind, but not without end
			eventually(t, "the lies so far are refused", func() (bool, error) {
				refused, err := a.db.RefusedPins(context.Background(), a.namespace, 2*lies)
				return len(refused) == n+1, err
			})
		}
	}
	last := a.say(t, `"after"`)
	eventually(t, "the message after the lies arrives", func() (bool, error) {
		m, err := a.db.Message(context.Background(), a.namespace, last.ID)
		return err == nil && m.State == store.StateConfirmed, err
	})
	refused, err := a.db.RefusedPins(context.Background(), a.namespace, 2*lies)
	if err != nil {
		t.Fatal(err)
	}
	if len(refused) != lies {
		t.Errorf("%d batches were refused, want %d", len(refused), lies)
	}
}
