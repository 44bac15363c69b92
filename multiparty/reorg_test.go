package multiparty

import (
	"context"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// Pins that change places before they have their confirmations: the members follow the chain that stays, and nothing of the other one was ever told.
func TestAReorganisationBeforeConfirmationIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.confirmations = 3
	w.register(t, 1, "alice")
	w.register(t, 2, "bob")
	w.chain.Mine(4)
	alice, bob := w.join(t, 1, "alice"), w.join(t, 2, "bob")
	for _, p := range []*party{alice, bob} {
		eventually(t, p.namespace+" knows the members", func() (bool, error) {
			members, err := p.db.Members(context.Background(), p.namespace)
			return len(members) == 3, err
		})
	}
	w.chain.SetAutomine(false)
	broadcast := func(p *party) contract.Interface {
		i, err := p.BroadcastInterface(limited(t), simpleStorage(t, "contested", "1"), "")
		must(t, err)
		eventually(t, "the pin is with the node", func() (bool, error) {
			n, err := w.chain.Client().PendingTransactionCount(context.Background())
			return n == 1, err
		})
		w.chain.Mine(1)
		return i
	}
	a, b := broadcast(alice), broadcast(bob)
	undone := w.chain.Rewind(t, 2)
	if len(undone) != 2 {
		t.Fatalf("%d transactions were undone", len(undone))
	}
	for _, k := range []int{1, 0} { // Bob's comes first now
		must(t, w.chain.Client().SendTransaction(context.Background(), undone[k]))
		w.chain.Mine(1)
	}
	w.chain.Mine(5)
	first := w.firstPin(t, *a.Message, *b.Message, alice)
	for _, p := range []*party{alice, bob} {
		p.settled(t, 2)
		for message, want := range map[uuid.UUID]string{*a.Message: store.StateRejected, *b.Message: store.StateConfirmed} {
			if first == *a.Message { // the node put both into one block, its own way
				want = map[string]string{store.StateRejected: store.StateConfirmed, store.StateConfirmed: store.StateRejected}[want]
			}
			if got := p.state(t, message); got != want {
				t.Errorf("%s: message %s is %s, want %s", p.namespace, message, got, want)
			}
			if told := p.outcomes(t)[message]; len(told) != 1 {
				t.Errorf("%s was told %v of message %s", p.namespace, told, message)
			}
		}
	}
	if first == *a.Message {
		t.Log("the order did not change")
	}
	sameDefinitions(t, alice, bob)
}

// firstPin is the message whose batch comes first on the chain as it is now.
func (w *world) firstPin(t *testing.T, a, b uuid.UUID, alice *party) uuid.UUID {
	t.Helper()
	logs, err := w.chain.Client().FilterLogs(context.Background(), ethereum.FilterQuery{
		FromBlock: new(big.Int), Addresses: []common.Address{w.pin}, Topics: [][]common.Hash{{topicOf("BatchPin")}},
	})
	must(t, err)
	if len(logs) != 2 {
		t.Fatalf("the chain has %d pins", len(logs))
	}
	if common.BytesToAddress(logs[0].Topics[1].Bytes()) == alice.cfg.Key {
		return a
	}
	return b
}
