package chain

import (
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/store"
)

func TestRefusedTransactionHoldsUpNobody(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	var good, bad []uuid.UUID
	one := big.NewInt(1)
	for i := range 12 {
		good = append(good, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(i)))))
		n := b.call(t, a, to, "set", one)
		switch i % 4 {
		case 0: // less gas than the bytes cost
			gas := uint64(100)
			n.Options.Gas = &gas
		case 1: // more than the account has
			n.Value = new(big.Int).Lsh(one, 200)
		case 2: // more than a block can hold
			gas := uint64(1 << 50)
			n.Options.Gas = &gas
		case 3: // a fee below the chain's
			n.Options.GasPrice = big.NewInt(0)
		}
		bad = append(bad, b.create(t, n))
	}
	b.submit(t)
	for _, id := range good {
		b.succeeded(t, id)
	}
	for i, id := range bad {
		if op := b.await(t, id); op.Status != store.OpFailed || op.Error == "" {
			t.Errorf("bad operation %d: %s %q", i, op.Status, op.Error)
		}
	}
	good = append(good, b.create(t, b.call(t, a, to, "set", one)))
	b.succeeded(t, good[len(good)-1])
	b.oneEventEach(t, append(good, bad...))
}

func TestNonceAskedFor(t *testing.T) {
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	b.submit(t)
	b.succeeded(t, b.create(t, b.call(t, a, to, "set", big.NewInt(1))))
	with := func(nonce uint64) store.NewOperation {
		n := b.call(t, a, to, "set", big.NewInt(2))
		n.Options.Nonce = &nonce
		return n
	}
	if op := b.await(t, b.create(t, with(0))); op.Status != store.OpFailed || !strings.Contains(op.Error, "nonce 0") {
		t.Fatalf("a used nonce: %s %q", op.Status, op.Error)
	}
	if op := b.await(t, b.create(t, with(1<<63))); op.Status != store.OpFailed || !strings.Contains(op.Error, "too far") {
		t.Fatalf("a nonce far away: %s %q", op.Status, op.Error)
	}
	next := b.minedNonce(t, b.key)
	ahead := b.create(t, with(next+1)) // waits for the one before
	first := b.create(t, b.call(t, a, to, "set", big.NewInt(3)))
	b.succeeded(t, first)
	b.succeeded(t, ahead)
	b.succeeded(t, b.create(t, with(next+2)))
	b.succeeded(t, b.create(t, b.call(t, a, to, "set", big.NewInt(4))))
}

func TestPoorKeyEndsItsOperations(t *testing.T) {
	b := newSubmitBench(t, 0)
	key, err := crypto.GenerateKey()
	if err != nil {
		t.Fatal(err)
	}
	b.key, b.signer = crypto.PubkeyToAddress(key.PublicKey), NewDevSigner(key)
	b.submit(t)
	var ids []uuid.UUID
	for range 30 {
		ids = append(ids, b.create(t, store.NewOperation{Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, To: &b.key, Gas: 21_000}))
	}
	for _, id := range ids {
		if op := b.await(t, id); op.Status != store.OpFailed || !strings.Contains(op.Error, "cannot pay") {
			t.Fatalf("%s %q", op.Status, op.Error)
		}
	}
	// Once there are funds it goes on.
	b.chain.Await(t, b.chain.Send(t, 2, &b.key, big.NewInt(1e18), nil).Hash())
	b.succeeded(t, b.create(t, store.NewOperation{Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: b.key, To: &b.key, Gas: 21_000}))
}
