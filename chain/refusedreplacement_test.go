package chain

import (
	"math/big"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

// pickyBench has a node that refuses some of the transactions that it is sent.
type pickyBench struct {
	*submitBench
	node    *lyingNode
	to      common.Address
	refused atomic.Int64
}

func newPickyBench(t *testing.T) *pickyBench {
	t.Helper()
	chain := chaintest.New(t, chaintest.Manual())
	node := newLyingNode(t, chain.HTTPURL())
	return &pickyBench{
		submitBench: newSubmitBenchAt(t, chain, node.server.URL, 0), node: node, to: chain.Deploy(t, contracts.SimpleStorage()),
	}
}

// refuse makes the node refuse with the text what the condition is true for.
func (b *pickyBench) refuse(text string, condition func(*types.Transaction) bool) {
	b.node.set(func(call rpcCall) string {
		if tx := sentWith(call); tx == nil || !condition(tx) {
			return ""
		}
		b.refused.Add(1)
		return text
	}, nil)
}

// waiting is an operation whose transaction is in the node's pool.
func (b *pickyBench) waiting(t *testing.T, options store.TxOptions) (uuid.UUID, store.Attempt) {
	t.Helper()
	n := b.call(t, contracts.SimpleStorage(), b.to, "set", big.NewInt(7))
	n.Options = options
	id := b.create(t, n)
	return id, b.sent(t, id, 1).Attempts[0]
}

func (b *pickyBench) inPool(t *testing.T, hash common.Hash) {
	t.Helper()
	until(t, "the transaction is in the pool", func() bool {
		_, pending, err := b.chain.Client().TransactionByHash(t.Context(), hash)
		return err == nil && pending
	})
}

// offer is what the market asks for.
func (b *pickyBench) offer(t *testing.T) FeeOffer {
	t.Helper()
	offer, err := b.client.SuggestFees(t.Context(), nil, store.TxOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return offer
}

// refusedAttempt waits until it is noted that the operation's attempt was refused.
func (b *pickyBench) refusedAttempt(t *testing.T, id uuid.UUID, attempt int, text string) store.Operation {
	t.Helper()
	var op store.Operation
	until(t, "the refusal is noted", func() bool {
		op = b.get(t, id)
		return len(op.Attempts) > attempt && op.Attempts[attempt].Refused != ""
	})
	if !strings.Contains(op.Attempts[attempt].Refused, text) {
		t.Fatalf("attempts %+v", op.Attempts)
	}
	return op
}

func feeAbove(fee *big.Int) func(*types.Transaction) bool {
	return func(tx *types.Transaction) bool { return tx.GasFeeCap().Cmp(fee) > 0 }
}

// TestARefusedSpeedUpLeavesWhatWasThere has a node that does not take what is to replace a transaction that it has: that one is followed, mined and counted.
func TestARefusedSpeedUpLeavesWhatWasThere(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text  string
		asked store.TxOptions // of the first transaction
	}{
		"another fee in the pool": {text: "replacement transaction underpriced"},
		"fee too low":             {text: "transaction underpriced: gas tip cap 0, minimum needed 1"},
		"the node's cap":          {text: "tx fee (2.10 ether) exceeds the configured cap (1.00 ether)"},
		"fees given before":       {"exceeds block gas limit", store.TxOptions{MaxFeePerGas: big.NewInt(1e11)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPickyBench(t)
			stop := b.submit(t)
			before := b.minedNonce(t, b.key)
			id, first := b.waiting(t, c.asked)
			b.refuse(c.text, feeAbove(first.MaxFeePerGas))
			b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp, MaxFeePerGas: big.NewInt(1e13)})
			op := b.refusedAttempt(t, id, 1, c.text)
			if rows, err := b.db.SignedOutbox(t.Context(), "dev", b.key); err != nil || len(rows) != 1 || rows[0].Explicit != c.asked.Fees() {
				t.Fatalf("it goes on as %+v, %v", rows, err)
			}
			if *op.TransactionHash != first.Hash || len(op.Attempts) != 2 || op.Attempts[0].Refused != "" {
				t.Fatalf("it is %s of %+v", op.TransactionHash, op.Attempts)
			}
			// It is not sent again, neither now nor after a restart; the transaction that was there is.
			asked := b.refused.Load()
			b.chain.Rewind(t, 0) // the node loses its pool
			b.inPool(t, first.Hash)
			stop()
			b.chain.Rewind(t, 0)
			b.submit(t)
			b.inPool(t, first.Hash)
			if n := b.refused.Load(); n != asked {
				t.Errorf("the refused transaction was sent %d times more", n-asked)
			}
			// What comes later goes on, and another wish is heard.
			later := b.create(t, b.call(t, contracts.SimpleStorage(), b.to, "set", big.NewInt(8)))
			b.node.set(nil, nil)
			b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp, MaxFeePerGas: big.NewInt(2e13)})
			op = b.sent(t, id, 3)
			b.sent(t, later, 1)
			b.chain.Mine(1)
			if mined := b.succeeded(t, id); *mined.TransactionHash != op.Attempts[2].Hash || len(mined.Attempts) != 3 || mined.Attempts[1].Refused == "" {
				t.Errorf("mined %s of %+v", mined.TransactionHash, mined.Attempts)
			}
			b.endsOnce(t, []uuid.UUID{id, later}, before)
		})
	}
}

