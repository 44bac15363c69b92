package chain

import (
	"errors"
	"log/slog"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// estimated is a chain with a contract, and a client of its node.
func estimated(t *testing.T) (*chaintest.Chain, *Client, common.Address) {
	t.Helper()
	chain := chaintest.New(t, chaintest.Manual())
	client, err := Dial(t.Context(), Config{Name: "dev", URLs: []string{chain.WSURL()}}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return chain, client, chain.Deploy(t, contracts.Zoo(), "gas")
}

// TestEstimatesLearn holds estimates that use earlier ones against the node's own, for a function that takes very different amounts of gas.
func TestEstimatesLearn(t *testing.T) {
	t.Parallel()
	ctx, zoo := t.Context(), contracts.Zoo()
	chain, client, to := estimated(t)
	for i, events := range []int64{1, 1, 1, 2, 50, 1, 1, 3, 200, 1, 7, 7, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 1} {
		data, err := zoo.Parsed.Pack("emitMany", big.NewInt(events))
		if err != nil {
			t.Fatal(err)
		}
		r := CallRequest{From: &chain.Accounts[1].Address, To: to, Data: data}
		want, err := client.EstimateGas(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		have, err := client.EstimateGasAgain(ctx, r)
		if err != nil {
			t.Fatal(err)
		}
		if float64(have) < 0.985*float64(want) || float64(have) > 1.016*float64(want) {
			t.Errorf("estimate %d, of %d events: %d, the node says %d", i, events, have, want)
		}
	}
}

// TestAFailingCallIsToldAsItIs makes sure that what a hint brings about is never taken for the call's own failure.
func TestAFailingCallIsToldAsItIs(t *testing.T) {
	t.Parallel()
	ctx, zoo := t.Context(), contracts.Zoo()
	chain, client, to := estimated(t)
	data, err := zoo.Parsed.Pack("emitMany", big.NewInt(1))
	if err != nil {
		t.Fatal(err)
	}
	f := calledFunction{to, [4]byte(data)}
	client.hints.estimated(f, 21_001, false) // far too little
	if gas, err := client.EstimateGasAgain(ctx, CallRequest{From: &chain.Accounts[1].Address, To: to, Data: data}); err != nil || gas < 22_000 {
		t.Errorf("%d, %v", gas, err)
	}
	if client.hints.of(f) != 0 {
		t.Error("the hint is used again at once")
	}
	data, err = zoo.Parsed.Pack("failWith", "no")
	if err != nil {
		t.Fatal(err)
	}
	client.hints.estimated(calledFunction{to, [4]byte(data)}, 1_000_000, false)
	_, err = client.EstimateGasAgain(ctx, CallRequest{From: &chain.Accounts[1].Address, To: to, Data: data})
	var revert *RevertError
	if !errors.As(err, &revert) || len(revert.Data) == 0 {
		t.Errorf("%v, want a revert with its data", err)
	}
}

func TestHintsComeDown(t *testing.T) {
	t.Parallel()
	g := newGasHints()
	f := calledFunction{common.Address{1}, [4]byte{2}}
	if g.of(f) != 0 {
		t.Error("a hint from nowhere")
	}
	g.estimated(f, 100_000, false)
	for i := range smallerForLess {
		if g.of(f) != 100_000 {
			t.Errorf("%d after %d smaller ones", g.of(f), i)
		}
		g.estimated(f, 50_000-uint64(i), true)
	}
	if g.of(f) != 50_000 {
		t.Errorf("%d, want the largest of the smaller ones", g.of(f))
	}
	waited := 0
	for range 20 { // always too little: the hint is used less and less
		g.missed(f)
		for g.of(f) == 0 {
			waited++
		}
	}
	if waited < 15*maxHintRest || waited > 20*maxHintRest {
		t.Errorf("%d estimates without a hint for 20 misses", waited)
	}
	for i := range 2 * maxGasHints {
		g.estimated(calledFunction{common.BigToAddress(big.NewInt(int64(i))), [4]byte{}}, 1, false)
	}
	if g.byCalls.Len() > maxGasHints {
		t.Errorf("%d hints", g.byCalls.Len())
	}
}
