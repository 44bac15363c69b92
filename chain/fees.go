package chain

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/pactwire/pactwire/store"
)

// feesFor is how long a look at the fee market holds. The offer is twice the base fee, which takes six full blocks to be reached.
const feesFor = 250 * time.Millisecond

// fees is an offer. Price alone is set on a chain without base fees, the other two on one with.
type fees struct {
	price    *big.Int // legacy gas price
	max, tip *big.Int // EIP-1559
}

func (f fees) legacy() bool { return f.max == nil }

// feesOf reads the offer of a signed transaction.
func feesOf(tx *types.Transaction) fees {
	if tx.Type() == types.LegacyTxType || tx.Type() == types.AccessListTxType {
		return fees{price: tx.GasPrice()}
	}
	return fees{max: tx.GasFeeCap(), tip: tx.GasTipCap()}
}

// chosen applies the caller's wishes to what the market suggests.
func (f fees) chosen(o store.TxOptions) fees {
	switch {
	case o.GasPrice != nil:
		return fees{price: o.GasPrice}
	case f.legacy() && o.MaxFeePerGas != nil:
		return fees{price: o.MaxFeePerGas}
	case f.legacy():
		return f
	}
	out := fees{max: f.max, tip: f.tip}
	if o.MaxPriorityFeePerGas != nil {
		out.tip = o.MaxPriorityFeePerGas
		if o.MaxFeePerGas == nil && out.max.Cmp(out.tip) < 0 {
			out.max = out.tip
		}
	}
	if o.MaxFeePerGas != nil {
		out.max = o.MaxFeePerGas
		if o.MaxPriorityFeePerGas == nil && out.tip.Cmp(out.max) > 0 {
			out.tip = out.max
		}
	}
	return out
}

// capped keeps the offer within limit; nil is no limit.
func (f fees) capped(limit *big.Int) fees {
	if limit == nil {
		return f
	}
	lower := func(v *big.Int) *big.Int {
		if v == nil || v.Cmp(limit) <= 0 {
			return v
		}
		return limit
	}
	return fees{price: lower(f.price), max: lower(f.max), tip: lower(f.tip)}
}

// outbid tells whether an offer has fallen behind what the market suggests, so that it may stay unmined because of it. That the suggested maximum is higher
// says nothing yet: it holds a reserve of one base fee.
func (f fees) outbid(old fees) bool {
	if f.legacy() {
		return old.legacy() && old.price.Cmp(f.price) < 0
	}
	base := new(big.Int).Sub(f.max, f.tip)
	needed := base.Add(base.Rsh(base, 1), f.tip)
	if old.legacy() {
		return old.price.Cmp(needed) < 0
	}
	return old.max.Cmp(needed) < 0 || old.tip.Cmp(f.tip) < 0
}

// bumped is an offer that nodes take in the place of old: at least an eighth more (they ask for a tenth), and at least what the market suggests. It is
// false when the limit leaves no room for that.
func (f fees) bumped(old fees, limit *big.Int) (fees, bool) {
	higher := func(a, b *big.Int) *big.Int {
		if b != nil && b.Cmp(a) > 0 {
			return b
		}
		return a
	}
	var next fees
	if old.legacy() {
		suggested := f.price
		if suggested == nil {
			suggested = f.max
		}
		next = fees{price: higher(leastBump(old.price), suggested)}
	} else {
		next = fees{max: higher(leastBump(old.max), f.max), tip: higher(leastBump(old.tip), f.tip)}
	}
	limited := next.capped(limit)
	tenth := func(v, old *big.Int) bool { // v ≥ 1.1 × old
		return v == nil || new(big.Int).Mul(v, big.NewInt(10)).Cmp(new(big.Int).Mul(old, big.NewInt(11))) >= 0
	}
	if old.legacy() {
		return limited, tenth(limited.price, old.price)
	}
	if !tenth(limited.max, old.max) || !tenth(limited.tip, old.tip) {
		return limited, false
	}
	return limited, true
}

// transaction makes the transaction of a call with this offer.
func (f fees) transaction(chainID *big.Int, nonce uint64, to *common.Address, value *big.Int, gas uint64, data []byte) *types.Transaction {
	if f.legacy() {
		return types.NewTx(&types.LegacyTx{Nonce: nonce, GasPrice: f.price, Gas: gas, To: to, Value: value, Data: data})
	}
	return types.NewTx(&types.DynamicFeeTx{
		ChainID: chainID, Nonce: nonce, GasTipCap: f.tip, GasFeeCap: f.max, Gas: gas, To: to, Value: value, Data: data,
	})
}

// feeMarket asks the chain what to offer, and remembers the answer for a moment.
type feeMarket struct {
	client *Client
	limit  *big.Int // the most that is offered; nil for no limit

	mu    sync.Mutex
	last  fees
	asked time.Time
}

func (m *feeMarket) suggest(ctx context.Context) (fees, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.asked.IsZero() && time.Since(m.asked) < feesFor {
		return m.last, nil
	}
	asked := time.Now()
	f, err := m.ask(ctx)
	if err != nil {
		return fees{}, fmt.Errorf("ask for the fees: %w", err)
	}
	m.last, m.asked = f.capped(m.limit), asked
	return m.last, nil
}

// ask reads the fee market: the base fee of the next block and the median of the tips that the last blocks took.
func (m *feeMarket) ask(ctx context.Context) (fees, error) {
	var history *struct {
		BaseFee []*hexutil.Big   `json:"baseFeePerGas"`
		Reward  [][]*hexutil.Big `json:"reward"`
	}
	err := m.client.CallContext(ctx, &history, "eth_feeHistory", hexutil.Uint64(10), "latest", []float64{50})
	if err != nil && !definite(err) {
		return fees{}, err
	}
	var base *big.Int
	if err == nil && history != nil && len(history.BaseFee) > 0 && history.BaseFee[len(history.BaseFee)-1] != nil {
		base = history.BaseFee[len(history.BaseFee)-1].ToInt()
	}
	if base == nil || base.Sign() == 0 {
		// Without EIP-1559 some nodes refuse the history, and others answer with zeros: the header decides.
		head, err := m.client.Head(ctx)
		if err != nil {
			return fees{}, err
		}
		if head.BaseFee == nil {
			var price hexutil.Big
			if err := m.client.CallContext(ctx, &price, "eth_gasPrice"); err != nil {
				return fees{}, err
			}
			return fees{price: price.ToInt()}, nil
		}
		if base == nil {
			base = head.BaseFee
		}
	}
	var tips []*big.Int
	if history != nil {
		for _, block := range history.Reward {
			if len(block) > 0 && block[0] != nil && block[0].ToInt().Sign() > 0 {
				tips = append(tips, block[0].ToInt())
			}
		}
	}
	tip, err := m.tip(ctx, tips)
	if err != nil {
		return fees{}, err
	}
	limit := new(big.Int).Lsh(base, 1)
	return fees{max: limit.Add(limit, tip), tip: tip}, nil
}

// tip is the median of the tips that were taken lately, or what the node suggests when there were none.
func (m *feeMarket) tip(ctx context.Context, taken []*big.Int) (*big.Int, error) {
	if len(taken) > 0 {
		slices.SortFunc(taken, (*big.Int).Cmp)
		return taken[len(taken)/2], nil
	}
	var tip hexutil.Big
	err := m.client.CallContext(ctx, &tip, "eth_maxPriorityFeePerGas")
	switch {
	case err == nil:
		return tip.ToInt(), nil
	case definite(err):
		return big.NewInt(1_000_000_000), nil
	}
	return nil, err
}
