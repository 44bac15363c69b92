package multiparty

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/sharedstorage/dir"
	"github.com/pactwire/pactwire/store"
)

// folders is shared storage that a member sees only a part of: it puts into one folder and gets from several.
type folders struct {
	*dir.Storage
	all []*dir.Storage
}

func (f folders) Get(ctx context.Context, batch uuid.UUID, p sharedstorage.Placement) (payload []byte, err error) {
	for _, one := range f.all {
		if payload, err = one.Get(ctx, batch, p); err == nil || errors.Is(err, sharedstorage.ErrUnusable) {
			return payload, err
		}
	}
	return nil, err
}

func openFolder(t *testing.T, path string) *dir.Storage {
	t.Helper()
	s, err := dir.New(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (p *party) sayOn(t *testing.T, topic, value string) store.Message {
	t.Helper()
	m, err := p.BroadcastMessage(limited(t), MessageInput{Topics: []string{topic}, Data: []json.RawMessage{json.RawMessage(value)}})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.WaitConfirmed(limited(t), m.ID); err != nil {
		t.Fatal(err)
	}
	return m
}

// topicOrder is what the party's history says was confirmed, by topic.
func (p *party) topicOrder(t *testing.T) map[string][]uuid.UUID {
	t.Helper()
	out := map[string][]uuid.UUID{}
	for _, e := range p.events(t) {
		if e.Type == store.EventMessageConfirmed {
			out[e.Topic] = append(out[e.Topic], e.Reference)
		}
	}
	return out
}

// A payload that is out of reach holds up its author, its topics and what they bring along; everything else goes on, and in the end all is as with the others.
func TestAMissingPayloadBlocksOnlyWhatDependsOnIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for account, name := range map[int]string{1: "alice", 2: "bob", 3: "carol", 4: "dave"} {
		w.register(t, account, name)
	}
	hidden, open := t.TempDir(), t.TempDir()
	seesAll := []*dir.Storage{openFolder(t, hidden), openFolder(t, open)}
	alice := w.joinWith(t, 1, "alice", folders{openFolder(t, hidden), seesAll})
	carol := w.joinWith(t, 3, "carol", folders{openFolder(t, open), seesAll})
	dave := w.joinWith(t, 4, "dave", folders{openFolder(t, open), seesAll})
	bob := w.joinWith(t, 2, "bob", openFolder(t, open))

	first := alice.sayOn(t, "a", `"first of alice"`)
	i, err := alice.BroadcastInterface(limited(t), simpleStorage(t, "contested", "1"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := alice.WaitConfirmed(limited(t), *i.Message); err != nil {
		t.Fatal(err)
	}
	depends := carol.sayOn(t, "a", `"on the topic of alice"`)
	sameAuthor := carol.sayOn(t, "c", `"after what waits"`)
	free := dave.sayOn(t, "d", `"nothing to do with alice"`)
	loser, err := dave.BroadcastInterface(limited(t), simpleStorage(t, "contested", "2"), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := dave.WaitConfirmed(limited(t), *loser.Message); err != nil {
		t.Fatal(err)
	}
	// Alice moves to another key, and goes on with it.
	w.chain.Transact(t, 1, w.pin, contracts.Pactwire(), "rotateMember", w.chain.Accounts[5].Address)
	alice.stop()
	alice.account = 5
	alice.start(t)
	rotated := alice.sayOn(t, "e", `"with a new key"`)

	eventually(t, "what does not depend is applied at bob", func() (bool, error) {
		m, err := bob.db.Message(context.Background(), "bob", free.ID)
		return err == nil && m.State == store.StateConfirmed, err
	})
	eventually(t, "bob has looked at everything", func() (bool, error) {
		n, err := bob.db.PinsDeferred(context.Background(), "bob")
		return n == 7, fmt.Errorf("%d deferred, %w", n, err)
	})
	for _, id := range []uuid.UUID{first.ID, depends.ID, sameAuthor.ID, rotated.ID, *i.Message, *loser.Message} {
		if _, err := bob.db.Message(context.Background(), "bob", id); err == nil {
			t.Errorf("message %s is there before what it depends on", id)
		}
	}
	// A restart forgets nothing of it.
	bob.restart(t)
	must(t, os.CopyFS(open, os.DirFS(hidden)))
	bob.settled(t, len(alice.outcomes(t)))
	want, got := alice.topicOrder(t), bob.topicOrder(t)
	for topic, ids := range want {
		if !slices.Equal(ids, got[topic]) {
			t.Errorf("topic %s: %v, want %v", topic, got[topic], ids)
		}
	}
	da, db := alice.definitions(t), bob.definitions(t)
	slices.Sort(da) // across topics, bob's history has another order
	slices.Sort(db)
	if !slices.Equal(da, db) {
		t.Errorf("two members differ:\n%s\n\n%s", strings.Join(da, "\n"), strings.Join(db, "\n"))
	}
	for _, p := range []*party{alice, bob} {
		record, err := p.db.Interface(context.Background(), p.namespace, *i.ID)
		if err != nil || record.Author != store.Account(w.chain.Accounts[5].Address.Bytes()) {
			t.Errorf("%s: the interface is %s's, %v", p.namespace, record.Author, err)
		}
	}
	if n, err := bob.db.PinsDeferred(context.Background(), "bob"); n != 0 || err != nil {
		t.Errorf("%d are still deferred, %v", n, err)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A file that is cut off is like one that is missing, and recovers when it is put right.
func TestAPayloadWithTheWrongHashRecovers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	folder, copied := t.TempDir(), t.TempDir()
	alice := w.joinWith(t, 1, "alice", openFolder(t, folder))
	m := alice.sayOn(t, "a", `1`)
	must(t, os.CopyFS(copied, os.DirFS(folder)))
	files, err := filepath.Glob(filepath.Join(copied, "*", "*"))
	must(t, err)
	whole, err := os.ReadFile(files[0])
	must(t, err)
	must(t, os.WriteFile(files[0], whole[:len(whole)/2], 0o600))
	bob := w.joinWith(t, 2, "bob", openFolder(t, copied))
	eventually(t, "bob waits for it", func() (bool, error) {
		n, err := bob.db.PinsDeferred(context.Background(), "bob")
		return n == 1, err
	})
	must(t, os.WriteFile(files[0], whole, 0o600))
	eventually(t, "bob has it", func() (bool, error) {
		got, err := bob.db.Message(context.Background(), "bob", m.ID)
		return err == nil && got.State == store.StateConfirmed, err
	})
}

// Whoever says one thing with the pin and another with the payload is refused; whoever promises a payload that never comes stops nobody else.
func TestALiarWithSharedStorageStopsNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.register(t, 1, "alice")
	w.register(t, 6, "liar")
	folder := t.TempDir()
	s := openFolder(t, folder)
	alice := w.joinWith(t, 1, "alice", s)
	lie := newSample(t, w.chain.Accounts[6].Address, theNetwork, "x")
	packed, hash := lie.encode(t)
	placement, err := s.Put(context.Background(), lie.batch, packed)
	must(t, err)
	for what, carried := range map[string][]byte{
		"no contexts": nil, "half a context": {1, 2, 3}, "not sorted": append(definitionsContext, contextOf("topic", "x")...),
		"others": contextOf("topic", "another"), "too many": make([]byte, 8*(maxContexts+1)),
	} {
		if what == "not sorted" && common.Bytes2Hex(carried[:8]) < common.Bytes2Hex(carried[8:]) {
			carried = append(slices.Clone(carried[8:]), carried[:8]...)
		}
		w.pinAs(t, 6, lie.batch, hash, placement.Location, carried)
	}
	// Fifty that never come.
	for k := range 50 {
		w.pinAs(t, 6, uuid.New(), hash, fmt.Sprintf("dir:%064x", k), contextOf("topic", fmt.Sprint("t", k)))
	}
	for k := range 3 {
		alice.sayOn(t, "alice", fmt.Sprint(k))
	}
	refused, err := alice.db.RefusedPins(context.Background(), "alice", 100)
	if err != nil || len(refused) != 5 {
		t.Errorf("%d were refused: %+v, %v", len(refused), refused, err)
	}
	if n, err := alice.db.PinsDeferred(context.Background(), "alice"); n != 50 || err != nil {
		t.Errorf("%d wait, %v", n, err)
	}
}
