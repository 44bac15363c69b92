package chain

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rpc"
)

// chainNonces asks for the key's next nonce by the chain (mined), and by the chain and the node's pool together (pending).
func (k *keySubmitter) chainNonces(ctx context.Context) (mined, pending uint64, err error) {
	var m, p hexutil.Uint64
	batch := []rpc.BatchElem{
		{Method: "eth_getTransactionCount", Args: []any{k.key, "latest"}, Result: &m},
		{Method: "eth_getTransactionCount", Args: []any{k.key, "pending"}, Result: &p},
	}
	if err := k.client.BatchCall(ctx, batch); err != nil {
		return 0, 0, fmt.Errorf("ask for the chain's nonces: %w", err)
	}
	if err := batch[0].Error; err != nil {
		return 0, 0, fmt.Errorf("ask for the chain's nonce: %w", err)
	}
	if batch[1].Error != nil { // a node without a pool
		p = m
	}
	return uint64(m), max(uint64(m), uint64(p)), nil
}

// minedAt asks for the key's next nonce at the newest block, and at the newest block that has the configured confirmations; limit is that block's number, or
// the highest there is without confirmations. With many in flight, head tells the number of a block that holds all that was counted, or one after it.
func (k *keySubmitter) minedAt(ctx context.Context) (latest, confirmed, limit, head uint64, err error) {
	depth := k.client.Confirmations()
	var at hexutil.Uint64
	if depth == 0 && k.state.count() >= minBlockShare {
		var number hexutil.Uint64
		batch := []rpc.BatchElem{
			{Method: "eth_getTransactionCount", Args: []any{k.key, "latest"}, Result: &at}, {Method: "eth_blockNumber", Result: &number},
		}
		if err := k.client.BatchCall(ctx, batch); err != nil {
			return 0, 0, 0, 0, fmt.Errorf("ask for the chain's nonce: %w", err)
		}
		if err := batch[0].Error; err != nil {
			return 0, 0, 0, 0, fmt.Errorf("ask for the chain's nonce: %w", err)
		}
		return uint64(at), uint64(at), ^uint64(0), uint64(number), nil
	}
	if depth == 0 {
		if err := k.client.CallContext(ctx, &at, "eth_getTransactionCount", k.key, "latest"); err != nil {
			return 0, 0, 0, 0, fmt.Errorf("ask for the chain's nonce: %w", err)
		}
		return uint64(at), uint64(at), ^uint64(0), 0, nil
	}
	newest, err := k.client.Head(ctx)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	var below hexutil.Uint64
	batch := []rpc.BatchElem{{Method: "eth_getTransactionCount", Args: []any{k.key, "latest"}, Result: &at}}
	if newest.Number >= depth {
		limit = newest.Number - depth
		batch = append(batch, rpc.BatchElem{
			Method: "eth_getTransactionCount", Args: []any{k.key, hexutil.Uint64(limit)}, Result: &below,
		})
	}
	if err := k.client.BatchCall(ctx, batch); err != nil {
		return 0, 0, 0, 0, fmt.Errorf("ask for the chain's nonces: %w", err)
	}
	for _, elem := range batch {
		if elem.Error != nil {
			return 0, 0, 0, 0, fmt.Errorf("ask for the chain's nonces: %w", elem.Error)
		}
	}
	return uint64(at), min(uint64(below), uint64(at)), limit, limit, nil
}

func decodeTx(raw []byte) (*types.Transaction, error) {
	var tx types.Transaction
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("decode a stored transaction: %w", err)
	}
	return &tx, nil
}
