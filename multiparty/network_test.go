package multiparty

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

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
