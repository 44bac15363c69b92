package devnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
	"github.com/ethereum/go-ethereum/core/txpool"
	"github.com/ethereum/go-ethereum/core/types"
)

// startSealing makes a block whenever transactions wait. What gathers while one block is made goes into the next: under
// load blocks fill by themselves, and a single transaction never waits for a clock.
func (c *Chain) startSealing(ctx context.Context) {
	arrivals := make(chan core.NewTxsEvent, 64)
	// The pool blocks while a subscriber does not take its events, so they are taken at once and only one wake-up is kept.
	subscription := c.eth.TxPool().SubscribeTransactions(arrivals, true)
	c.loops.Go(func() {
		defer subscription.Unsubscribe()
		for {
			select {
			case <-ctx.Done():
				return
			case <-subscription.Err():
				return
			case <-arrivals:
				c.wakeSealer()
			}
		}
	})
	c.loops.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-c.wake:
				for c.sealWaiting() && rest(ctx, c.busy) {
				}
			}
		}
	})
	c.wakeSealer()
}

// After a block of several transactions the sealer rests for restShare times as long as the block took: those who read the block and send the next transactions share
// the processors with it. Under load blocks are fewer and fuller by that. Somebody who sends one transaction after the other waits for nothing.
const (
	restShare = 2
	maxRest   = 20 * time.Millisecond
)

