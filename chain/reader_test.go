package chain

import (
	"context"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

const changed = "Changed(address,uint256)"

func (r *rig) set(address common.Address, value int64) {
	r.t.Helper()
	r.chain.Transact(r.t, 1, address, contracts.SimpleStorage(), "set", big.NewInt(value))
}

func TestOldestReadsThePastThenFollows(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	for i := range 3 {
		r.set(address, int64(i))
	}
	l := r.listen(storage, changed, &address, "oldest")
	r.start()
	r.history(3)
	r.reached(r.chain.Head())
	r.set(address, 3)
	events := r.history(4)
	if len(events) != 4 {
		t.Fatalf("%d events", len(events))
	}
	for i, e := range events {
		body := bodyOf(t, e)
		if e.Sequence != int64(i+1) || e.Type != store.EventBlockchainReceived || e.BodyKey != store.BodyBlockchainEvent || e.Topic != "t" ||
			*e.Name != "Changed" || *e.Listener != l.ID || e.Reference != body.ID {
			t.Errorf("event %d: %+v", i, e)
		}
		if string(body.Output["value"]) != `"`+string(rune('0'+i))+`"` || body.Source != "ethereum" || body.Name != "Changed" ||
			body.Listener != l.ID || body.Namespace != "default" || body.TX["type"] != "" {
			t.Errorf("body %d: %s", i, e.Body)
		}
		if len(body.ProtocolID) != 26 || body.Info["signature"] != changed || body.Info["subId"] != l.ProtocolID ||
			body.Info["address"] != strings.ToLower(address.Hex()) || body.Info["logIndex"] != "0" || body.Info["transactionIndex"] != "0" {
			t.Errorf("body %d: %s", i, e.Body)
		}
		if _, err := time.Parse("2006-01-02T15:04:05Z", body.Timestamp); err != nil {
			t.Errorf("body %d: %v", i, err)
		}
	}
	r.consistent(l)
	l, err := r.db.Listener(context.Background(), "default", l.Name)
	if err != nil {
		t.Fatal(err)
	}
	status, err := ListenerStatus(context.Background(), r.client, r.db, l)
	if err != nil || status.Mode != ModeLive || status.Events != 4 || status.Lag != 0 || status.Checkpoint != int64(r.chain.Head())+1 {
		t.Errorf("status %+v, %v", status, err)
	}
}

func TestNewestHearsOnlyWhatComes(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	r.set(address, 1)
	r.start()
	r.reached(r.chain.Head())
	l := r.listen(storage, changed, &address, "newest")
	r.set(address, 2) // mined before or after the reader knows the listener
	r.reached(r.chain.Head())
	r.set(address, 3)
	if events := r.history(2); len(events) != 2 || string(bodyOf(t, events[0]).Output["value"]) != `"2"` {
		t.Errorf("%d events, the first one %s", len(events), events[0].Body)
	}
	r.consistent(l)
}

func TestEachLogOnceOverRestarts(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	r.cfg.FirstRange, r.cfg.LargestRange = 2, 3
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	first := r.listen(storage, changed, &address, "oldest")
	r.start()
	random := rand.New(rand.NewPCG(1, 2))
	var second store.Listener
	for i := range 120 {
		r.set(address, int64(i))
		if random.IntN(6) == 0 {
			r.stop()
			for range random.IntN(4) { // the listeners fall behind
				r.set(address, -1+int64(i))
			}
			r.start()
		}
		if i == 80 {
			second = r.listen(storage, changed, &address, "5")
		}
	}
	r.reached(r.chain.Head())
	r.consistent(first)
	r.consistent(second)
}

func TestListenersOfManyKinds(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	zoo, storage := contracts.Zoo(), contracts.SimpleStorage()
	one, two := r.chain.Deploy(t, zoo, "one"), r.chain.Deploy(t, zoo, "two")
	storageAt := r.chain.Deploy(t, storage)
	signatures := []string{
		"Nothing()", "Words(uint256,string)", "Counted(uint256,uint256)", "Text(string)", "Anonymous(uint256,uint256)",
		"Over(uint256)", "Over(string)", "AnonymousFour(uint256,uint256,uint256,uint256)",
	}
	var listeners []store.Listener
	for _, signature := range signatures {
		listeners = append(listeners, r.listen(zoo, signature, &one, "oldest"), r.listen(zoo, signature, &one, "oldest"))
	}
	anywhere := r.listen(zoo, "Text(string)", nil, "oldest")
	r.start()
	work := func() {
		for _, address := range []common.Address{one, two} {
			r.chain.Transact(t, 1, address, zoo, "emitAll")
			r.chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(20))
			r.chain.Transact(t, 1, address, zoo, "emitText", []byte{'o', 'k', 0, 0xff, '"', '\\', 0xe2, 0x82})
			r.chain.Transact(t, 1, address, zoo, "emitMalformed", []byte{1, 2, 3})
		}
		r.set(storageAt, 1)
	}
	work()
	r.reached(r.chain.Head())
	late := r.listen(zoo, "Anonymous(uint256,uint256)", nil, "oldest")
	work()
	r.reached(r.chain.Head())
	count := map[string]int{}
	for _, e := range r.history(0) {
		body := bodyOf(t, e)
		count[e.Listener.URN()]++
		if e.Listener.String() == listeners[2].ID.String() && body.Info["error"] != "" {
			if len(body.Output) != 0 {
				t.Errorf("the record of a malformed log: %s", e.Body)
			}
			count["malformed"]++
		}
	}
	// What fits the shape of an anonymous event is taken for it: Anonymous hears Counted too, AnonymousFour hears others with three indexed arguments.
	want := []int{2, 4, 42, 4, 18, 2, 2, 6}
	for i, n := range want {
		for _, l := range listeners[2*i : 2*i+2] {
			if got := count[l.ID.URN()]; got != n {
				t.Errorf("%s: %d events, want %d", l.Signature, got, n)
			}
		}
	}
	if count[anywhere.ID.URN()] != 8 || count[late.ID.URN()] != 36 || count["malformed"] != 2 {
		t.Errorf("anywhere %d, late %d, malformed %d", count[anywhere.ID.URN()], count[late.ID.URN()], count["malformed"])
	}
	for _, l := range listeners {
		if l.Topic0 != nil {
			r.consistent(l)
		}
	}
	r.consistent(anywhere)
}

func TestDeletedListenerHearsNoMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	gone, stays := r.listen(storage, changed, &address, "oldest"), r.listen(storage, changed, &address, "oldest")
	r.start()
	r.set(address, 1)
	r.history(2)
	if err := r.db.DeleteListener(context.Background(), "default", gone.Name); err != nil {
		t.Fatal(err)
	}
	r.set(address, 2)
	r.history(3)
	r.reached(r.chain.Head())
	r.consistent(stays)
	if events := r.history(3); len(events) != 3 {
		t.Errorf("%d events, want 3", len(events))
	}
}

func TestReorganisationBeforeRecordingLeavesNoTrace(t *testing.T) {
	t.Parallel()
	r := newRig(t, 2, chaintest.Manual())
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	l := r.listen(storage, changed, &address, "oldest")
	r.start()
	r.set(address, 1)
	r.chain.Mine(1)
	r.chain.ReorgDropping(t, 2)
	r.set(address, 2)
	r.chain.Mine(2)
	r.history(1)
	r.reached(r.chain.Head() - 2)
	if events := r.history(1); len(events) != 1 || string(bodyOf(t, events[0]).Output["value"]) != `"2"` {
		t.Errorf("%d events, the first one %s", len(events), events[0].Body)
	}
	r.consistent(l)
}

func TestReorganisationAfterRecordingIsTold(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	l := r.listen(storage, changed, &address, "oldest")
	r.start()
	r.set(address, 1)
	r.set(address, 2)
	r.set(address, 3)
	before := r.history(3)
	r.chain.Reorg(t, 2) // the last two come again in other blocks
	events := r.history(7)
	if len(events) != 7 {
		t.Fatalf("%d events, want 7", len(events))
	}
	for i, want := range []store.Event{before[2], before[1]} { // the newest first
		if e := events[3+i]; e.Type != store.EventBlockchainRemoved || e.Reference != want.Reference || e.Body != want.Body || e.BodyKey != want.BodyKey {
			t.Errorf("event %d: %+v", 3+i, e)
		}
	}
	for i, e := range events[5:] {
		if e.Type != store.EventBlockchainReceived || e.Reference == before[1+i].Reference {
			t.Errorf("event %d: %+v", 5+i, e)
		}
	}
	r.reached(r.chain.Head())
	r.consistent(l)
	r.chain.ReorgDropping(t, 3) // and now they are gone
	r.history(9)
	r.reached(r.chain.Head())
	r.consistent(l)
}

func TestReorganisationWhileTheReaderIsAway(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	l := r.listen(storage, changed, &address, "oldest")
	r.start()
	for i := range 5 {
		r.set(address, int64(i))
	}
	r.history(5)
	r.stop()
	r.chain.Reorg(t, 4)
	r.cfg.demoteLag = 50
	r.chain.Mine(80) // so far that the live part jumps
	r.set(address, 9)
	r.start()
	r.reached(r.chain.Head())
	r.consistent(l)
}

func TestShorterChainIsBelievedAfterAWhile(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0, chaintest.Manual())
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	l := r.listen(storage, changed, &address, "oldest")
	r.start()
	for i := range 4 {
		r.set(address, int64(i))
	}
	r.history(4)
	r.chain.Rewind(t, 3)
	r.chain.Mine(1)
	r.history(7)
	r.reached(r.chain.Head())
	r.consistent(l)
}

