package devnet

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/consensus/misc/eip1559"
	"github.com/ethereum/go-ethereum/consensus/misc/eip4844"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/rawdb"
	"github.com/ethereum/go-ethereum/core/state"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/txpool/txorder"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/core/vm"
	"github.com/ethereum/go-ethereum/ethdb"
	"github.com/ethereum/go-ethereum/params"
	"github.com/holiman/uint256"
)

const (
	maxDrafting  = 2 * time.Second // after which a block takes up nothing more
	maxBlockSize = params.MaxBlockSize - 1_000_000
)

// draft is a block in the making. The node's miner and its import of blocks would run each transaction once each, the import to check what the miner, which is part of
// the same process, has just made. Here a transaction runs once, and what comes out is what is written.
type draft struct {
	chain  *core.BlockChain
	header *types.Header
	state  *state.StateDB
	evm    *vm.EVM
	gas    *core.GasPool

	body     types.Body
	receipts []*types.Receipt
	size     uint64
}

// newDraft begins a block after parent, with what the protocol does before the first transaction.
func newDraft(chain *core.BlockChain, parent *types.Header, at time.Time) (*draft, error) {
	config, number := chain.Config(), new(big.Int).Add(parent.Number, common.Big1)
	timestamp := uint64(max(at.Unix(), int64(parent.Time)+1)) //nolint:gosec // times of day
	excess := eip4844.CalcExcessBlobGas(config, parent, timestamp)
	header := &types.Header{
		ParentHash: parent.Hash(), Number: number, GasLimit: core.CalcGasLimit(parent.GasLimit, blockGasLimit), Time: timestamp, Difficulty: new(big.Int),
		BaseFee: eip1559.CalcBaseFee(config, parent), ExcessBlobGas: &excess, BlobGasUsed: new(uint64), ParentBeaconRoot: new(common.Hash),
	}
	_, _ = rand.Read(header.MixDigest[:]) // PREVRANDAO; it never fails
	statedb, err := chain.StateAt(parent.Root, number, timestamp)
	if err != nil {
		return nil, fmt.Errorf("open the state of block %s: %w", parent.Number, err)
	}
	d := &draft{
		chain: chain, header: header, state: statedb, gas: core.NewGasPool(header.GasLimit), body: types.Body{Withdrawals: types.Withdrawals{}},
		size: uint64(header.Size()),
	}
	d.evm = vm.NewEVM(core.NewEVMBlockContext(header, chain, &header.Coinbase), statedb, config, vm.Config{})
	d.evm.SetJumpDestCache(chain.JumpDestCache())
	d.evm.SetPrecompileCache(chain.PrecompileCache())
	core.PreExecution(context.Background(), header.ParentBeaconRoot, parent, config, d.evm, number, timestamp)
	return d, nil
}

// fill runs what waits in the pool, the best paid first and each account's in the order of their nonces, as far as it fits.
func (d *draft) fill(pool *txpool.TxPool) {
	began, config := time.Now(), d.chain.Config()
	filter := txpool.PendingFilter{
		MinTip: uint256.NewInt(leastTip), BaseFee: uint256.MustFromBig(d.header.BaseFee),
		BlobFee: uint256.MustFromBig(eip4844.CalcBlobFee(config, d.header)), BlobVersion: types.BlobSidecarVersion1,
	}
	if config.IsOsaka(d.header.Number, d.header.Time) {
		filter.GasLimitCap = params.MaxTxGas // EIP-7825
	}
	plain, _ := pool.Pending(filter)
	filter.BlobTxs = true
	blobs, _ := pool.Pending(filter)
	signer, maxBlobGas := types.MakeSigner(config, d.header.Number, d.header.Time), eip4844.MaxBlobGasPerBlock(config, d.header.Time)
	queues := [2]*txorder.TransactionsByPriceAndNonce{
		txorder.NewTransactionsByPriceAndNonce(signer, plain, d.header.BaseFee), txorder.NewTransactionsByPriceAndNonce(signer, blobs, d.header.BaseFee),
	}
	for time.Since(began) < maxDrafting && d.left() >= params.TxGas {
		queue := queues[0]
		next, tip := queue.Peek()
		if blob, blobTip := queues[1].Peek(); blob != nil && (next == nil || tip.Lt(blobTip)) {
			queue, next = queues[1], blob
		}
		if next == nil {
			return
		}
		if next.Gas > d.left() || *d.header.BlobGasUsed+next.BlobGas > maxBlobGas {
			queue.Pop()
			continue
		}
		tx := next.Resolve()
		if tx == nil { // the pool has dropped it meanwhile
			queue.Pop()
			continue
		}
		tx = tx.WithoutBlobTxSidecar() // blobs travel beside the block
		if d.size+tx.Size() > maxBlockSize {
			return
		}
		if err := d.run(tx); err == nil || errors.Is(err, core.ErrNonceTooLow) { // the pool learns late of what the last block has mined
			queue.Shift()
		} else {
			queue.Pop()
		}
	}
}

func (d *draft) left() uint64 { return d.gas.Available(false) }

// run applies a transaction to the draft. One that cannot be in the block leaves no trace.
func (d *draft) run(tx *types.Transaction) error {
	d.state.SetTxContext(tx.Hash(), len(d.body.Transactions), uint32(len(d.body.Transactions)+1)) //nolint:gosec // a block has few
	state, gas := d.state.Snapshot(), d.gas.Snapshot()
	receipt, _, err := core.ApplyTransaction(context.Background(), d.evm, d.gas, d.state, d.header, tx)
	if err != nil {
		d.state.RevertToSnapshot(state)
		d.gas.Set(gas)
		return err //nolint:wrapcheck // it is judged, and goes no further
	}
	d.body.Transactions, d.receipts = append(d.body.Transactions, tx), append(d.receipts, receipt)
	d.size += tx.Size()
	*d.header.BlobGasUsed += receipt.BlobGasUsed
	d.header.GasUsed = d.gas.Used()
	return nil
}

// finish does what the protocol does after the last transaction, and writes the state, the block and its receipts. It is not the chain's head yet.
func (d *draft) finish(db ethdb.Batcher) (*types.Block, error) {
	var logs []*types.Log
	for _, r := range d.receipts {
		logs = append(logs, r.Logs...)
	}
	config, number := d.chain.Config(), d.header.Number
	requests, _, err := core.PostExecution(context.Background(), config, number, d.header.Time, logs, d.body.Withdrawals, d.evm, uint32(len(d.receipts)+1)) //nolint:gosec // a block has few
	if err != nil {
		return nil, fmt.Errorf("end block %s: %w", number, err)
	}
	hash := types.CalcRequestsHash(requests)
	d.header.RequestsHash = &hash
	d.chain.Engine().Finalize(d.chain, d.header, d.state, &d.body)
	block := core.AssembleBlock(d.chain, d.header, d.state, &d.body, d.receipts, nil)
	root, err := d.state.Commit(config.Rules(number, true, d.header.Time), number.Uint64())
	if err == nil {
		err = d.chain.TrieDB().Commit(root, false)
	}
	if err != nil {
		return nil, fmt.Errorf("write the state of block %s: %w", number, err)
	}
	batch := db.NewBatch()
	defer batch.Close()
	rawdb.WriteBlock(batch, block)
	rawdb.WriteReceipts(batch, block.Hash(), block.NumberU64(), d.receipts)
	if err := batch.Write(); err != nil {
		return nil, fmt.Errorf("write block %s: %w", number, err)
	}
	return block, nil
}