// rest waits after a block that took so long; false when ctx has ended.
func rest(ctx context.Context, took time.Duration) bool {
	timer := time.NewTimer(min(restShare*took, maxRest))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

func (c *Chain) wakeSealer() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// sealWaiting makes one block of what waits and reports whether it is worth making another one at once.
func (c *Chain) sealWaiting() bool {
	c.sealing.Lock()
	defer c.sealing.Unlock()
	if !c.auto.Load() || !c.anyWaiting() {
		return false
	}
	before, began := c.eth.BlockChain().CurrentBlock(), time.Now()
	block := c.commit(began)
	if block == nil {
		return false
	}
	c.busy = 0
	if len(block.Transactions()) > 1 {
		c.busy = time.Since(began)
	}
	if len(block.Transactions()) > 0 {
		return true
	}
	// Nothing of what waits could go in, because it pays less than the base fee. That falls with each empty block, to a limit.
	return block.BaseFee().Cmp(before.BaseFee) < 0
}

// anyWaiting tells whether the pool has a transaction that is not mined yet. The pool forgets what is mined in the background, some time after the block;
// waiting for that would hold up the next block.
func (c *Chain) anyWaiting() bool {
	waiting, _ := c.eth.TxPool().Pending(txpool.PendingFilter{})
	if len(waiting) == 0 {
		return false
	}
	state, err := c.eth.BlockChain().State()
	if err != nil {
		return true
	}
	for account, transactions := range waiting {
		last := transactions[len(transactions)-1].Resolve()
		if last != nil && last.Nonce() >= state.GetNonce(account) {
			return true
		}
	}
	return false
}

// commit makes a block of what waits and has it on disk when it returns. Nil means that none was made.
func (c *Chain) commit(at time.Time) *types.Block {
	block, err := c.seal(at)
	if err != nil {
		c.log.Warn("the dev chain made no block", "error", err)
		return nil
	}
	if c.durable {
		if err := c.eth.ChainDb().SyncKeyValue(); err != nil {
			c.log.Warn("the dev chain's block is not safe on disk", "error", err)
		}
	}
	return block
}

// seal makes a block of what waits, and makes it the head.
func (c *Chain) seal(at time.Time) (*types.Block, error) {
	chain := c.eth.BlockChain()
	d, err := newDraft(chain, chain.CurrentBlock(), at)
	if err != nil {
		return nil, err
	}
	defer d.evm.Release()
	d.fill(c.eth.TxPool())
	block, err := d.finish(c.eth.ChainDb())
	if err != nil {
		return nil, err
	}
	c.rememberSenders(block)
	if _, err := chain.SetCanonical(block); err != nil {
		return nil, fmt.Errorf("make block %s the head: %w", block.Number(), err)
	}
	c.finalize(block)
	return block, nil
}

// knownSender is a signer that knows who signed.
type knownSender struct {
	types.Signer
	from common.Address
}

// Sender implements types.Signer.
func (s knownSender) Sender(*types.Transaction) (common.Address, error) { return s.from, nil }

// rememberSenders says who signed the transactions of a block that has just been written. The node reads it back from the database, once and for everybody who wants it: the
// pools, and the receipts that are asked for. Each would recover the senders otherwise, which takes twice as long as running a small transaction.
func (c *Chain) rememberSenders(block *types.Block) {
	chain := c.eth.BlockChain()
	stored := chain.GetBlock(block.Hash(), block.NumberU64())
	if stored == nil {
		return
	}
	signer := types.MakeSigner(chain.Config(), block.Number(), block.Time())
	for i, tx := range block.Transactions() {
		if from, err := types.Sender(signer, tx); err == nil { // what ran has one
			_, _ = types.Sender(knownSender{signer, from}, stored.Transactions()[i])
		}
	}
}

// finalize says which blocks are "safe" and "finalized": the head, and, like on the chains that people know, the newest that ends an epoch.
func (c *Chain) finalize(head *types.Block) {
	chain := c.eth.BlockChain()
	chain.SetSafe(head.Header())
	if final := chain.GetHeaderByNumber(head.NumberU64() / epoch * epoch); final != nil {
		chain.SetFinalized(final)
	}
}

const epoch = 32 // blocks

// Mine makes one block of all that was sent before, empty or not, and returns its hash.
func (c *Chain) Mine() common.Hash {
	c.sealing.Lock()
	defer c.sealing.Unlock()
	// The pool takes up what was sent in the background, and so it learns of blocks. What comes while it learns of one may have to wait for the next.
	c.syncPool()
	c.commit(time.Now())
	c.syncPool()
	return c.eth.BlockChain().CurrentBlock().Hash()
}

func (c *Chain) syncPool() {
	if err := c.eth.TxPool().Sync(); err != nil {
		c.log.Warn("the dev chain's pool does not answer", "error", err)
	}
}

// SetAutomine switches the making of blocks on demand on or off.
func (c *Chain) SetAutomine(on bool) {
	c.sealing.Lock()
	c.auto.Store(on)
	c.sealing.Unlock()
	c.wakeSealer()
}

// AdjustTime makes an empty block whose time is that much after the head's.
func (c *Chain) AdjustTime(by time.Duration) error {
	c.sealing.Lock()
	defer c.sealing.Unlock()
	if waiting, _ := c.eth.TxPool().Stats(); waiting > 0 {
		return errors.New("adjust the chain's time: transactions wait for a block")
	}
	if _, err := c.seal(time.Unix(int64(c.Head().Time), 0).Add(by)); err != nil { //nolint:gosec // a time of day
		return fmt.Errorf("adjust the chain's time: %w", err)
	}
	return nil
}

// Rewind takes the newest blocks back and returns their transactions, oldest first, which are in no block and no pool any
// more. Nobody is told before another block is made on the shorter chain.
func (c *Chain) Rewind(blocks uint64) ([]*types.Transaction, error) {
	c.sealing.Lock()
	defer c.sealing.Unlock()
	chain := c.eth.BlockChain()
	head := chain.CurrentBlock().Number.Uint64()
	if blocks >= head {
		return nil, fmt.Errorf("rewind %d blocks: the chain has only %d", blocks, head)
	}
	var undone []*types.Transaction
	for number := head - blocks + 1; number <= head; number++ {
		undone = append(undone, chain.GetBlockByNumber(number).Transactions()...)
	}
	parent := chain.GetBlockByNumber(head - blocks)
	// What waits would be in the way; what was undone comes back into the pool by itself.
	auto := c.auto.Swap(false)
	defer c.auto.Store(auto)
	if err := c.eth.TxPool().Sync(); err != nil {
		return nil, fmt.Errorf("rewind the chain: %w", err)
	}
	c.eth.TxPool().Clear()
	if _, err := chain.SetCanonical(parent); err != nil {
		return nil, fmt.Errorf("rewind the chain: %w", err)
	}
	if err := c.eth.TxPool().Sync(); err != nil {
		return nil, fmt.Errorf("rewind the chain: %w", err)
	}
	c.eth.TxPool().Clear()
	if chain.CurrentBlock().Hash() != parent.Hash() {
		return nil, errors.New("rewind the chain: the head did not move")
	}
	return undone, nil
}

// Head is the header of the newest block.
func (c *Chain) Head() *types.Header { return c.eth.BlockChain().CurrentBlock() }
