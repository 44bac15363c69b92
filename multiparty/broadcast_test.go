package multiparty

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

func simpleStorage(t *testing.T, name, version string) contract.Interface {
	t.Helper()
	i, err := contract.FromABI(contracts.SimpleStorage().ABI)
	if err != nil {
		t.Fatal(err)
	}
	i.Name, i.Version = name, version
	return i
}

func TestABroadcastIsConfirmed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	p := w.join(t, 1, "ours")
	ctx := limited(t)

	i, err := p.BroadcastInterface(ctx, simpleStorage(t, "simple", "1.0"), "")
	if err != nil {
		t.Fatal(err)
	}
	if i.ID == nil || i.Message == nil || i.Namespace != "ours" || i.Methods[0].Contract == nil || *i.Methods[0].Contract != *i.ID || i.Methods[0].Pathname == "" {
		t.Errorf("not everything is assigned: %+v", i)
	}
	early, err := p.db.InterfaceByName(ctx, "ours", "simple", "1.0") // usable at once
	if err != nil || early.ID != *i.ID {
		t.Fatalf("the interface is not there at once: %+v, %v", early, err)
	}
	location := common.HexToAddress("0xAb5801a7D398351b8bE11C439e05C5B3259aeC9B")
	api, err := p.BroadcastAPI(ctx, store.API{Name: "simple-api", Interface: *i.ID, Location: location.Bytes()}, "")
	if err != nil {
		t.Fatal(err)
	}
	said := p.say(t, `{"hello": "world", "n": 10000000000000000000000000001}`)
	for _, id := range []uuid.UUID{*i.Message, api.Message, said.ID} {
		if err := p.WaitConfirmed(ctx, id); err != nil {
			t.Fatal(err)
		}
	}

	var kinds []string
	for _, e := range p.events(t) {
		kinds = append(kinds, e.Type)
	}
	want := []string{"message_confirmed", "contract_interface_confirmed", "message_confirmed", "contract_api_confirmed", "message_confirmed"}
	if !slices.Equal(kinds, want) {
		t.Errorf("events %v, want %v", kinds, want)
	}
	confirmed, err := p.db.Interface(ctx, "ours", *i.ID)
	if err != nil || confirmed.State != store.StateConfirmed {
		t.Errorf("interface %+v, %v", confirmed.State, err)
	}
	definition, err := confirmed.Contract()
	if err != nil || !reflect.DeepEqual(definition, i) {
		t.Errorf("the definition is not what was broadcast: %v\n%+v\n%+v", err, definition, i)
	}
	if a, err := p.db.API(ctx, "ours", "simple-api"); err != nil || a.State != store.StateConfirmed || common.BytesToAddress(a.Location) != location {
		t.Errorf("API %+v, %v", a, err)
	}
	checkMessage(t, p, said.ID)
}

