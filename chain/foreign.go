package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

const (
	maxForeignSearches = 8  // per look at the chain; each costs a few dozen calls
	unprovenFactor     = 20 // without a proof, a nonce counts as used up by a foreign transaction only after so many times ForeignAfter
)

// foreigners are those of the items whose nonce a foreign transaction has used up. That none of our transactions is found says little where several nodes answer
// under one address and one is behind: an operation that got another nonce on this ground could be mined twice. So the transaction that did use the nonce up is
// searched for; only where the node no longer has the state for that, time decides.
func (k *keySubmitter) foreigners(ctx context.Context, items []*inflight, now time.Time) ([]*inflight, error) {
	var gone []*inflight
	for i, t := range items {
		if i == maxForeignSearches {
			break
		}
		hash, found, err := k.usedBy(ctx, t.nonce)
		switch {
		case err != nil && !definite(err):
			return nil, err
		case err == nil && found && slices.Contains(k.state.hashesOf(t), hash):
			k.state.found(t) // ours after all: its receipt will come
		case err == nil && found:
			k.log.WarnContext(ctx, "a foreign transaction has used a nonce up", "operation", t.operation, "nonce", t.nonce, "transaction", hash)
			gone = append(gone, t)
		case k.state.missingFor(t, now) >= unprovenFactor*k.cfg.ForeignAfter:
			k.log.WarnContext(ctx, "a nonce is used up, and the node does not tell by what", "operation", t.operation, "nonce", t.nonce, "error", err)
			gone = append(gone, t)
		}
	}
	return gone, nil
}

// usedBy finds the key's transaction with the nonce, by way of the blocks' states: the nonce was used up in the first block after which the account's next nonce is
// higher.
func (k *keySubmitter) usedBy(ctx context.Context, nonce uint64) (common.Hash, bool, error) {
	head, err := k.client.Head(ctx)
	if err != nil {
		return common.Hash{}, false, err
	}
	used := func(block uint64) (bool, error) {
		var n hexutil.Uint64
		if err := k.client.CallContext(ctx, &n, "eth_getTransactionCount", k.key, hexutil.Uint64(block)); err != nil {
			return false, fmt.Errorf("ask for a past nonce: %w", err)
		}
		return uint64(n) > nonce, nil
	}
	high := head.Number
	if is, err := used(high); err != nil || !is {
		return common.Hash{}, false, err
	}
	// Backwards in growing steps, because recent states are the ones that nodes have; then halving.
	low := high
	for step := uint64(1); ; step *= 2 {
		low = high - min(step, high)
		is, err := used(low)
		if err != nil {
			return common.Hash{}, false, err
		}
		if !is {
			break
		}
		if high = low; high == 0 {
			return common.Hash{}, false, nil
		}
	}
	for low+1 < high {
		middle := low + (high-low)/2
		is, err := used(middle)
		if err != nil {
			return common.Hash{}, false, err
		}
		if is {
			high = middle
		} else {
			low = middle
		}
	}
	var block *struct {
		Transactions []struct {
			Hash  common.Hash    `json:"hash"`
			From  common.Address `json:"from"`
			Nonce hexutil.Uint64 `json:"nonce"`
		} `json:"transactions"`
	}
	if err := k.client.CallContext(ctx, &block, "eth_getBlockByNumber", hexutil.Uint64(high), true); err != nil || block == nil {
		return common.Hash{}, false, err
	}
	for _, tx := range block.Transactions {
		if tx.From == k.key && uint64(tx.Nonce) == nonce {
			return tx.Hash, true, nil
		}
	}
	return common.Hash{}, false, nil
}
