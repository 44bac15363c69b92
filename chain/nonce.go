package chain

import (
	"context"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
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

// minedView is how far the chain has come with a key's transactions.
type minedView struct {
	latest    uint64                   // the key's next nonce at the newest block
	confirmed uint64                   // the same at the newest block that has the configured confirmations
	limit     uint64                   // that block's number, or the highest there is without confirmations
	head      uint64                   // a block that holds all that was counted as confirmed, or one after it
	known     map[common.Hash]*receipt // receipts that came along
}

// minedAt asks how far the chain has come.
func (k *keySubmitter) minedAt(ctx context.Context) (minedView, error) {
	view := minedView{known: map[common.Hash]*receipt{}}
	var number, latest, below hexutil.Uint64
	depth := k.client.Confirmations()
	// The nonce comes last: it counts all that the answers before it have shown.
	batch := []rpc.BatchElem{{Method: "eth_blockNumber", Result: &number}}
	if depth == 0 {
		batch = append(k.guesses(), batch...)
	}
	batch = append(batch, rpc.BatchElem{Method: "eth_getTransactionCount", Args: []any{k.key, "latest"}, Result: &latest})
	if err := k.client.BatchCall(ctx, batch); err != nil {
		return view, fmt.Errorf("ask for the chain's nonce: %w", err)
	}
	for _, elem := range batch[len(batch)-2:] {
		if elem.Error != nil {
			return view, fmt.Errorf("ask for the chain's nonce: %w", elem.Error)
		}
	}
	view.latest, view.head = uint64(latest), uint64(number)
	if depth == 0 {
		k.gather(batch[:len(batch)-2], view.known)
		view.confirmed, view.limit = view.latest, ^uint64(0)
		return view, nil
	}
	if view.head < depth {
		view.head = 0
		return view, nil
	}
	view.head -= depth
	view.limit = view.head
	if err := k.client.CallContext(ctx, &below, "eth_getTransactionCount", k.key, hexutil.Uint64(view.head)); err != nil {
		return view, fmt.Errorf("ask for the nonce with confirmations: %w", err)
	}
	view.confirmed = min(uint64(below), view.latest)
	return view, nil
}

func decodeTx(raw []byte) (*types.Transaction, error) {
	var tx types.Transaction
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, fmt.Errorf("decode a stored transaction: %w", err)
	}
	return &tx, nil
}