// checkMessage recomputes all hashes of a confirmed message from what the service shows of it.
func checkMessage(t *testing.T, p *party, id uuid.UUID) {
	t.Helper()
	ctx := context.Background()
	events := p.events(t)
	at := slices.IndexFunc(events, func(e store.Event) bool { return e.Reference == id })
	if at < 0 {
		t.Fatal("the message is not in the history")
	}
	e := events[at]
	if e.BodyKey != "message" || e.Author == nil || *e.Author != p.Author() || e.Tag == nil || *e.Tag != "said" || !slices.Equal(e.Topics, []string{"talk"}) {
		t.Errorf("the event has not the message's attributes: %+v", e)
	}
	var shown struct {
		Header    json.RawMessage `json:"header"`
		Hash      string          `json:"hash"`
		BatchID   uuid.UUID       `json:"batchID"`
		State     string          `json:"state"`
		Confirmed time.Time       `json:"confirmed"`
		Data      []store.DataRef `json:"data"`
	}
	if err := json.Unmarshal([]byte(e.Body), &shown); err != nil {
		t.Fatal(err)
	}
	if shown.State != "confirmed" || shown.Confirmed.IsZero() || shown.BatchID == uuid.Nil || len(shown.Data) != 1 {
		t.Errorf("body %s", e.Body)
	}
	if hash, err := DataHash(shown.Header); err != nil || hex.EncodeToString(hash) != shown.Hash { // the hash of any JSON
		t.Errorf("the header does not have the message's hash: %s", e.Body)
	}
	data, err := p.db.MessageData(ctx, p.namespace, id)
	if err != nil || len(data) != 1 {
		t.Fatalf("data %v, %v", data, err)
	}
	if data[0].Value != `{"hello":"world","n":10000000000000000000000000001}` {
		t.Errorf("value %s", data[0].Value)
	}
	if hash, err := DataHash(json.RawMessage(data[0].Value)); err != nil || hex.EncodeToString(hash) != shown.Data[0].Hash {
		t.Errorf("the value does not have its hash: %v", err)
	}
	if one, err := p.db.Data(ctx, p.namespace, shown.Data[0].ID); err != nil || one.Value != data[0].Value {
		t.Errorf("data by id: %+v, %v", one, err)
	}
	m, err := p.db.Message(ctx, p.namespace, id)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := m.Body(); err != nil || body != e.Body {
		t.Errorf("the message reads\n%s\nand its event\n%s (%v)", body, e.Body, err)
	}
}

// A member's own copy loses its name as soon as another one is confirmed, and what rests on it goes with it.
func TestAnOptimisticCopyGivesWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, liar, "quicker")
	p := &party{world: w, url: pgtest.New(t), account: 1, namespace: "alice"}
	p.open(t)
	release, held, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	holder := p.db
	go func() { // while the test publishes, nobody else does
		done <- holder.WithLease(context.Background(), "publisher/alice", func(context.Context, store.Lease) error {
			close(held)
			<-release
			return nil
		})
	}()
	<-held
	p.client.Close()
	p.start(t)
	ctx := limited(t)
	own, err := p.BroadcastInterface(ctx, simpleStorage(t, "simple", "1"), "")
	if err != nil {
		t.Fatal(err)
	}
	ownAPI, err := p.BroadcastAPI(ctx, store.API{Name: "api", Interface: *own.ID}, "")
	if err != nil {
		t.Fatal(err)
	}
	lost, err := p.BroadcastAPI(ctx, store.API{Name: "on-the-lost-interface", Interface: *own.ID}, "")
	if err != nil {
		t.Fatal(err)
	}

	s := newSample(t, w.chain.Accounts[liar].Address, theNetwork)
	message := store.NewID()
	theirs := simpleStorage(t, "simple", "1")
	theirs.AssignPathnames()
	p.identify(&theirs, message)
	setNamespace(&theirs, theNetwork)
	s.addAs(t, message, store.TagDefineInterface, theirs)
	theirAPI := apiDefinition{ID: uuid.New(), Namespace: theNetwork, Name: "api", Interface: reference{*theirs.ID}}
	s.add(t, store.TagDefineAPI, theirAPI)
	w.pinSample(t, s)
	p.settled(t, 2)

	if i, err := p.db.InterfaceByName(ctx, "alice", "simple", "1"); err != nil || i.ID != *theirs.ID {
		t.Errorf("the name stands for %v, %v", i.ID, err)
	}
	if a, err := p.db.API(ctx, "alice", "api"); err != nil || a.ID != theirAPI.ID {
		t.Errorf("the API name stands for %v, %v", a.ID, err)
	}
	if i, err := p.db.Interface(ctx, "alice", *own.ID); err != nil || i.State != store.StateRejected {
		t.Errorf("the own interface is %s, %v", i.State, err)
	}
	if a, err := p.db.API(ctx, "alice", ownAPI.ID.String()); err != nil || a.State != store.StateRejected {
		t.Errorf("the own API is %s, %v", a.State, err)
	}
	if got := p.state(t, *own.Message); got != store.StateReady {
		t.Fatalf("the own message is %s before it was published", got)
	}
	close(release)
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := holder.Close(); err != nil {
		t.Error(err)
	}
	for _, id := range []uuid.UUID{*own.Message, ownAPI.Message, lost.Message} {
		if err := p.WaitConfirmed(ctx, id); pactwire.KindOf(err) != pactwire.KindConflict {
			t.Errorf("a definition that came too late: %v", err)
		}
	}
	if a, err := p.db.API(ctx, "alice", lost.ID.String()); err != nil || a.State != store.StateRejected {
		t.Errorf("the API on the lost interface is %s, %v", a.State, err)
	}
}

