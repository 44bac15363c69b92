package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/pactwire/pactwire/store"
)

// How a cancelled operation ends.
const (
	cancelledUnsent = "cancelled: nothing of it had been sent"
	cancelledMined  = "cancelled: a transfer of nothing was mined with its nonce"
)

// changes answers what clients ask of operations that are not mined. It runs in the loop that gives nonces and sends again, so that none of them can happen
// at the same time.
func (k *keySubmitter) changes(ctx context.Context) (more bool, err error) {
	calls, err := k.db.RequestedOutbox(ctx, k.cfg.Chain, k.key, k.cfg.BatchSize)
	if err != nil {
		return false, fmt.Errorf("read what is asked for: %w", err)
	}
	var ended []store.Outcome
	var unsent []refusal
	var replace []*store.OutboxCall
	for i := range calls {
		call := &calls[i]
		cancel := call.Request.Kind == store.ChangeCancel
		if call.Nonce == nil && cancel {
			ended = append(ended, store.Outcome{Operation: call.Operation, Status: store.OpFailed, Error: cancelledUnsent})
			continue
		}
		if call.Nonce == nil {
			if err := k.answer(ctx, call); err != nil {
				return false, err
			}
			continue
		}
		t := k.state.at(*call.Nonce)
		if t == nil || t.operation != call.Operation { // it is ending
			continue
		}
		if cancel && k.state.isIdle(t) {
			unsent = append(unsent, refusal{t, cancelledUnsent})
			continue
		}
		replace = append(replace, call)
	}
	if err := k.finish(ctx, ended); err != nil {
		return false, err
	}
	if err := k.fail(ctx, unsent); err != nil {
		return false, err
	}
	return len(calls) == k.cfg.BatchSize, k.replace(ctx, replace)
}

// answer notes the fees that are asked for an operation without a nonce: it gets them with its nonce.
func (k *keySubmitter) answer(ctx context.Context, call *store.OutboxCall) error {
	var options *store.TxOptions
	if asked := call.Request.Fees(); asked.Fees() {
		options = withFees(call.Options, asked)
	}
	if err := k.db.AnswerRequest(ctx, k.lease, call, options); err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	signal(k.state.kick)
	return nil
}

func withFees(o, fees store.TxOptions) *store.TxOptions {
	o.GasPrice, o.MaxFeePerGas, o.MaxPriorityFeePerGas = fees.GasPrice, fees.MaxFeePerGas, fees.MaxPriorityFeePerGas
	return &o
}

// replace signs and sends another transaction with the nonce of each of the calls.
func (k *keySubmitter) replace(ctx context.Context, calls []*store.OutboxCall) error {
	if len(calls) == 0 {
		return nil
	}
	market, err := k.market.suggest(ctx)
	if err != nil {
		return err
	}
	var replacements []store.Replacement
	var items []*inflight
	var offers []fees
	for _, call := range calls {
		t := k.state.at(*call.Nonce)
		if t == nil {
			continue
		}
		asked := call.Request.Fees()
		offer, ok := market.replacing(k.state.feesOf(t), asked, k.cfg.MaxFeePerGas)
		r := store.Replacement{Answers: call, Cancel: call.Request.Kind == store.ChangeCancel}
		if !ok {
			err = errors.New("the fees that are asked for, or the limit, leave no room for a replacement")
		} else {
			reason := store.AttemptSpeedUp
			if r.Cancel {
				reason = store.AttemptCancel
			}
			r.Signed, err = k.sign(ctx, k.present(ctx, call, r.Cancel), t.nonce, offer, reason)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx) //nolint:wrapcheck // our own end
		case isUnreachable(err): // the request stays
			return err
		case err != nil:
			k.log.WarnContext(ctx, "a change that was asked for cannot be made", "operation", call.Operation, "change", call.Request.Kind, "error", err)
			if err := k.db.AnswerRequest(ctx, k.lease, call, nil); err != nil {
				return err //nolint:wrapcheck // it says what was being done
			}
			continue
		}
		if !r.Cancel && call.CancelAt == nil {
			r.Options = withFees(call.Options, asked)
			r.Attempt.Asked = asked.Fees()
		}
		replacements, items, offers = append(replacements, r), append(items, t), append(offers, offer)
	}
	if len(replacements) == 0 {
		return nil
	}
	if err := k.db.ReplaceSigned(ctx, k.lease, replacements); err != nil {
		return fmt.Errorf("replace transactions: %w", err)
	}
	out := make([]*outgoing, len(items))
	for i, t := range items {
		r := &replacements[i]
		k.state.replaced(t, r.Hash, offers[i], r.Cancel, r.Options != nil && r.Options.Fees())
		out[i] = &outgoing{inflight: t, raw: r.Raw, sent: r.Hash}
		k.log.InfoContext(ctx, "replaced a transaction", "operation", t.operation, "nonce", t.nonce, "change", r.Answers.Request.Kind)
	}
	k.sending.put(out)
	return nil
}

// present is what is signed for the call now: the call itself, or, once it is cancelled, a transfer of nothing to oneself.
func (k *keySubmitter) present(ctx context.Context, call *store.OutboxCall, cancel bool) *store.OutboxCall {
	if !cancel && call.CancelAt == nil {
		return call
	}
	return &store.OutboxCall{
		Operation: call.Operation, To: &k.key, Value: new(big.Int), Gas: k.transferGas(ctx), Hashes: call.Hashes,
	}
}

// transferGas is what a transfer of nothing to oneself may use.
func (k *keySubmitter) transferGas(ctx context.Context) uint64 {
	gas, err := k.client.EstimateGas(ctx, CallRequest{From: &k.key, To: k.key})
	if err != nil {
		return fillerGas
	}
	return max(gas, fillerGas)
}

// replacing is an offer for a transaction in the place of one with the old offer: what is asked for, as far as nodes take that, or else bumped.
func (f fees) replacing(old fees, asked store.TxOptions, limit *big.Int) (fees, bool) {
	if !asked.Fees() {
		return f.bumped(old, limit)
	}
	offer := f.chosen(asked)
	oldMax, oldTip := old.ceiling()
	if !offer.legacy() && asked.MaxPriorityFeePerGas == nil {
		if enough := leastBump(oldTip); offer.tip.Cmp(enough) < 0 {
			offer.tip = enough
		}
		if offer.tip.Cmp(offer.max) > 0 {
			offer.tip = offer.max
		}
	}
	newMax, newTip := offer.ceiling()
	return offer, replaces(newMax, oldMax) && replaces(newTip, oldTip)
}

// ceiling is the offer as nodes compare it: a legacy price is both.
func (f fees) ceiling() (limit, tip *big.Int) {
	if f.legacy() {
		return f.price, f.price
	}
	return f.max, f.tip
}

// replaces tells whether nodes take v in the place of old: a tenth more, and more at all.
func replaces(v, old *big.Int) bool {
	return v.Cmp(old) > 0 && new(big.Int).Mul(v, big.NewInt(10)).Cmp(new(big.Int).Mul(old, big.NewInt(11))) >= 0
}

// leastBump is an eighth more, rounded up.
func leastBump(v *big.Int) *big.Int {
	up := new(big.Int).Rsh(v, 3)
	return up.Add(up.Add(up, v), big.NewInt(1))
}

// Replaces tells whether an offer of v is taken in the place of one of old, as the protocol's nodes have it.
func Replaces(v, old *big.Int) bool { return replaces(v, old) }
