package multiparty

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

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