func TestARepeatedBroadcastIsOne(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	p := w.join(t, 1, "alice")
	first, err := p.BroadcastInterface(limited(t), simpleStorage(t, "simple", "1"), "key-1")
	if err != nil {
		t.Fatal(err)
	}
	again, err := p.BroadcastInterface(limited(t), simpleStorage(t, "simple", "1"), "key-1")
	if err != nil || *again.ID != *first.ID || *again.Message != *first.Message {
		t.Errorf("the repeat gave %v, %v; the first time %v", again.ID, err, first.ID)
	}
	if err := p.WaitConfirmed(limited(t), *first.Message); err != nil {
		t.Fatal(err)
	}
	api := store.API{Name: "simple", Interface: *first.ID}
	a, err := p.BroadcastAPI(limited(t), api, "key-2")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := p.BroadcastAPI(limited(t), api, "key-2"); err != nil || b.ID != a.ID {
		t.Errorf("the repeat gave %v, %v; the first time %v", b.ID, err, a.ID)
	}
	said := MessageInput{Tag: "x", Topics: []string{"t"}, Data: []json.RawMessage{json.RawMessage(`{"a":1}`)}, IdempotencyKey: "key-3"}
	ids := make(chan uuid.UUID, 8)
	var group sync.WaitGroup
	for range cap(ids) {
		group.Go(func() {
			m, err := p.BroadcastMessage(limited(t), said)
			if err != nil {
				t.Error(err)
			}
			ids <- m.ID
		})
	}
	group.Wait()
	close(ids)
	one := <-ids
	for id := range ids {
		if id != one {
			t.Errorf("message %s beside %s", id, one)
		}
	}
	var known *pactwire.Error
	for _, key := range []string{"key-1", "key-2", "key-3"} {
		other := said
		other.Tag, other.IdempotencyKey = "other", key
		if _, err := p.BroadcastMessage(limited(t), other); !errors.As(err, &known) || known.Code != "idempotency_conflict" {
			t.Errorf("%s with another body: %v", key, err)
		}
	}
}

func TestMessagesThatAreNoneAreRefusedAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	p := w.join(t, 1, "alice")
	for name, in := range map[string]MessageInput{
		"reserved tag": {Tag: "define_api"},
		"bad tag":      {Tag: "no good"},
		"bad topic":    {Topics: []string{"ok", ""}},
		"bad value":    {Data: []json.RawMessage{json.RawMessage(`{"a":1,"a":2}`)}},
		"no value":     {Data: []json.RawMessage{nil}},
		"many values":  {Data: make([]json.RawMessage, maxValues+1)},
	} {
		if _, err := p.BroadcastMessage(limited(t), in); pactwire.KindOf(err) != pactwire.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := p.BroadcastInterface(limited(t), contract.Interface{}, ""); pactwire.KindOf(err) != pactwire.KindInvalid {
		t.Errorf("an interface without a name: %v", err)
	}
	if _, err := p.BroadcastAPI(limited(t), store.API{Name: uuid.NewString()}, ""); pactwire.KindOf(err) != pactwire.KindInvalid {
		t.Errorf("an API with a name like an id: %v", err)
	}
	if _, err := p.BroadcastAPI(limited(t), store.API{Name: "x", Interface: uuid.New()}, ""); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("an API of no interface: %v", err)
	}
}
