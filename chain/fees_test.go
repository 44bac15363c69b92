package chain

import (
	"context"
	"math/big"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"pgregory.net/rapid"

	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

func TestBumpIsEnoughAndWithinTheLimit(t *testing.T) {
	wei := rapid.Custom(func(t *rapid.T) *big.Int { return new(big.Int).SetUint64(rapid.Uint64Range(0, 1<<50).Draw(t, "wei")) })
	rapid.Check(t, func(t *rapid.T) {
		limit := wei.Draw(t, "limit")
		old := fees{price: wei.Draw(t, "price")}
		market := fees{price: wei.Draw(t, "market")}
		if rapid.Bool().Draw(t, "1559") {
			old = fees{max: wei.Draw(t, "max"), tip: wei.Draw(t, "tip")}
			market = fees{max: wei.Draw(t, "market max"), tip: wei.Draw(t, "market tip")}
		}
		next, ok := market.bumped(old, limit)
		if !ok {
			return
		}
		enough := func(next, old *big.Int) {
			if old == nil {
				return
			}
			if next.Cmp(limit) > 0 {
				t.Fatalf("%s is above the limit %s", next, limit)
			}
			if old.Sign() > 0 && new(big.Int).Mul(next, big.NewInt(10)).Cmp(new(big.Int).Mul(old, big.NewInt(11))) < 0 {
				t.Fatalf("%s is no tenth more than %s", next, old)
			}
		}
		enough(next.price, old.price)
		enough(next.max, old.max)
		enough(next.tip, old.tip)
	})
}

func TestOnlyAnOfferThatIsOutbidIsRaised(t *testing.T) {
	n := func(v int64) *big.Int { return big.NewInt(v) }
	market := fees{max: n(210), tip: n(10)} // a base fee of 100
	for name, c := range map[string]struct {
		old  fees
		want bool
	}{
		"same":             {market, false},
		"no reserve":       {fees{max: n(110), tip: n(10)}, false},
		"below base + tip": {fees{max: n(109), tip: n(10)}, true},
		"small tip":        {fees{max: n(300), tip: n(9)}, true},
		"legacy":           {fees{price: n(110)}, false},
		"low legacy":       {fees{price: n(109)}, true},
	} {
		if got := market.outbid(c.old); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if (fees{price: n(5)}).outbid(fees{price: n(5)}) || !(fees{price: n(5)}).outbid(fees{price: n(4)}) {
		t.Error("a chain without base fees is judged wrongly")
	}
}

func TestFeesFollowTheCaller(t *testing.T) {
	market := fees{max: big.NewInt(100), tip: big.NewInt(10)}
	n := func(v int64) *big.Int { return big.NewInt(v) }
	for name, c := range map[string]struct {
		market  fees
		options store.TxOptions
		want    fees
	}{
		"market":           {market, store.TxOptions{}, market},
		"legacy wish":      {market, store.TxOptions{GasPrice: n(7)}, fees{price: n(7)}},
		"low maximum":      {market, store.TxOptions{MaxFeePerGas: n(5)}, fees{max: n(5), tip: n(5)}},
		"high tip":         {market, store.TxOptions{MaxPriorityFeePerGas: n(500)}, fees{max: n(500), tip: n(500)}},
		"both":             {market, store.TxOptions{MaxFeePerGas: n(50), MaxPriorityFeePerGas: n(3)}, fees{max: n(50), tip: n(3)}},
		"no base fee":      {fees{price: n(9)}, store.TxOptions{MaxFeePerGas: n(50)}, fees{price: n(50)}},
		"no base fee, tip": {fees{price: n(9)}, store.TxOptions{MaxPriorityFeePerGas: n(50)}, fees{price: n(9)}},
	} {
		got := c.market.chosen(c.options)
		same := func(a, b *big.Int) bool { return a == b || a != nil && b != nil && a.Cmp(b) == 0 }
		if !same(got.price, c.want.price) || !same(got.max, c.want.max) || !same(got.tip, c.want.tip) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

func TestFeesOfChains(t *testing.T) {
	chain := chaintest.New(t)
	m := &feeMarket{client: dialTest(t, chain.WSURL())}
	f, err := m.suggest(context.Background())
	if err != nil || f.legacy() || f.max.Cmp(f.tip) < 0 || f.tip.Sign() <= 0 {
		t.Fatalf("dev chain: %+v, %v", f, err)
	}
	// A chain without base fees, and without a price at all.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(method string) any {
			switch method {
			case "eth_chainId":
				return "0x1"
			case "eth_gasPrice":
				return "0x0"
			case "eth_feeHistory":
				return map[string]any{"oldestBlock": "0x0", "gasUsedRatio": []float64{0}, "baseFeePerGas": []string{"0x0", "0x0"}}
			}
			return map[string]any{"hash": common.Hash{1}, "number": "0x0"}
		})
	}))
	defer server.Close()
	m = &feeMarket{client: dialTest(t, server.URL)}
	if f, err = m.suggest(context.Background()); err != nil || !f.legacy() || f.price.Sign() != 0 {
		t.Fatalf("a chain without fees: %+v, %v", f, err)
	}
}
