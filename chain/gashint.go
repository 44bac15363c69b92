package chain

import (
	"context"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/lru"

	pactwire "github.com/pactwire/pactwire"
)

// Nodes estimate by bisection: geth runs a small call five times until it knows its gas to 1.5 %. Told that no more may be used than a call of the same function took
// before, it runs the call once, finds that it fits closely, and is done. Where that was too little the estimate is made again without a bound, so the answer
// is one that the node could have given anyway.

// gasHints remembers how much gas calls took. It is safe for concurrent use.
type gasHints struct {
	mu      sync.Mutex
	byCalls lru.BasicLRU[calledFunction, *gasHint]
}

type calledFunction struct {
	contract common.Address
	selector [4]byte
}

type gasHint struct {
	gas     uint64 // a recent estimate, of the larger ones
	lower   uint64 // the largest of the smaller ones since
	smaller int    // how many those are
	misses  int    // how often in a row the hint was too little
	rest    int    // estimates for which the hint is not used, since it was too little
}

const (
	maxGasHints    = 4096
	smallerForLess = 8  // smaller estimates in a row before the hint comes down to them
	maxHintRest    = 64 // estimates
)

func newGasHints() *gasHints {
	return &gasHints{byCalls: lru.NewBasicLRU[calledFunction, *gasHint](maxGasHints)}
}

// of is the hint for a function; 0 when there is none.
func (g *gasHints) of(f calledFunction) uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, ok := g.byCalls.Get(f)
	switch {
	case !ok:
		return 0
	case h.rest > 0:
		h.rest--
		return 0
	}
	return h.gas
}

// missed notes that the hint was too little, or that the call fails anyway.
func (g *gasHints) missed(f calledFunction) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if h, ok := g.byCalls.Get(f); ok {
		h.misses++
		h.rest = min(1<<min(h.misses, 10), maxHintRest)
	}
}

// estimated notes an estimate, and whether it was made with a hint.
func (g *gasHints) estimated(f calledFunction, gas uint64, hinted bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	h, ok := g.byCalls.Get(f)
	if !ok {
		g.byCalls.Add(f, &gasHint{gas: gas})
		return
	}
	if hinted {
		h.misses = 0
	}
	if gas >= h.gas {
		h.gas, h.lower, h.smaller = gas, 0, 0
		return
	}
	h.lower = max(h.lower, gas)
	if h.smaller++; h.smaller >= smallerForLess {
		h.gas, h.lower, h.smaller = h.lower, 0, 0
	}
}

// EstimateGasAgain is EstimateGas for calls that are made often: it asks first whether as much is enough as calls of the same function took before. What it tells
// may be a little more than what EstimateGas does, within the accuracy of the node.
func (c *Client) EstimateGasAgain(ctx context.Context, r CallRequest) (uint64, error) {
	if r.Gas != 0 || r.Create || r.Block != "" || len(r.Data) < 4 {
		return c.EstimateGas(ctx, r)
	}
	f := calledFunction{r.To, [4]byte(r.Data)}
	if hint := c.hints.of(f); hint > 0 {
		bounded := r
		bounded.Gas = hint
		gas, err := c.EstimateGas(ctx, bounded)
		if err == nil {
			c.hints.estimated(f, gas, true)
			return gas, nil
		}
		if ctx.Err() != nil || pactwire.KindOf(err) == pactwire.KindUnavailable {
			return 0, err
		}
		c.hints.missed(f)
	}
	gas, err := c.EstimateGas(ctx, r)
	if err != nil {
		return 0, err
	}
	c.hints.estimated(f, gas, false)
	return gas, nil
}
