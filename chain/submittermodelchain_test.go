package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// What the chain does in the submitter's model, and what is to be found on it in the end.

func (m *submitterModel) mine(blocks int) {
	m.look()
	m.chain.Mine(blocks)
	m.highest = max(m.highest, m.chain.Head())
}

// look remembers what waits in the pool.
func (m *submitterModel) look() []*types.Transaction {
	var pool map[string]map[string]*types.Transaction
	if err := m.chain.Client().Client().CallContext(context.Background(), &pool, "txpool_contentFrom", m.key); err != nil {
		m.t.Fatal(err)
	}
	var waiting []*types.Transaction
	for _, part := range pool {
		for _, tx := range part {
			waiting = append(waiting, tx)
		}
	}
	m.remember(waiting)
	return waiting
}

func (m *submitterModel) remember(transactions []*types.Transaction) {
	for _, tx := range transactions {
		m.seen[tx.Hash()] = tx
	}
}

// reorganise replaces blocks that have not all confirmations yet by others. What they held is lost, or waits again with what waited, or comes back in the order of
// their hashes and in part.
func (m *submitterModel) reorganise(s modelStep) {
	last := m.first // the first block that no owner can have taken for confirmed
	if m.highest > m.setup.confirmations {
		last = max(last, m.highest-m.setup.confirmations+1)
	}
	head := m.chain.Head()
	if m.setup.confirmations == 0 || head < last {
		return
	}
	waiting := m.look()
	undone := m.chain.Rewind(m.t, 1+s.a%int(head-last+1))
	m.remember(undone)
	switch s.b % 4 {
	case 1:
		m.send(undone...)
		m.send(waiting...)
	case 2:
		m.send(waiting...)
		m.send(undone...)
	case 3:
		slices.SortFunc(undone, func(a, b *types.Transaction) int { return a.Hash().Cmp(b.Hash()) })
		m.send(undone[:(len(undone)+1)/2]...)
	}
	m.mine(1 + s.c%3)
}

// lose empties the node's pool.
func (m *submitterModel) lose(modelStep) {
	m.look()
	m.chain.Rewind(m.t, 0)
}

// bringBack sends what the network has seen before, as any of its nodes may at any time.
func (m *submitterModel) bringBack(s modelStep) {
	var old []*types.Transaction
	for _, tx := range m.seen {
		if (int(tx.Hash()[0])+s.a)%3 > 0 {
			old = append(old, tx)
		}
	}
	m.send(old...)
}

// send offers transactions to the node; it may refuse them.
func (m *submitterModel) send(transactions ...*types.Transaction) {
	for _, tx := range transactions {
		_ = m.chain.Client().SendTransaction(context.Background(), tx)
	}
}

// modelRefusals are the words in which the node refuses what is to replace something.
var modelRefusals = []string{
	"replacement transaction underpriced", "tx fee (2.10 ether) exceeds the configured cap (1.00 ether)", "transaction underpriced: gas tip cap 1, minimum needed 2",
	"insufficient funds for gas * price + value: balance 9, tx cost 21, overshot 12", "the moon is in the wrong phase",
}

