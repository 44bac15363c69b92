package handlers

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"strconv"

	"github.com/ethereum/go-ethereum/common/hexutil"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
)

// dryRun tells what the invocation would do. What is wrong with the request itself is an error, as it is for the invocation; that the contract would revert is
// an answer.
func (s *Server) dryRun(ctx context.Context, c call) (gen.DryRunResult, error) {
	none := gen.DryRunResult{}
	n, options, err := c.encode()
	if err != nil {
		return none, err
	}
	if err := s.requireCode(ctx, c.ns.Chain, c.to); err != nil {
		return none, err
	}
	client := c.ns.Chain.Client
	out := gen.DryRunResult{
		From: contract.FormatAddress(n.Key), To: contract.FormatAddress(c.to), Data: hexutil.Encode(n.Data), Value: "0", Logs: []gen.DryRunLog{},
	}
	if n.Value != nil {
		out.Value = n.Value.String()
	}
	offer, err := client.SuggestFees(ctx, c.ns.Chain.MaxFeePerGas, n.Options)
	if err != nil {
		return none, fmt.Errorf("ask for the fees: %w", err)
	}
	request := options.request(n.Key, c.to, n.Data)
	if n.Gas, err = client.EstimateGas(ctx, request); err != nil {
		return out, c.wouldFail(&out, err)
	}
	limit := n.GasLimit()
	out.Gas, out.GasLimit = present(strconv.FormatUint(n.Gas, 10)), present(strconv.FormatUint(limit, 10))
	out.Fee = toFeeOffer(offer, n.Gas, limit)
	sim, err := client.Simulate(ctx, request)
	if err != nil {
		return out, c.wouldFail(&out, err)
	}
	if out.Output, err = c.method.DecodeOutput(sim.Output); err != nil {
		return none, fmt.Errorf("decode the output: %w", err)
	}
	out.Succeeds, out.LogsUnavailable = true, present(sim.LogsUnavailable)
	if sim.GasUsed > 0 {
		out.GasUsed = present(strconv.FormatUint(sim.GasUsed, 10))
	}
	if sim.Block != nil {
		out.Block = present(strconv.FormatUint(*sim.Block, 10))
	}
	for i := range sim.Logs {
		out.Logs = append(out.Logs, c.toLog(&sim.Logs[i]))
	}
	return out, nil
}

// wouldFail puts a revert into the answer; anything else stays an error.
func (c call) wouldFail(out *gen.DryRunResult, err error) error {
	err = c.failed(err)
	var known *pactwire.Error
	if !errors.As(err, &known) || known.Kind != pactwire.KindReverted {
		return err
	}
	out.Error = present(known.Message)
	if known.Revert != nil {
		out.Revert = toRevert(known.Revert)
	}
	return nil
}

// toLog decodes a log by the events of the interface that was used. A log of another contract, which may have the same event, is decoded as well.
func (c call) toLog(log *chain.SimulatedLog) gen.DryRunLog {
	out := gen.DryRunLog{Address: contract.FormatAddress(log.Address), Data: hexutil.Encode(log.Data), Topics: make([]string, len(log.Topics))}
	for i, topic := range log.Topics {
		out.Topics[i] = topic.Hex()
	}
	for _, event := range c.events {
		if output, err := event.DecodeLog(log.Topics, log.Data); err == nil {
			out.Name, out.Signature, out.Output = present(event.Event.Name), present(event.Signature), output
			break
		}
	}
	return out
}

func toFeeOffer(offer chain.FeeOffer, gas, limit uint64) *gen.FeeOffer {
	times := func(gas uint64, price *big.Int) string {
		return new(big.Int).Mul(new(big.Int).SetUint64(gas), price).String()
	}
	out := &gen.FeeOffer{Maximum: times(limit, offer.Highest()), Expected: present(times(gas, offer.Expected()))}
	for _, fee := range []struct {
		to *(*string)
		v  *big.Int
	}{{&out.GasPrice, offer.GasPrice}, {&out.MaxFeePerGas, offer.MaxFeePerGas}, {&out.MaxPriorityFeePerGas, offer.MaxPriorityFeePerGas}} {
		if fee.v != nil {
			*fee.to = present(fee.v.String())
		}
	}
	return out
}
