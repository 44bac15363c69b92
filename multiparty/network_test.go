package multiparty

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
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

func TestMembersAgreeOnTheWinnerOfAName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, 2, "bob")
	a, b := w.join(t, 1, "alice"), w.join(t, 2, "bob")
	ctx := limited(t)
	const rounds = 5
	var ids []uuid.UUID
	var mu sync.Mutex
	for round := range rounds {
		var group sync.WaitGroup
		for _, p := range []*party{a, b} {
			group.Go(func() {
				i, err := p.BroadcastInterface(ctx, simpleStorage(t, "contested", fmt.Sprint(round)), "")
				if err != nil {
					t.Error(err)
					return
				}
				api, err := p.BroadcastAPI(ctx, store.API{Name: fmt.Sprintf("api-%d", round), Interface: *i.ID}, "")
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				defer mu.Unlock()
				ids = append(ids, *i.Message, api.Message)
			})
		}
		group.Wait()
	}
	a.settled(t, len(ids))
	b.settled(t, len(ids))
	rejected := 0
	for _, id := range ids {
		sa, sb := a.state(t, id), b.state(t, id)
		if sa != sb {
			t.Errorf("message %s is %s at one, %s at the other", id, sa, sb)
		}
		if sa == store.StateRejected {
			rejected++
		}
	}
	if rejected != 2*rounds {
		t.Errorf("%d messages are rejected, want one of each pair: %d", rejected, 2*rounds)
	}
	for _, p := range []*party{a, b} {
		for id, outcomes := range p.outcomes(t) {
			if len(outcomes) != 1 {
				t.Errorf("%s: message %s was decided %v", p.namespace, id, outcomes)
			}
		}
	}
	sameDefinitions(t, a, b)
	var loser *party // whoever lost the first round still has its copy, and sees that it is rejected
	for _, p := range []*party{a, b} {
		if _, err := p.db.InterfaceByName(ctx, p.namespace, "contested", "0"); err != nil {
			t.Errorf("%s: the winner's interface is not found: %v", p.namespace, err)
		}
		for _, id := range ids[:4] {
			m, err := p.db.Message(ctx, p.namespace, id)
			if err == nil && m.Local && m.State == store.StateRejected {
				loser = p
				if err := p.WaitConfirmed(ctx, id); pactwire.KindOf(err) != pactwire.KindConflict {
					t.Errorf("waiting for a rejected message: %v", err)
				}
			}
		}
	}
	if loser == nil {
		t.Error("nobody lost the first round")
	}
}

// definitions are what a member has in force, without what is its own affair.
func (p *party) definitions(t *testing.T) (out []string) {
	t.Helper()
	ctx := context.Background()
	for _, e := range p.events(t) {
		switch e.Type {
		case store.EventInterfaceConfirmed:
			i, err := p.db.Interface(ctx, p.namespace, e.Reference)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, "interface "+i.State+" "+i.Author+" "+i.Definition)
		case store.EventAPIConfirmed:
			a, err := p.db.API(ctx, p.namespace, e.Reference.String())
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("api %s %s %s %x %s %s", a.State, a.ID, a.Name, a.Location, a.Interface, a.Author))
		case store.EventMessageConfirmed, store.EventMessageRejected:
			m, err := p.db.Message(ctx, p.namespace, e.Reference)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, fmt.Sprintf("message %s %s %x %s", m.ID, m.State, m.Hash, m.Reason))
		}
	}
	for i := range out {
		out[i] = strings.ReplaceAll(out[i], `"namespace":"`+p.namespace+`"`, `"namespace":""`)
	}
	return out
}

func sameDefinitions(t *testing.T, a, b *party) {
	t.Helper()
	da, db := a.definitions(t), b.definitions(t)
	if len(da) == 0 || !slices.Equal(da, db) {
		t.Errorf("two members differ:\n%s\n\n%s", strings.Join(da, "\n"), strings.Join(db, "\n"))
	}
}

