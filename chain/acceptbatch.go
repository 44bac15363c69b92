package chain

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/store"
)

// accept stores operations with their nonces and signatures, and tells the clients. Those that the store does not take are removed from items; unused says that
// there were some.
func (k *keySubmitter) accept(ctx context.Context, plan *nonces, fresh []*prepared, items map[*prepared]*inflight) (unused bool, err error) {
	if len(fresh) == 0 {
		return false, nil
	}
	accepted := make([]store.Accepted, len(fresh))
	for i, p := range fresh {
		accepted[i] = store.Accepted{New: p.fresh.new, Signed: p.signed}
	}
	stored, err := k.db.AcceptSigned(ctx, k.lease, k.cfg.Chain, k.key, plan.next, accepted)
	for i, p := range fresh {
		a := p.fresh
		p.fresh = nil // settled here
		switch {
		case errors.Is(err, store.ErrFenced) || store.Refused(err): // nothing was stored; the outbox tells which of them is the cause
			delete(items, p)
			unused = true
			a.settle(acceptElsewhere)
		case err != nil:
			a.err = err
			a.settle(acceptFailed)
		case stored[i] == nil:
			delete(items, p)
			unused = true
			a.settle(acceptRepeated)
		default:
			a.operation = *stored[i]
			a.settle(acceptStored)
		}
	}
	if err != nil && !store.Refused(err) {
		return unused, fmt.Errorf("accept operations: %w", err)
	}
	return unused, nil
}

// closeUp gives the nonces of those that the store has not taken, because their idempotency keys were used before, to the last of those that it has. With nobody
// waiting for these nonces, each would cost a transaction that does nothing but fill it. Nothing of the batch has been sent yet.
func (k *keySubmitter) closeUp(ctx context.Context, fresh []*prepared, items map[*prepared]*inflight) error {
	var open []uint64
	var last []*prepared
	for _, p := range fresh { // in the order of their nonces
		if items[p] == nil {
			open = append(open, p.nonce)
		} else {
			last = append(last, p)
		}
	}
	slices.Reverse(last)
	var signed []store.Signed
	for i := 0; i < min(len(open), len(last)) && open[i] < last[i].nonce; i++ {
		t := items[last[i]]
		s, err := k.sign(ctx, last[i].call, open[i], t.fees, store.AttemptSubmit)
		if ctx.Err() != nil {
			return context.Cause(ctx) //nolint:wrapcheck // our own end
		}
		if err != nil { // it was signed a moment ago; let the nonce be filled
			k.log.WarnContext(ctx, "an operation cannot be given a lower nonce", "operation", t.operation, "nonce", open[i], "error", err)
			break
		}
		s.Attempt.Asked = t.explicit
		signed = append(signed, s)
	}
	if len(signed) == 0 {
		return nil
	}
	if err := k.db.LowerNonces(ctx, k.lease, signed); err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	for i, s := range signed {
		t := items[last[i]]
		t.nonce, t.hash, t.hashes = s.Nonce, s.Hash, []common.Hash{s.Hash}
		last[i].signed = s
	}
	return nil
}