// TestASpeedUpGoesBeyondWhatThePoolRefuses has a pool that asks for more than a tenth, up to the limit.
func TestASpeedUpGoesBeyondWhatThePoolRefuses(t *testing.T) {
	t.Parallel()
	const text = "replacement transaction underpriced"
	for name, limited := range map[string]bool{"far enough": false, "not within the limit": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newPickyBench(t)
			var limit *big.Int
			if limited {
				limit = new(big.Int).Mul(b.offer(t).MaxFeePerGas, big.NewInt(5))
				limit.Rsh(limit, 2) // a quarter more: room for one step
			}
			b.submit(t, func(c *SubmitterConfig) { c.MaxFeePerGas = limit })
			id, first := b.waiting(t, store.TxOptions{})
			enough := new(big.Int).Mul(first.MaxFeePerGas, big.NewInt(3))
			enough.Rsh(enough, 1) // half more
			b.refuse(text, func(tx *types.Transaction) bool {
				return tx.GasFeeCap().Cmp(first.MaxFeePerGas) > 0 && tx.GasFeeCap().Cmp(enough) < 0
			})
			b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp})
			var op store.Operation
			if limited {
				until(t, "the first transaction is gone back to", func() bool {
					op = b.get(t, id)
					return len(op.Attempts) > 1 && op.Attempts[len(op.Attempts)-1].Refused != "" && *op.TransactionHash == first.Hash
				})
			} else {
				until(t, "a transaction is taken", func() bool {
					op = b.get(t, id)
					return len(op.Attempts) > 1 && op.Attempts[len(op.Attempts)-1].MaxFeePerGas.Cmp(enough) >= 0
				})
				b.sent(t, id, len(op.Attempts))
			}
			b.chain.Mine(1)
			op = b.succeeded(t, id)
			last := op.Attempts[len(op.Attempts)-1]
			if limited && (*op.TransactionHash != first.Hash || last.MaxFeePerGas.Cmp(limit) > 0) || !limited && *op.TransactionHash != last.Hash {
				t.Errorf("mined %s of %+v", op.TransactionHash, op.Attempts)
			}
			for _, a := range op.Attempts[1:] {
				if taken := a.Hash == *op.TransactionHash; taken != (a.Refused == "") {
					t.Errorf("attempt %+v", a)
				}
			}
		})
	}
}