func TestALateJoinerComesToTheSameState(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, 2, "bob")
	a := w.join(t, 1, "alice")
	ctx := limited(t)
	i, err := a.BroadcastInterface(ctx, simpleStorage(t, "simple", "1"), "")
	if err != nil {
		t.Fatal(err)
	}
	second, err := a.BroadcastInterface(ctx, simpleStorage(t, "simple", "2"), "")
	if err != nil {
		t.Fatal(err)
	}
	api, err := a.BroadcastAPI(ctx, store.API{Name: "api", Interface: *i.ID}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.WaitConfirmed(ctx, api.Message); err != nil {
		t.Fatal(err)
	}
	update, err := a.UpdateAPI(ctx, api.ID, *second.ID, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.WaitConfirmed(ctx, update.Message); err != nil {
		t.Fatal(err)
	}
	if got, err := a.db.API(ctx, "alice", "api"); err != nil || got.Interface != *second.ID || got.ID != api.ID || got.Updated == nil {
		t.Errorf("after the update: %+v, %v", got, err)
	}
	for n := range 30 {
		a.say(t, fmt.Sprint(n))
	}
	// Deleted at home: the other members do not know, and a new API takes the name over everywhere.
	if err := a.db.DeleteInterface(ctx, "alice", *second.ID); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Errorf("an interface in use was deleted: %v", err)
	}
	if _, err := a.BroadcastAPI(ctx, store.API{Name: "api", Interface: *i.ID}, ""); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Errorf("a name was given twice: %v", err)
	}
	if err := a.db.DeleteAPI(ctx, "alice", "api"); err != nil {
		t.Fatal(err)
	}
	if _, err := a.db.API(ctx, "alice", "api"); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("the deleted API: %v", err)
	}
	again, err := a.BroadcastAPI(ctx, store.API{Name: "api", Interface: *i.ID}, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.WaitConfirmed(ctx, again.Message); err != nil {
		t.Fatal(err)
	}
	if _, err := a.BroadcastInterface(ctx, simpleStorage(t, "simple", "1"), ""); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Errorf("a version was broadcast twice: %v", err)
	}
	if err := a.db.DeleteInterface(ctx, "alice", *second.ID); err != nil {
		t.Errorf("an interface that is not in use any more: %v", err)
	}

	b := w.join(t, 2, "bob")
	b.settled(t, len(a.outcomes(t)))
	if !reflect.DeepEqual(a.outcomes(t), b.outcomes(t)) {
		t.Error("the two members have different outcomes")
	}
	if _, err := b.db.Interface(ctx, "bob", *second.ID); err != nil {
		t.Errorf("what one deletes goes away at another: %v", err)
	}
	if got, err := b.db.API(ctx, "bob", "api"); err != nil || got.ID != again.ID {
		t.Errorf("the newer API has not taken the name: %+v, %v", got, err)
	}
	if _, err := b.BroadcastAPI(ctx, store.API{Name: "api", Interface: *i.ID}, ""); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Errorf("a name of another member was given: %v", err)
	}
	if _, err := b.UpdateAPI(ctx, again.ID, *second.ID, ""); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Errorf("an API of another member was changed: %v", err)
	}
	members, err := b.db.Members(ctx, "bob")
	if err != nil || len(members) != 3 || members[0].Name != "alice" || members[0].URL != "http://alice" {
		t.Errorf("members %+v, %v", members, err)
	}
}

func TestNothingIsLostOrDoubledByRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	p := w.join(t, 1, "alice")
	const each, restarts = 12, 5
	sent := map[uuid.UUID]bool{}
	for range restarts {
		for n := range each {
			sent[p.say(t, fmt.Sprint(n)).ID] = true
		}
		time.Sleep(time.Duration(rand.IntN(30)) * time.Millisecond) // any moment will do
		p.restart(t)
	}
	p.settled(t, len(sent))
	for id, outcomes := range p.outcomes(t) {
		if !sent[id] || !slices.Equal(outcomes, []string{store.EventMessageConfirmed}) {
			t.Errorf("message %s: %v", id, outcomes)
		}
	}
	refused, err := p.db.RefusedPins(context.Background(), "alice", 100)
	if err != nil || len(refused) != 0 {
		t.Errorf("refused %+v, %v", refused, err)
	}
}

