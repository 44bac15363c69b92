package chain

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

const (
	// minOwnShare: the receipts of a whole block are read when at least one in so many of its transactions is ours. A node finds a single receipt by way of its
	// block, and recovers the sender each time.
	minOwnShare   = 4
	maxBlockReads = 16 // blocks in one message
	maxGuesses    = 4  // receipts that are asked for before it is known whether their transactions are mined
)

// blockFollower is what the confirmer remembers of the blocks it has seen.
type blockFollower struct {
	seen       uint64 // the newest one
	own        bool   // the last one that held transactions of ours held few others
	notOffered bool   // the node does not offer receipts by blocks
}

// byBlocks tells whether receipts are read by blocks.
func (b *blockFollower) byBlocks() bool { return b.own && !b.notOffered }

// learn notes how many transactions of ours a block holds, and how many in all.
func (b *blockFollower) learn(ours, all int) {
	if ours > 0 || all > 2*minOwnShare {
		b.own = ours*minOwnShare >= all
	}
}

// ofBlock asks for the receipts of all transactions of a block: a number, or "latest".
func ofBlock(block any) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_getBlockReceipts", Args: []any{block}, Result: new([]*receipt)}
}

// ofTransaction asks for the receipt of one transaction.
func ofTransaction(hash common.Hash) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_getTransactionReceipt", Args: []any{hash}, Result: new(*receipt)}
}

// guesses are questions that go out with the one for the key's nonce, since their answers are most likely to be the next ones wanted.
func (k *keySubmitter) guesses() []rpc.BatchElem {
	if k.blocks.byBlocks() {
		return []rpc.BatchElem{ofBlock("latest")}
	}
	var elems []rpc.BatchElem
	for _, hash := range k.state.lowest(maxGuesses) {
		elems = append(elems, ofTransaction(hash))
	}
	return elems
}

// gather adds the receipts of answered questions to known. What went wrong is left out: it will be asked for again on its own.
func (k *keySubmitter) gather(elems []rpc.BatchElem, known map[common.Hash]*receipt) {
	for i := range elems {
		if elems[i].Error != nil {
			if elems[i].Method == "eth_getBlockReceipts" {
				k.blocks.notOffered = k.blocks.notOffered || notOffered(elems[i].Error)
			}
			continue
		}
		var got []*receipt
		switch result := elems[i].Result.(type) {
		case *[]*receipt:
			got = *result
		case **receipt:
			got = []*receipt{*result}
		}
		for _, r := range got {
			if r != nil && r.BlockHash != (common.Hash{}) {
				known[r.TransactionHash] = r
			}
		}
	}
}

// blockReceipts adds to known the receipts of the blocks that came since the last look, up to head, where they hold mostly our transactions and some of those are
// not known yet.
func (k *keySubmitter) blockReceipts(ctx context.Context, head uint64, items []*inflight, known map[common.Hash]*receipt) {
	first, last := k.blocks.seen+1, head
	k.blocks.seen = max(head, k.blocks.seen)
	have := map[uint64]bool{}
	for _, r := range known {
		have[uint64(r.BlockNumber)] = true
	}
	if !k.blocks.byBlocks() || last < first || last-first >= maxBlockReads || len(items) < 2 {
		return
	}
	var elems []rpc.BatchElem
	for number := first; number <= last; number++ {
		if !have[number] {
			elems = append(elems, ofBlock(hexutil.Uint64(number)))
		}
	}
	if len(elems) == 0 || k.client.BatchCall(ctx, elems) != nil {
		return
	}
	k.gather(elems, known)
}
