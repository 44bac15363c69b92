package chaintest

import (
	"context"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"
)

// Rewind takes the newest blocks back, and with them their transactions, which are returned oldest first. What is mined next
// continues from there: send something else for a branch with other content. A node announces the new branch at its first
// block, even while it is shorter than the old one.
func (c *Chain) Rewind(t testing.TB, blocks int) []*types.Transaction {
	t.Helper()
	undone, err := c.chain.Rewind(uint64(blocks))
	if err != nil {
		t.Fatal(err)
	}
	return undone
}

// Reorg replaces the newest blocks by a branch that is one block longer. Their transactions are mined again, all in the branch's
// first block, so that each keeps its effect but not its place.
func (c *Chain) Reorg(t testing.TB, blocks int) {
	t.Helper()
	c.replace(t, blocks, true)
}

// ReorgDropping replaces the newest blocks by a branch of empty ones that is one block longer; the transactions are gone.
func (c *Chain) ReorgDropping(t testing.TB, blocks int) []*types.Transaction {
	t.Helper()
	return c.replace(t, blocks, false)
}

func (c *Chain) replace(t testing.TB, blocks int, again bool) []*types.Transaction {
	t.Helper()
	manual := c.manual
	c.SetAutomine(false)
	defer c.SetAutomine(!manual)
	undone := c.Rewind(t, blocks)
	if again {
		for _, tx := range undone {
			if err := c.client.SendTransaction(context.Background(), tx); err != nil {
				t.Fatalf("send a transaction of the old branch again: %v", err)
			}
		}
	}
	c.Mine(blocks + 1)
	return undone
}