func TestABatchThatWasSentSurvivesARestartBeforeItIsMined(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.chain.SetAutomine(false)
	p := w.join(t, 1, "alice")
	var ids []uuid.UUID
	for n := range 20 {
		ids = append(ids, p.say(t, fmt.Sprint(n)).ID)
	}
	inFlight := func() int {
		n, err := p.db.BatchesInFlight(context.Background(), "alice")
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for inFlight() < maxInFlight {
		ids = append(ids, p.say(t, `"more"`).ID)
	}
	p.restart(t)
	for range 5 {
		ids = append(ids, p.say(t, `"waits"`).ID)
	}
	time.Sleep(300 * time.Millisecond) // nothing may happen in it
	if n := inFlight(); n != maxInFlight {
		t.Errorf("%d batches in flight, want %d", n, maxInFlight)
	}
	if got := p.state(t, ids[len(ids)-1]); got != store.StateReady {
		t.Errorf("a message beyond the batches in flight is %s", got)
	}
	if got := p.outcomes(t); len(got) != 0 {
		t.Fatalf("decided without a block: %v", got)
	}
	w.chain.SetAutomine(true)
	w.chain.Mine(1)
	p.settled(t, len(ids))
	for _, id := range ids {
		if s := p.state(t, id); s != store.StateConfirmed {
			t.Errorf("message %s is %s", id, s)
		}
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

func TestAReorganisationAppliesNothingTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	p := w.join(t, 1, "alice")
	sent := map[uuid.UUID]bool{}
	for round := range 4 {
		for n := range 3 {
			m := p.say(t, fmt.Sprint(n))
			sent[m.ID] = true
			if err := p.WaitConfirmed(limited(t), m.ID); err != nil {
				t.Fatal(err)
			}
		}
		w.chain.Reorg(t, round+1)
	}
	m := p.say(t, `"after it"`)
	sent[m.ID] = true
	if err := p.WaitConfirmed(limited(t), m.ID); err != nil {
		t.Fatal(err)
	}
	for id, outcomes := range p.outcomes(t) {
		if !sent[id] || !slices.Equal(outcomes, []string{store.EventMessageConfirmed}) {
			t.Errorf("message %s: %v", id, outcomes)
		}
	}
	if refused, err := p.db.RefusedPins(context.Background(), "alice", 10); err != nil || len(refused) > 0 {
		t.Errorf("batches that came again were reported: %+v, %v", refused, err)
	}
}

func TestWhoIsNoMemberIsTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.join(t, 3, "stranger")
	_, err := p.BroadcastInterface(limited(t), simpleStorage(t, "simple", "1"), "")
	var known *pactwire.Error
	if !errors.As(err, &known) || known.Code != "not_a_member" || known.Kind != pactwire.KindConflict {
		t.Errorf("got %v", err)
	}
	if _, err := p.BroadcastMessage(limited(t), MessageInput{Data: []json.RawMessage{json.RawMessage(`1`)}}); !errors.As(err, &known) || known.Code != "not_a_member" {
		t.Errorf("got %v", err)
	}
	messages, _, err := p.db.ListMessages(limited(t), "stranger", store.Page{})
	if err != nil || len(messages) != 0 {
		t.Errorf("stored all the same: %+v, %v", messages, err)
	}
	w.register(t, 3, "no stranger any more")
	m := p.say(t, "1")
	if err := p.WaitConfirmed(limited(t), m.ID); err != nil {
		t.Error(err)
	}
	if _, err := p.BroadcastInterface(limited(t), simpleStorage(t, "simple", "1"), ""); err != nil {
		t.Errorf("the name is not free: %v", err)
	}
}

// Whoever is removed between the broadcast and the pin is told by the contract.
func TestThePinContractRefusesWhoIsNoMemberAnyMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 3, "guest")
	p := w.join(t, 3, "guest")
	if err := p.WaitConfirmed(limited(t), p.say(t, "1").ID); err != nil {
		t.Fatal(err)
	}
	p.stop()
	w.chain.Transact(t, admin, w.pin, contracts.Pactwire(), "removeMember", w.chain.Accounts[3].Address)
	p.open(t) // not running: it does not know of the removal yet
	var err error
	if p.Network, err = New(p.cfg, p.db, p.client, p.storage, testLog()); err != nil {
		t.Fatal(err)
	}
	i, err := p.BroadcastInterface(limited(t), simpleStorage(t, "simple", "1"), "")
	if err != nil {
		t.Fatal(err)
	}
	p.client.Close()
	if err := p.db.Close(); err != nil {
		t.Fatal(err)
	}
	p.start(t)
	err = p.WaitConfirmed(limited(t), *i.Message)
	var known *pactwire.Error
	if !errors.As(err, &known) || known.Code != "message_rejected" || !strings.Contains(known.Message, "NotMember") {
		t.Errorf("got %v", err)
	}
	own, err := p.db.Interface(limited(t), "guest", *i.ID)
	if err != nil || own.State != store.StateRejected {
		t.Errorf("the own copy is %q, %v", own.State, err)
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

func TestAPinThatRevertsOnTheChainRejectsItsMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.chain.SetAutomine(false)
	p := w.join(t, 1, "alice")
	m := p.say(t, "1")
	eventually(t, "the batch is sent", func() (bool, error) { return p.state(t, m.ID) == store.StateSent, nil })
	// The admin's transaction pays more, and so comes first in the block: the pin was estimated in another state of the chain.
	data, err := contracts.Pactwire().Parsed.Pack("removeMember", w.chain.Accounts[1].Address)
	if err != nil {
		t.Fatal(err)
	}
	w.expensive(t, admin, data)
	w.chain.SetAutomine(true)
	w.chain.Mine(1)
	err = p.WaitConfirmed(limited(t), m.ID)
	if pactwire.KindOf(err) != pactwire.KindConflict || !strings.Contains(err.Error(), "could not be pinned") {
		t.Errorf("got %v", err)
	}
	if got := p.outcomes(t)[m.ID]; !slices.Equal(got, []string{store.EventMessageRejected}) {
		t.Errorf("the history says %v", got)
	}
}

