package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// RetryOperation does a failed operation again.
func (s *Server) RetryOperation(ctx context.Context, r gen.RetryOperationRequestObject) (gen.RetryOperationResponseObject, error) {
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	op, err := s.retry(ctx, ns, r.ID)
	if err != nil {
		return nil, err
	}
	if !value(r.Params.Confirm) {
		return gen.RetryOperation202JSONResponse{InvocationJSONResponse: gen.InvocationJSONResponse{ID: op.ID}}, nil
	}
	if op, err = s.db.AwaitOperation(ctx, op.ID); err != nil {
		return nil, err
	}
	return gen.RetryOperation200JSONResponse{InvokedJSONResponse: gen.InvokedJSONResponse(toOperation(op))}, nil
}

// retry makes the new operation: as for an invocation, a revert is told at once and costs nothing.
func (s *Server) retry(ctx context.Context, ns *Namespace, id uuid.UUID) (store.Operation, error) {
	none := store.Operation{}
	n, err := s.db.FailedOperation(ctx, ns.Name, id)
	if err != nil {
		return none, fmt.Errorf("find a failed operation: %w", err)
	}
	if !slices.Contains(ns.Chain.Keys, n.Key) {
		return none, pactwire.Conflict("key_not_held", "This node does not hold the key of %s, which is to sign.", contract.FormatAddress(n.Key))
	}
	request := chain.CallRequest{
		From: &n.Key, Create: n.To == nil, Data: n.Data, Value: n.Value, GasPrice: n.Options.GasPrice, MaxFeePerGas: n.Options.MaxFeePerGas,
		MaxPriorityFeePerGas: n.Options.MaxPriorityFeePerGas,
	}
	if n.Options.Gas != nil {
		request.Gas = *n.Options.Gas
	}
	if n.To != nil {
		request.To = *n.To
	}
	if n.Gas, err = ns.Chain.Client.EstimateGas(ctx, request); err != nil {
		return none, failed(err, "the operation", func(data []byte) *pactwire.Revert { return contract.DecodeRevert(data, n.Errors) })
	}
	op, err := s.db.RetryOperation(ctx, id, n)
	if err != nil {
		return none, fmt.Errorf("retry an operation: %w", err)
	}
	return op, nil
}

// CancelOperation cancels an operation that is not mined.
func (s *Server) CancelOperation(ctx context.Context, r gen.CancelOperationRequestObject) (gen.CancelOperationResponseObject, error) {
	op, err := s.change(ctx, r.Namespace, r.ID, store.ChangeCancel, r.Body, value(r.Params.Confirm))
	if err != nil {
		return nil, err
	}
	if value(r.Params.Confirm) {
		return gen.CancelOperation200JSONResponse{InvokedJSONResponse: gen.InvokedJSONResponse(toOperation(op))}, nil
	}
	return gen.CancelOperation202JSONResponse{RequestedJSONResponse: gen.RequestedJSONResponse(toOperation(op))}, nil
}

// SpeedUpOperation raises the fee of an operation that is not mined.
func (s *Server) SpeedUpOperation(ctx context.Context, r gen.SpeedUpOperationRequestObject) (gen.SpeedUpOperationResponseObject, error) {
	op, err := s.change(ctx, r.Namespace, r.ID, store.ChangeSpeedUp, r.Body, value(r.Params.Confirm))
	if err != nil {
		return nil, err
	}
	if value(r.Params.Confirm) {
		return gen.SpeedUpOperation200JSONResponse{InvokedJSONResponse: gen.InvokedJSONResponse(toOperation(op))}, nil
	}
	return gen.SpeedUpOperation202JSONResponse{RequestedJSONResponse: gen.RequestedJSONResponse(toOperation(op))}, nil
}