// refuse has the node refuse some of the transactions, more or fewer than before, that are to take the place of one that it has taken. It never refuses what it has
// taken. Others it says that it has already, and will not mine.
func (m *submitterModel) refuse(s modelStep) {
	m.node.set(func(call rpcCall) string {
		tx := sentWith(call)
		if tx != nil && tx.Gas() >= fillerGas && int(tx.Hash()[2])%8 < s.c%3 {
			return "transaction already imported"
		}
		if tx == nil || int(tx.Hash()[0])%4 >= s.a%4 {
			return ""
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		replaces := false
		for _, other := range m.taken[tx.Nonce()] {
			if other.Hash() == tx.Hash() {
				return ""
			}
			replaces = replaces || len(tx.Data()) == 0 || bytes.Equal(other.Data(), tx.Data())
		}
		if !replaces {
			return ""
		}
		return modelRefusals[(int(tx.Hash()[1])+s.b)%len(modelRefusals)]
	}, func(call rpcCall, result json.RawMessage) json.RawMessage {
		if tx := sentWith(call); tx != nil {
			m.mu.Lock()
			defer m.mu.Unlock()
			m.taken[tx.Nonce()] = append(m.taken[tx.Nonce()], tx)
		}
		return result
	})
}

// sentWith is the transaction that the call sends; nil when it does something else.
func sentWith(call rpcCall) *types.Transaction {
	var raw hexutil.Bytes
	var tx types.Transaction
	if call.Method != "eth_sendRawTransaction" || json.Unmarshal(call.Params[0], &raw) != nil || tx.UnmarshalBinary(raw) != nil {
		return nil
	}
	return &tx
}

// useKey sends a transaction of another program that uses the key, after all that waits.
func (m *submitterModel) useKey(modelStep) {
	nonce, err := m.chain.Client().PendingNonceAt(context.Background(), m.key)
	if err != nil {
		m.t.Fatal(err)
	}
	m.sendForeign(nonce, 2e9)
}

// outbid does the same in the place of something that waits.
func (m *submitterModel) outbid(s modelStep) {
	m.sendForeign(m.minedNonce(m.t, m.key)+uint64(s.a%2), 100e9)
}

func (m *submitterModel) sendForeign(nonce uint64, fee int64) {
	tx, err := types.SignNewTx(m.chain.Accounts[0].Key, types.LatestSignerForChainID(m.client.ChainID()), &types.DynamicFeeTx{
		ChainID: m.client.ChainID(), Nonce: nonce, To: &common.Address{1}, Value: big.NewInt(1), Gas: 21_000, GasTipCap: big.NewInt(fee / 2),
		GasFeeCap: big.NewInt(fee),
	})
	if err != nil {
		m.t.Fatal(err)
	}
	m.foreign[tx.Hash()] = true
	m.send(tx)
}

// settle makes blocks until nothing is left to do.
func (m *submitterModel) settle() {
	ctx := context.Background()
	for deadline := time.Now().Add(40 * time.Second); ; time.Sleep(15 * time.Millisecond) {
		m.mine(1)
		calls, err := m.db.UnassignedOutbox(ctx, "dev", m.key, 1000)
		if err != nil {
			m.t.Fatal(err)
		}
		requested, err := m.db.RequestedOutbox(ctx, "dev", m.key, 1000)
		if err != nil {
			m.t.Fatal(err)
		}
		signed, err := m.db.SignedOutbox(ctx, "dev", m.key)
		if err != nil {
			m.t.Fatal(err)
		}
		if len(calls)+len(requested)+len(signed) == 0 {
			return
		}
		if len(calls)+len(requested) == 0 && !slices.ContainsFunc(signed, func(row store.OutboxSigned) bool { return m.kind(row.Operation) != modelExplicit }) {
			m.acceptPlain() // for a nonce before one that was asked for
		}
		if time.Now().Before(deadline) {
			continue
		}
		for _, call := range append(calls, requested...) {
			m.t.Logf("waits: operation %s %+v, nonce %v, %d hashes, asked %+v", call.Operation, m.operations[call.Operation], deref(call.Nonce), len(call.Hashes), call.Request)
		}
		for _, row := range signed {
			m.t.Logf("in flight: nonce %d, operation %s %+v, %x", row.Nonce, row.Operation, m.operations[row.Operation], row.Hashes)
		}
		for _, tx := range m.look() {
			m.t.Logf("in the pool: nonce %d, %s, foreign %v", tx.Nonce(), tx.Hash(), m.foreign[tx.Hash()])
		}
		m.t.Fatalf("not in time; the chain's nonce is %d", m.minedNonce(m.t, m.key))
	}
}

// check compares the operations, the history and the chain with what was asked.
func (m *submitterModel) check() {
	ctx := context.Background()
	// No nonce is open, and nothing stands in the way of the next one.
	m.acceptPlain()
	m.settle()

	mined := m.minedTransactions()
	ours := map[common.Hash]uuid.UUID{}
	events := map[string]int{}
	for id, known := range m.operations {
		op, err := m.db.Operation(ctx, "default", id)
		if pactwire.KindOf(err) == pactwire.KindNotFound && !known.accepted {
			continue // its client had no answer, or was told of another one with the same idempotency key
		}
		if err != nil {
			m.t.Fatal(err)
		}
		m.checkOperation(known, &op, mined)
		for _, a := range op.Attempts {
			ours[a.Hash] = id
		}
		if op.Status == store.OpSucceeded {
			events[store.EventInvokeSucceeded+" "+id.String()] = 1
		} else {
			events[store.EventInvokeFailed+" "+id.String()] = 1
		}
	}
	told := m.eventsOf(m.t)
	for event, n := range told {
		if n != events[event] {
			m.t.Errorf("%d events %s, want %d", n, event, events[event])
		}
	}
	if len(told) != len(events) {
		m.t.Errorf("%d events for %d operations", len(told), len(events))
	}
	for hash, r := range mined {
		_, known := ours[hash]
		if filler := r.tx.To() != nil && *r.tx.To() == m.key && r.tx.Value().Sign() == 0; !known && !m.foreign[hash] && !filler {
			m.t.Errorf("transaction %s with nonce %d is of nobody", hash, r.tx.Nonce())
		}
	}
}

func (m *submitterModel) checkOperation(known *modelOperation, op *store.Operation, mined map[common.Hash]minedTransaction) {
	wrong := func(what string) {
		m.t.Errorf("%s: operation %s (%+v) is %s, %q, mined %v, attempts %+v", what, op.ID, *known, op.Status, op.Error, op.TransactionHash, op.Attempts)
	}
	var found []store.Attempt
	cancelled, cancels := false, false
	for _, a := range op.Attempts {
		cancels = cancels || a.Reason == store.AttemptCancel // what comes after it cancels too, faster
		// An operation that has given its nonce back may get it again, and is signed the same then.
		again := slices.ContainsFunc(found, func(f store.Attempt) bool { return f.Hash == a.Hash })
		if _, is := mined[a.Hash]; is && !again {
			found, cancelled = append(found, a), cancels
		}
	}
	if len(found) > 1 {
		wrong("mined more than once")
		return
	}
	if !op.Terminal() {
		wrong("not ended")
		return
	}
	if (op.TransactionHash != nil) != (len(found) == 1) || len(found) == 1 && *op.TransactionHash != found[0].Hash {
		wrong("another transaction is on the chain")
		return
	}
	switch {
	case op.Status == store.OpSucceeded:
		if known.kind == modelReverts || known.kind == modelRefused || len(found) != 1 || cancelled || !mined[found[0].Hash].succeeded {
			wrong("must not succeed")
		}
	case op.Error == cancelledMined || op.Error == cancelledUnsent:
		if !known.cancelled || cancelled != (op.Error == cancelledMined) {
			wrong("must not be cancelled")
		}
	case known.kind == modelReverts:
		if len(found) != 1 || cancelled || mined[found[0].Hash].succeeded {
			wrong("must be mined and fail")
		}
	case known.kind == modelRefused || known.kind == modelExplicit:
		if len(found) != 0 {
			wrong("must not be mined")
		}
	default:
		wrong("must not fail")
	}
}

type minedTransaction struct {
	tx        *types.Transaction
	succeeded bool
}

// minedTransactions are those of the key that are on the chain.
func (m *submitterModel) minedTransactions() map[common.Hash]minedTransaction {
	ctx := context.Background()
	mined := map[common.Hash]minedTransaction{}
	signer := types.LatestSignerForChainID(m.client.ChainID())
	for number := m.first; number <= m.chain.Head(); number++ {
		block, err := m.chain.Client().BlockByNumber(ctx, new(big.Int).SetUint64(number))
		if err != nil {
			m.t.Fatal(err)
		}
		for _, tx := range block.Transactions() {
			if from, err := types.Sender(signer, tx); err != nil || from != m.key {
				continue
			}
			receipt, err := m.chain.Client().TransactionReceipt(ctx, tx.Hash())
			if err != nil {
				m.t.Fatal(err)
			}
			mined[tx.Hash()] = minedTransaction{tx, receipt.Status == types.ReceiptStatusSuccessful}
		}
	}
	return mined
}
