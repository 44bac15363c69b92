package chain

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	// minBlockShare is how many transactions of ours a block must hold on average for its receipts to be read as a whole: a node finds a single receipt by way
	// of its block, and recovers the sender each time.
	minBlockShare = 16
	maxBlockReads = 16 // blocks in one message
)

// blockFollower is what the confirmer remembers of the blocks it has seen.
type blockFollower struct {
	seen       uint64 // the newest one
	notOffered bool   // the node does not offer receipts by blocks
}

// blockReceipts reads the receipts of the blocks that came since the last look, up to head, when items of our transactions are in them and that is enough to pay
// off. What it does not find is asked for one by one.
func (k *keySubmitter) blockReceipts(ctx context.Context, head uint64, items int) map[common.Hash]*receipt {
	if head == 0 {
		return nil
	}
	first := k.blocks.seen + 1
	k.blocks.seen = head
	if head < first {
		return nil
	}
	blocks := head - first + 1
	if k.blocks.notOffered || blocks > maxBlockReads || uint64(items) < minBlockShare*blocks { //nolint:gosec // not negative
		return nil
	}
	elems := make([]rpc.BatchElem, blocks)
	for i := range elems {
		elems[i] = rpc.BatchElem{Method: "eth_getBlockReceipts", Args: []any{hexutil.Uint64(first + uint64(i))}, Result: new([]*receipt)} //nolint:gosec // not negative
	}
	if err := k.client.BatchCall(ctx, elems); err != nil {
		return nil
	}
	known := make(map[common.Hash]*receipt, items)
	for i := range elems {
		if elems[i].Error != nil {
			k.blocks.notOffered = k.blocks.notOffered || notOffered(elems[i].Error)
			continue
		}
		got, _ := elems[i].Result.(*[]*receipt)
		for _, r := range *got {
			if r != nil && r.BlockHash != (common.Hash{}) {
				known[r.TransactionHash] = r
			}
		}
	}
	return known
}
