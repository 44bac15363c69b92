package devnet

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core"
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
				for ctx.Err() == nil && c.sealWaiting() {
				}
			}
		}
	})
	c.wakeSealer()
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
	if waiting, _ := c.eth.TxPool().Stats(); !c.auto.Load() || waiting == 0 {
		return false
	}
	before := c.eth.BlockChain().CurrentBlock()
	block := c.commit()
	if block == nil {
		return false
	}
	// The pool forgets mined transactions in the background; counting before it has would give empty blocks.
	if err := c.eth.TxPool().Sync(); err != nil {
		return false
	}
	if len(block.Transactions()) > 0 {
		return true
	}
	// Nothing of what waits could go in, because it pays less than the base fee. That falls with each empty block, to a limit.
	return block.BaseFee().Cmp(before.BaseFee) < 0
}

// commit makes a block of what waits and has it on disk when it returns. Nil means that none was made.
func (c *Chain) commit() *types.Block {
	chain := c.eth.BlockChain()
	before := chain.CurrentBlock().Hash()
	hash := c.beacon.Commit()
	if hash == before {
		c.log.Warn("the dev chain made no block")
		return nil
	}
	if c.durable {
		if err := c.eth.ChainDb().SyncKeyValue(); err != nil {
			c.log.Warn("the dev chain's block is not safe on disk", "error", err)
		}
	}
	return chain.GetBlockByHash(hash)
}

// Mine makes one block, empty or not, and returns its hash.
func (c *Chain) Mine() common.Hash {
	c.sealing.Lock()
	defer c.sealing.Unlock()
	c.commit()
	return c.eth.BlockChain().CurrentBlock().Hash()
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
	if err := c.beacon.AdjustTime(by); err != nil {
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
	if err := c.beacon.Fork(parent.Hash()); err != nil {
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
