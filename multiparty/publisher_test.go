package multiparty

import (
	"encoding/hex"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

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