func TestPinsAreRecordedFromTheirFirstBlock(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	ctx := context.Background()
	zoo := contracts.Zoo() // any contract's logs will do
	address := r.chain.Deploy(t, zoo, "pins")
	r.chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(3))
	from := int64(r.chain.Head()) + 1
	r.chain.Transact(t, 1, address, zoo, "emitAll")
	r.start()
	r.reached(r.chain.Head()) // beyond the first pins before the contract is known
	if err := r.db.SetPinContract(ctx, "dev", address, from); err != nil {
		t.Fatal(err)
	}
	r.reached(r.chain.Head())
	r.chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(2))
	r.reached(r.chain.Head())
	pins, err := r.db.WaitingPins(ctx, "dev", "default", nil, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(pins) != 17 {
		t.Fatalf("%d pins, want 17", len(pins))
	}
	for i := 1; i < len(pins); i++ {
		if a, b := pins[i-1], pins[i]; a.BlockNumber > b.BlockNumber || a.BlockNumber == b.BlockNumber && a.LogIndex >= b.LogIndex {
			t.Errorf("pin %d is before pin %d", i-1, i)
		}
	}
	r.chain.ReorgDropping(t, 1)
	r.reached(r.chain.Head())
	if pins, err = r.db.WaitingPins(ctx, "dev", "default", nil, 100); err != nil || len(pins) != 15 {
		t.Errorf("%d pins after the reorganisation, want 15 (%v)", len(pins), err)
	}
	// The same contract again, as at every start: nothing is read twice.
	if err := r.db.SetPinContract(ctx, "dev", address, from); err != nil {
		t.Fatal(err)
	}
	if chain, err := r.db.Chain(ctx, "dev"); err != nil || !chain.PinLive {
		t.Errorf("the pins are not live any more (%v)", err)
	}
}

func TestOneReaderAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	storage := contracts.SimpleStorage()
	address := r.chain.Deploy(t, storage)
	l := r.listen(storage, changed, &address, "oldest")
	r.start()
	stopFirst := r.stop
	r.start()
	stopSecond := r.stop
	for i := range 20 {
		r.set(address, int64(i))
		if i == 10 {
			stopFirst()
		}
	}
	r.reached(r.chain.Head())
	r.consistent(l)
	stopSecond()
	// A reader that lost its lease without noticing cannot write.
	chain, err := r.db.Chain(context.Background(), "dev")
	if err != nil {
		t.Fatal(err)
	}
	err = r.db.RecordBlocks(context.Background(), store.BlockBatch{
		Chain: "dev", Lease: store.Lease{Epoch: chain.Epoch - 1}, From: chain.NextBlock, To: chain.NextBlock,
	})
	if err == nil || !strings.Contains(err.Error(), store.ErrFenced.Error()) {
		t.Errorf("an old reader wrote: %v", err)
	}
}

// TestModel does anything in any order and compares the outcome with the chain.
func TestModel(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(string(rune('a'+seed)), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 7))
			r := newRig(t, uint64(random.IntN(3)))
			r.cfg.FirstRange, r.cfg.LargestRange = 1, 1+random.Int64N(20)
			zoo := contracts.Zoo()
			address := r.chain.Deploy(t, zoo, "model")
			var listeners []store.Listener
			r.start()
			for range 60 {
				switch random.IntN(8) {
				case 0:
					first := []string{"oldest", "3"}[random.IntN(2)]
					where := []*common.Address{&address, nil}[random.IntN(2)]
					listeners = append(listeners, r.listen(zoo, "Counted(uint256,uint256)", where, first))
				case 1:
					if head := int(r.chain.Head()); head > 8 {
						r.chain.Reorg(t, 1+random.IntN(5))
					}
				case 2:
					if head := int(r.chain.Head()); head > 12 {
						r.chain.ReorgDropping(t, 1+random.IntN(3))
					}
				case 3:
					r.stop()
					r.start()
				case 4:
					r.chain.Mine(random.IntN(100))
				default:
					r.chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(random.Int64N(5)))
				}
			}
			r.chain.Mine(5)
			r.reached(r.chain.Head() - r.cfg.Confirmations)
			for _, l := range listeners {
				r.consistent(l)
			}
		})
	}
}

func TestFirstEvent(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	head := int64(r.chain.Head())
	for in, want := range map[string]struct {
		block int64
		out   string
	}{
		"oldest": {0, "oldest"}, "newest": {head + 1, "newest"}, "": {head + 1, "newest"}, "latest": {head + 1, "latest"}, "7": {7, "7"}, "007": {7, "7"},
	} {
		block, out, err := ResolveFirstEvent(context.Background(), r.client, in)
		if err != nil || block != want.block || out != want.out {
			t.Errorf("%q: %d, %q, %v", in, block, out, err)
		}
	}
	for _, in := range []string{"-1", "1.5", "0x10", "first", "99999999999999999999999", " 1"} {
		if _, _, err := ResolveFirstEvent(context.Background(), r.client, in); err == nil {
			t.Errorf("%q is taken", in)
		}
	}
}
