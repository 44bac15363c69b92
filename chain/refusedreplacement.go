package chain

import (
	"context"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// What happens when a node does not take what was signed in the place of another transaction, because a client has asked for it or because its fee was raised.
// That refusal says nothing of the other transaction, which the pool may hold and which may be mined: the operation never ends by it. Either the replacement offers
// more, or the other transaction is gone back to, so that it is what is sent again when a node has lost it, and what later fees are reckoned from.
//
//	refused for                          on our own account          fees asked for       cancels the operation
//	what the pool holds                  more, within the limit      back                 more, within the limit; then again later
//	its fee                              more, when the market does  back                 the same
//	funds, or what we do not know        again for a minute; then back                    again for a minute; then later
//	itself: never taken                  back                        back                 again later
//
// "On our own account" is a speed-up without fees. What was raised without anybody asking waits for the next time when the pool holds something better.

// maxOutbids is how often a replacement is raised because the pool asks for more. With an eighth each time, that doubles it.
const maxOutbids = 6

// rejection is a transaction that the node does not take in the place of another one.
type rejection struct {
	hash common.Hash
	why  string
	more bool // with a higher fee it would be taken
}

// judgeReplacement draws the consequences of a refusal of what was signed in the place of another transaction. It returns false when there are none of that kind.
func (k *keySubmitter) judgeReplacement(out *outgoing, verdict sendVerdict, err error, now time.Time) bool {
	t := out.inflight
	r := k.state.replacing(t)
	if !r.some || verdict == sendAccepted || verdict == sendNonceTooLow || verdict == sendRetry {
		return false
	}
	if r.hash != out.sent { // yet another one is on its way already
		return true
	}
	switch verdict {
	case sendNonceTaken:
		if r.taken || !r.wished {
			return false
		}
	case sendFeeTooLow:
		if r.taken || !r.explicit {
			return false
		}
	case sendNoFunds, sendUnknown:
		if r.taken {
			return false
		}
		if k.state.refused(t, now, false) < maxUnknownRefusals {
			return true
		}
	}
	k.state.reject(t, &rejection{hash: out.sent, why: err.Error(), more: verdict == sendNonceTaken && !r.explicit}, now)
	return true
}

// answerRejections raises what the node has refused, or goes back to what was there before.
func (k *keySubmitter) answerRejections(ctx context.Context) error {
	items := k.state.rejections()
	if len(items) == 0 {
		return nil
	}
	ids := make([]uuid.UUID, len(items))
	for i, t := range items {
		ids[i] = t.operation
	}
	calls, err := k.db.OutboxCalls(ctx, ids)
	if err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	for _, t := range items {
		i := slices.IndexFunc(calls, func(c store.OutboxCall) bool { return c.Operation == t.operation })
		if i < 0 || calls[i].Nonce == nil || *calls[i].Nonce != t.nonce { // it has ended meanwhile, or has lost its nonce
			k.state.rest(t)
			continue
		}
		if err := k.answerRejection(ctx, t, &calls[i]); err != nil {
			return err
		}
	}
	return nil
}

func (k *keySubmitter) answerRejection(ctx context.Context, t *inflight, call *store.OutboxCall) error {
	refused := k.state.rejectionOf(t)
	note := store.RefusedTx{Operation: t.operation, Nonce: t.nonce, Hash: refused.hash, Why: refused.why}
	if refused.more && !k.orphan {
		if raised, err := k.outbid(ctx, t, call, note); raised || err != nil {
			return err
		}
	}
	back, found := k.state.goingBack(t)
	if !found || k.orphan {
		return k.keep(ctx, t, note)
	}
	s, err := k.sign(ctx, call, t.nonce, back.fees, "")
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx) //nolint:wrapcheck // our own end
	case isUnreachable(err):
		return err
	case err != nil || s.Hash != back.hash: // not every signer makes the same signature twice
		return k.keep(ctx, t, note)
	}
	note.Back = &store.EarlierTx{Raw: s.Raw, Hash: s.Hash, Options: *withFees(call.Options, store.TxOptions{})}
	if back.explicit {
		note.Back.Options = *withFees(call.Options, store.TxOptions{
			GasPrice: back.fees.price, MaxFeePerGas: back.fees.max, MaxPriorityFeePerGas: back.fees.tip,
		})
	}
	if err := k.db.NoteRefusal(ctx, k.lease, note); err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	k.state.wentBack(t, back.hash, time.Now(), k.cfg.BumpAfter)
	k.log.WarnContext(ctx, "a node does not take a transaction in the place of another one: that one is gone back to", "operation", t.operation, "nonce", t.nonce,
		"refused", refused.hash, "back_to", back.hash, "reason", refused.why)
	k.sending.put([]*outgoing{{inflight: t, raw: s.Raw, sent: s.Hash}})
	return nil
}

// keep leaves the refused transaction in its place: it is sent again when it is due.
func (k *keySubmitter) keep(ctx context.Context, t *inflight, note store.RefusedTx) error {
	if k.state.rest(t) {
		k.log.WarnContext(ctx, "a node does not take a transaction in the place of another one: it is sent again later", "operation", t.operation, "nonce", t.nonce,
			"refused", note.Hash, "reason", note.Why)
		return k.db.NoteRefusal(ctx, k.lease, note) //nolint:wrapcheck // it says what was being done
	}
	return nil
}

// outbid signs and sends the refused transaction with a higher fee. It returns false when there is no room for that.
func (k *keySubmitter) outbid(ctx context.Context, t *inflight, call *store.OutboxCall, note store.RefusedTx) (bool, error) {
	if k.state.outbidsOf(t) >= maxOutbids {
		return false, nil
	}
	market, err := k.market.suggest(ctx)
	if err != nil {
		return false, err
	}
	offer, ok := market.bumped(k.state.feesOf(t), k.cfg.MaxFeePerGas)
	if !ok {
		return false, nil
	}
	s, err := k.sign(ctx, k.present(ctx, call, false), t.nonce, offer, store.AttemptBump)
	switch {
	case ctx.Err() != nil:
		return false, context.Cause(ctx) //nolint:wrapcheck // our own end
	case isUnreachable(err):
		return false, err
	case err != nil:
		k.log.WarnContext(ctx, "the fee of a transaction cannot be raised", "operation", t.operation, "nonce", t.nonce, "error", err)
		return false, nil
	}
	if err := k.db.NoteRefusal(ctx, k.lease, note); err != nil {
		return false, err //nolint:wrapcheck // it says what was being done
	}
	if err := k.db.ReplaceSigned(ctx, k.lease, []store.Replacement{{Signed: s}}); err != nil {
		return false, err //nolint:wrapcheck // it says what was being done
	}
	k.state.outbid(t, s.Hash, offer, time.Now())
	k.metrics.bumped.WithLabelValues(k.cfg.Chain, k.key.Hex()).Inc()
	k.sending.put([]*outgoing{{inflight: t, raw: s.Raw, sent: s.Hash}})
	return true, nil
}