// change notes what is asked for; the submitter of the operation's key does it.
func (s *Server) change(ctx context.Context, namespace string, id uuid.UUID, kind string, body *gen.OperationChange, wait bool) (store.Operation, error) {
	none := store.Operation{}
	ns, err := s.namespace(namespace)
	if err != nil {
		return none, err
	}
	var raw json.RawMessage
	if body != nil {
		raw = body.Options
	}
	options, err := parseOptions(raw, forChange)
	if err != nil {
		return none, err
	}
	op, err := s.db.Operation(ctx, ns.Name, id)
	if err != nil {
		return none, fmt.Errorf("find an operation: %w", err)
	}
	request := store.ChangeRequest{
		Kind: kind, GasPrice: options.gasPrice, MaxFeePerGas: options.maxFeePerGas, MaxPriorityFeePerGas: options.maxPriorityFeePerGas,
	}
	if err := affordable(ns, op, request); err != nil {
		return none, err
	}
	if err := s.db.RequestChange(ctx, ns.Name, id, request); err != nil {
		return none, fmt.Errorf("change an operation: %w", err)
	}
	if wait {
		return s.db.AwaitOperation(ctx, id) //nolint:wrapcheck // says what was done
	}
	return op, nil
}

// affordable tells at once of fees that no node would take, or that the configuration forbids.
func affordable(ns *Namespace, op store.Operation, request store.ChangeRequest) error {
	if op.Terminal() || len(op.Attempts) == 0 || op.Nonce == nil {
		return nil
	}
	last := op.Attempts[0]
	for _, a := range op.Attempts {
		if a.Refused == "" {
			last = a
		}
	}
	highest, tip := last.MaxFeePerGas, last.MaxPriorityFeePerGas
	if last.GasPrice != nil {
		highest, tip = last.GasPrice, last.GasPrice
	}
	if highest == nil || tip == nil {
		return nil
	}
	for _, asked := range []struct {
		name     string
		fee, old *big.Int
	}{{"gasPrice", request.GasPrice, highest}, {"maxFeePerGas", request.MaxFeePerGas, highest}, {"maxPriorityFeePerGas", request.MaxPriorityFeePerGas, tip}} {
		if asked.fee != nil && !chain.Replaces(asked.fee, asked.old) {
			return pactwire.Invalid("options."+asked.name, "must be at least a tenth higher than the %s wei that are offered already", asked.old)
		}
	}
	limit := ns.Chain.MaxFeePerGas
	if fees := request.Fees(); !fees.Fees() && limit != nil && !chain.Replaces(limit, highest) {
		return pactwire.Conflict("fee_limit", "The configured limit of %s wei leaves no room above the %s that are offered already; give the fees in options.",
			limit, highest)
	}
	return nil
}

func toAttempt(a *store.Attempt) gen.Attempt {
	out := gen.Attempt{
		TransactionHash: a.Hash.Hex(), Nonce: present(strconv.FormatUint(a.Nonce, 10)), Reason: present(a.Reason), Created: &a.Created, Refused: present(a.Refused),
	}
	for _, fee := range []struct {
		to *(*string)
		v  *big.Int
	}{{&out.GasPrice, a.GasPrice}, {&out.MaxFeePerGas, a.MaxFeePerGas}, {&out.MaxPriorityFeePerGas, a.MaxPriorityFeePerGas}} {
		if fee.v != nil {
			*fee.to = present(fee.v.String())
		}
	}
	return out
}

// keyStatus tells what the keys of the chain have to do; also those that this node does not hold.
func (s *Server) keyStatus(ctx context.Context, on *Chain) ([]gen.KeyStatus, error) {
	busy, err := s.db.OutboxKeys(ctx, on.Name)
	if err != nil {
		return nil, fmt.Errorf("read the keys: %w", err)
	}
	var out []gen.KeyStatus
	at := map[common.Address]int{}
	for _, key := range on.Keys {
		at[key] = len(out)
		out = append(out, gen.KeyStatus{Address: contract.FormatAddress(key), Held: true})
	}
	for i := range busy {
		k := &busy[i]
		j, held := at[k.Key]
		if !held {
			j = len(out)
			out = append(out, gen.KeyStatus{Address: contract.FormatAddress(k.Key)})
		}
		out[j].Unsent, out[j].Unmined = k.Unsent, k.Unmined
		out[j].OldestUnsentSeconds, out[j].OldestUnminedSeconds = age(k.OldestUnsent), age(k.OldestUnmined)
	}
	return out, nil
}

// age is the time since then in seconds.
func age(since *time.Time) *float32 {
	if since == nil {
		return nil
	}
	seconds := float32(max(time.Since(*since), 0).Seconds())
	return &seconds
}