func TestALargeMessageGoesInChunks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, 2, "bob")
	a, b := w.join(t, 1, "alice"), w.join(t, 2, "bob")
	random := make([]byte, 600_000) // hex of it compresses to about its size
	_, _ = rand.NewChaCha8([32]byte{7}).Read(random)
	i := simpleStorage(t, "large", "1")
	i.Description = hex.EncodeToString(random)
	got, err := a.BroadcastInterface(limited(t), i, "")
	if err != nil {
		t.Fatal(err)
	}
	small := a.say(t, `"after it"`)
	for _, p := range []*party{a, b} {
		p.settled(t, 2)
		for _, id := range []uuid.UUID{*got.Message, small.ID} {
			if err := p.WaitConfirmed(limited(t), id); err != nil {
				t.Error(err)
			}
		}
	}
	there, err := b.db.InterfaceByName(limited(t), "bob", "large", "1")
	if err != nil || there.Description != i.Description {
		t.Errorf("the description has %d bytes, want %d; %v", len(there.Description), len(i.Description), err)
	}
	huge := json.RawMessage(`"` + strings.Repeat("x", maxMessage) + `"`)
	if _, err := a.BroadcastMessage(limited(t), MessageInput{Data: []json.RawMessage{huge}}); pactwire.KindOf(err) != pactwire.KindTooLarge {
		t.Errorf("a message beyond the limit: %v", err)
	}
}

func TestManyMessagesThatAreNotSmallTogether(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	p := &party{world: w, url: pgtest.New(t), account: 1, namespace: "alice"}
	p.start(t)
	w.chain.SetAutomine(false)
	values := make([]json.RawMessage, maxValues)
	for i := range values {
		values[i] = json.RawMessage(`0`)
	}
	topics := make([]string, maxTopics)
	for i := range topics {
		topics[i] = strings.Repeat("t", 64)
	}
	const count = 60 // 3 MB as one payload
	for range count {
		if _, err := p.BroadcastMessage(limited(t), MessageInput{Topics: topics, Data: values}); err != nil {
			t.Fatal(err)
		}
	}
	w.chain.SetAutomine(true)
	w.chain.Mine(1)
	p.settled(t, count)
	for id, outcomes := range p.outcomes(t) {
		if !slices.Equal(outcomes, []string{store.EventMessageConfirmed}) {
			t.Errorf("message %s: %v", id, outcomes)
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

func TestThePinContractIsDeployedOnce(t *testing.T) {
	t.Parallel()
	w := &world{chain: chaintest.New(t)}
	p := &party{world: w, url: pgtest.New(t), account: 0, namespace: "default"}
	d := Deployment{Namespace: "default", Chain: theChain, Key: w.chain.Accounts[0].Address, Name: "dev", URL: "http://127.0.0.1:5000"}
	p.open(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	if _, err := EnsurePinContract(ctx, d, p.db, p.client); err == nil || ctx.Err() == nil {
		t.Errorf("without a submitter: %v", err) // accepted, but the process ends here
	}
	cancel()
	submitter := chain.NewSubmitter(chain.SubmitterConfig{Chain: theChain}, p.db, p.client, chain.NewDevSigner(w.chain.Accounts[0].Key), testLog())
	p.run(t, p.db.Notifier.Run, p.client.Run, submitter.Run)
	first, err := EnsurePinContract(limited(t), d, p.db, p.client)
	if err != nil {
		t.Fatal(err)
	}
	second, err := EnsurePinContract(limited(t), d, p.db, p.client)
	if err != nil || first != second {
		t.Errorf("%s, then %s, %v", first, second, err)
	}
	if nonce, err := w.chain.Client().NonceAt(context.Background(), d.Key, nil); err != nil || nonce != 1 {
		t.Errorf("%d transactions for one deployment, %v", nonce, err)
	}
	if err := CheckPinContract(limited(t), p.client, common.HexToAddress("0x1234")); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Errorf("no contract: %v", err)
	}
	other := w.chain.Deploy(t, contracts.SimpleStorage())
	if err := CheckPinContract(limited(t), p.client, other); pactwire.KindOf(err) != pactwire.KindConflict {
		t.Errorf("another contract: %v", err)
	}
	p.stop()

	// The member that deployed it can broadcast, although its registration lies before the reader's start.
	w.pin = first
	p.start(t)
	m := p.say(t, "1")
	if err := p.WaitConfirmed(limited(t), m.ID); err != nil {
		t.Error(err)
	}
}
