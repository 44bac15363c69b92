package chain

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// receipt is what is needed of a transaction's receipt. The logs are not decoded: the listeners read them.
type receipt struct {
	TransactionHash   common.Hash     `json:"transactionHash"`
	BlockHash         common.Hash     `json:"blockHash"`
	BlockNumber       hexutil.Uint64  `json:"blockNumber"`
	TransactionIndex  hexutil.Uint64  `json:"transactionIndex"`
	Status            *hexutil.Uint64 `json:"status"`
	GasUsed           hexutil.Uint64  `json:"gasUsed"`
	EffectiveGasPrice *hexutil.Big    `json:"effectiveGasPrice"`
	ContractAddress   *common.Address `json:"contractAddress"`
}

func (r *receipt) succeeded() bool { return r.Status == nil || *r.Status != 0 }

// search is what was found of one transaction.
type search struct {
	receipt *receipt
	unknown bool // the node could not tell
}

// receipts looks for the receipts of transactions whose nonces are used up, under every hash that was ever sent for them. Those in known need no question.
func (k *keySubmitter) receipts(ctx context.Context, items []*inflight, known map[common.Hash]*receipt) ([]search, error) {
	found := make([]search, len(items))
	var elems []rpc.BatchElem
	var of []int
	for i, t := range items {
		hashes := k.state.hashesOf(t)
		if n := slices.IndexFunc(hashes, func(h common.Hash) bool { return known[h] != nil }); n >= 0 {
			found[i].receipt = known[hashes[n]]
			continue
		}
		for _, hash := range hashes {
			elems = append(elems, ofTransaction(hash))
			of = append(of, i)
		}
	}
	for begin := 0; begin < len(elems); begin += k.cfg.MessageSize {
		part := elems[begin:min(begin+k.cfg.MessageSize, len(elems))]
		if err := k.client.BatchCall(ctx, part); err != nil {
			return nil, fmt.Errorf("read receipts: %w", err)
		}
		for i := range part {
			f := &found[of[begin+i]]
			got, _ := part[i].Result.(**receipt)
			switch {
			case part[i].Error != nil && !definite(part[i].Error):
				return nil, fmt.Errorf("read a receipt: %w", badUpstream(part[i].Error, "The chain's node gave a receipt that makes no sense."))
			case part[i].Error != nil:
				f.unknown = true // still indexing, or busy
			case *got != nil && (*got).BlockHash != common.Hash{}:
				f.receipt = *got
			}
		}
	}
	return found, nil
}

// outcomes turns receipts into the ends of the operations, in the order of the chain. Fillers come along: their row of the outbox has to go.
func (k *keySubmitter) outcomes(ctx context.Context, items []*inflight, receipts []*receipt) ([]store.Outcome, error) {
	outcomes := make([]store.Outcome, len(items))
	var failed []int
	for i, t := range items {
		r := receipts[i]
		outcomes[i] = store.Outcome{
			Operation: t.operation, Status: store.OpSucceeded, TxHash: &r.TransactionHash, Output: r.output(),
		}
		if k.state.cancels(t, r.TransactionHash) {
			outcomes[i].Status, outcomes[i].Error = store.OpFailed, cancelledMined
			continue
		}
		if !r.succeeded() {
			outcomes[i].Status = store.OpFailed
			failed = append(failed, i)
		}
	}
	if len(failed) == 0 {
		return outcomes, nil
	}
	ids := make([]uuid.UUID, len(failed))
	for j, i := range failed {
		ids[j] = items[i].operation
	}
	calls, err := k.db.OutboxCalls(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("explain reverts: %w", err)
	}
	custom, err := k.db.OutboxErrors(ctx, ids)
	if err != nil {
		return nil, fmt.Errorf("explain reverts: %w", err)
	}
	byID := make(map[uuid.UUID]*store.OutboxCall, len(calls))
	for i := range calls {
		byID[calls[i].Operation] = &calls[i]
	}
	each(len(failed), maxCallMessages, func(j int) {
		i := failed[j]
		o := &outcomes[i]
		o.Error = "The transaction was mined and failed; why, the chain's node does not tell."
		if call := byID[items[i].operation]; call != nil {
			o.Error, o.Revert = k.explain(ctx, call, receipts[i], custom[items[i].operation])
		}
	})
	return outcomes, ctx.Err()
}

func (r *receipt) output() *store.OperationOutput {
	out := &store.OperationOutput{
		TransactionHash: r.TransactionHash.Hex(), BlockNumber: strconv.FormatUint(uint64(r.BlockNumber), 10), BlockHash: r.BlockHash.Hex(),
		GasUsed: strconv.FormatUint(uint64(r.GasUsed), 10),
	}
	if r.EffectiveGasPrice != nil {
		out.EffectiveGasPrice = r.EffectiveGasPrice.ToInt().String()
	}
	if r.ContractAddress != nil && (*r.ContractAddress != common.Address{}) {
		out.ContractAddress = strings.ToLower(r.ContractAddress.Hex())
	}
	return out
}

// explain finds out why a mined transaction failed. A receipt does not say: the call is made again on the state before its block, and, as another transaction
// of the same block may be the cause, on the state after it.
func (k *keySubmitter) explain(ctx context.Context, call *store.OutboxCall, r *receipt, custom []contract.Error) (string, *pactwire.Revert) {
	request := CallRequest{From: &k.key, Create: call.To == nil, Data: call.Data, Value: call.Value, Gas: call.Gas}
	if call.To != nil {
		request.To = *call.To
	}
	for _, number := range []uint64{max(uint64(r.BlockNumber), 1) - 1, uint64(r.BlockNumber)} {
		request.Block = hexutil.EncodeUint64(number)
		_, err := k.client.Call(ctx, request)
		revert := asRevertOf(err)
		if revert == nil {
			continue
		}
		if len(revert.Data) == 0 {
			return "The transaction was mined and reverted: " + revert.Message, &pactwire.Revert{Reason: revert.Message, Data: "0x"}
		}
		decoded := contract.DecodeRevert(revert.Data, custom)
		if decoded == nil {
			return "The transaction was mined and reverted: " + revert.Message, &pactwire.Revert{Data: hexutil.Encode(revert.Data)}
		}
		text := decoded.Reason
		if text == "" {
			text = decoded.Signature
		}
		if text == "" {
			text = revert.Message
		}
		return "The transaction was mined and reverted: " + text, decoded
	}
	if uint64(r.GasUsed) >= call.Gas {
		return "The transaction was mined and ran out of gas: it used all of its limit of " + strconv.FormatUint(call.Gas, 10) + ".", nil
	}
	return "The transaction was mined and failed; the same call made again does not tell why.", nil
}
