package e2e

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/gen"
)

// BenchmarkMinedToFrame measures from the making of a block to the frame of its event at the application, through the whole service.
func BenchmarkMinedToFrame(b *testing.B) {
	s := start(b)
	address := s.chain.Deploy(b, contracts.SimpleStorage())
	text := address.Hex()
	iface := s.broadcast(b, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(b, "simple", *iface.ID, &text)
	listener, err := s.client.CreateContractAPIListenerWithResponse(b.Context(), ns, "simple", "Changed", gen.EventListenerInput{})
	must(b, err)
	if listener.JSON200 == nil {
		b.Fatalf("listen: %s", listener.Body)
	}
	created, err := s.client.CreateSubscriptionWithResponse(b.Context(), ns, gen.SubscriptionInput{
		Name: "app", Filter: &gen.SubscriptionFilter{Events: ptr("^blockchain_event_received$")},
		Options: &gen.SubscriptionOptionsInput{FirstEvent: json.RawMessage(`"newest"`), ReadAhead: ptr(50)},
	})
	must(b, err)
	if created.JSON201 == nil {
		b.Fatalf("subscribe: %s", created.Body)
	}
	socket := s.connect(b, "namespace=default&name=app")
	s.chain.SetAutomine(false)
	data, err := contracts.SimpleStorage().Parsed.Pack("set", big.NewInt(1))
	must(b, err)
	nonce, err := s.chain.Client().PendingNonceAt(b.Context(), s.chain.Accounts[2].Address)
	must(b, err)
	round := func() time.Duration {
		s.chain.SendRaw(b, 2, &types.DynamicFeeTx{
			ChainID: big.NewInt(devnet.ChainID), Nonce: nonce, To: &address, Data: data, Gas: 200_000, GasTipCap: big.NewInt(1),
			GasFeeCap: big.NewInt(1_000_000_000),
		})
		nonce++
		for next := uint64(0); next < nonce; { // the pool takes it up some time after it was sent
			next, err = s.chain.Client().PendingNonceAt(b.Context(), s.chain.Accounts[2].Address)
			must(b, err)
		}
		s.chain.Mine(1)
		mined := time.Now()
		e := socket.event(b)
		took := time.Since(mined)
		socket.ack(b, e.ID)
		return took
	}
	for range 20 { // until everything is live
		round()
	}
	var taken []time.Duration
	for b.Loop() {
		taken = append(taken, round())
	}
	reportLatency(b, taken)
}