// TestASpeedUpThatCannotBePaidForEndsNothing has an account that could pay for the first transaction, but not for the one in its place.
func TestASpeedUpThatCannotBePaidForEndsNothing(t *testing.T) {
	t.Parallel()
	b := newPickyBench(t)
	b.submit(t)
	before := b.minedNonce(t, b.key)
	id, first := b.waiting(t, store.TxOptions{})
	b.refuse("insufficient funds for gas * price + value: balance 9, tx cost 21, overshot 12", feeAbove(first.MaxFeePerGas))
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp, MaxFeePerGas: big.NewInt(1e13)})
	until(t, "it is tried some times", func() bool { return b.refused.Load() > maxFundsRefusals })
	if op := b.get(t, id); op.Terminal() {
		t.Fatalf("the operation is %s: %s", op.Status, op.Error)
	}
	b.chain.Mine(1) // what the pool has
	if op := b.succeeded(t, id); *op.TransactionHash != first.Hash {
		t.Errorf("mined %s of %+v", op.TransactionHash, op.Attempts)
	}
	b.endsOnce(t, []uuid.UUID{id}, before)
}

// TestARaisedFeeThatCannotBePaidForEndsNothing is the same for a fee that was raised on our own account.
func TestARaisedFeeThatCannotBePaidForEndsNothing(t *testing.T) {
	t.Parallel()
	b := newPickyBench(t)
	limit := b.offer(t).BaseFee // less than the market asks for
	stop := b.submit(t, func(c *SubmitterConfig) { c.MaxFeePerGas = limit })
	id, first := b.waiting(t, store.TxOptions{})
	stop()
	b.refuse("insufficient funds for gas * price + value", feeAbove(first.MaxFeePerGas))
	b.submit(t, func(c *SubmitterConfig) { c.BumpAfter = 50 * time.Millisecond })
	until(t, "it is tried some times", func() bool { return b.refused.Load() > maxFundsRefusals })
	if op := b.get(t, id); op.Terminal() {
		t.Fatalf("the operation is %s: %s", op.Status, op.Error)
	}
	b.node.set(nil, nil)
	b.sent(t, id, 2)
	b.chain.Mine(1)
	b.succeeded(t, id)
}

// TestWhatIsInvalidEndsAlsoAfterASpeedUp has an owner die that could send neither a transaction nor what was to take its place. Its successor cannot know that, until the
// node calls both of them invalid.
func TestWhatIsInvalidEndsAlsoAfterASpeedUp(t *testing.T) {
	t.Parallel()
	b := newPickyBench(t)
	all := func(*types.Transaction) bool { return true }
	b.refuse("txpool is full", all)
	stop := b.submit(t)
	id := b.create(t, b.call(t, contracts.SimpleStorage(), b.to, "set", big.NewInt(7)))
	attempts := func(n int) {
		until(t, "it is signed", func() bool { return len(b.get(t, id).Attempts) == n })
	}
	attempts(1)
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeSpeedUp})
	attempts(2)
	stop()
	b.refuse("exceeds block gas limit", all)
	b.submit(t)
	if op := b.await(t, id); op.Status != store.OpFailed || !strings.Contains(op.Error, "exceeds block gas limit") {
		t.Errorf("the operation is %s: %s", op.Status, op.Error)
	}
	b.node.set(nil, nil)
	other := b.create(t, b.call(t, contracts.SimpleStorage(), b.to, "set", big.NewInt(8))) // takes the nonce
	b.sent(t, other, 1)
	b.chain.Mine(1)
	b.succeeded(t, other)
}

// TestARefusedCancellationIsNotTakenBack has a node that refuses what cancels an operation for some time.
func TestARefusedCancellationIsNotTakenBack(t *testing.T) {
	t.Parallel()
	b := newPickyBench(t)
	b.submit(t)
	id, first := b.waiting(t, store.TxOptions{})
	text := "tx fee (2.10 ether) exceeds the configured cap (1.00 ether)"
	b.refuse(text, feeAbove(first.MaxFeePerGas))
	b.change(t, id, store.ChangeRequest{Kind: store.ChangeCancel})
	b.refusedAttempt(t, id, 1, text)
	asked := b.refused.Load()
	until(t, "it is sent again", func() bool { return b.refused.Load() > asked+1 })
	b.node.set(nil, nil)
	b.sent(t, id, 2)
	b.chain.Mine(1)
	if op := b.await(t, id); op.Error != cancelledMined || len(op.Attempts) != 2 {
		t.Fatalf("the operation is %s, %q: %+v", op.Status, op.Error, op.Attempts)
	}
}
