package chain

import (
	"context"
	"fmt"
	"math/big"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// fillerGas is what a transfer of nothing costs; where it costs more, the chain is asked.
const fillerGas = 21_000

// prepareLoop gives nonces to what waits in the outbox, plans what is to be sent again, and answers what clients ask for. The next batch gathers while this
// one is under way. A signer that cannot be reached holds up only what it has to sign.
func (k *keySubmitter) prepareLoop(ctx context.Context) error {
	arrived := k.db.Subscribe(store.TopicOutbox(k.cfg.Chain))
	defer arrived.Close()
	changed := k.db.Subscribe(store.TopicChanges(k.cfg.Chain))
	defer changed.Close()
	var looked, polled time.Time
	asked, pause := true, 100*time.Millisecond
	for {
		if now := time.Now(); now.Sub(polled) >= k.cfg.PollInterval {
			polled, asked, k.backlog = now, true, true
		}
		more, err := k.prepare(ctx, &looked, asked)
		switch {
		case isUnreachable(err):
			k.log.WarnContext(ctx, "sign transactions", "error", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(pause):
			}
			pause = min(2*pause, 5*time.Second)
			continue
		case err != nil:
			return err
		}
		asked, pause = false, 100*time.Millisecond
		if more {
			continue
		}
		wait := k.cfg.PollInterval
		if k.state.planned() {
			wait = min(wait, 25*time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-k.accepting.wake:
			continue // nothing else has changed
		case <-arrived.C:
		case <-k.state.kick:
		case <-changed.C:
			asked = true
		case <-time.After(wait):
		}
		k.backlog = true
	}
}

// prepare does each of these once. more says that there may be more to do at once.
func (k *keySubmitter) prepare(ctx context.Context, looked *time.Time, asked bool) (more bool, err error) {
	var again, changes bool
	if asked {
		if changes, err = k.changes(ctx); err != nil {
			return false, err
		}
	}
	if now := time.Now(); now.Sub(*looked) >= 20*time.Millisecond {
		*looked = now
		if again, err = k.resend(ctx, now); err != nil {
			return false, err
		}
	}
	if k.orphan {
		return again || changes, nil
	}
	more, err = k.assign(ctx)
	return more || again || changes, err
}

// assign gives nonces to one batch and hands it to the sender: to what waits in the outbox, and, when that is not all there is room for, to what waits for its
// acceptance. more says that there may be more waiting.
func (k *keySubmitter) assign(ctx context.Context) (more bool, err error) {
	limit := min(k.cfg.BatchSize, k.cfg.MaxInFlight-k.state.count())
	var calls []store.OutboxCall
	if limit > 0 && k.backlog {
		if calls, err = k.db.UnassignedOutbox(ctx, k.cfg.Chain, k.key, limit); err != nil {
			return false, fmt.Errorf("give nonces: %w", err)
		}
		k.backlog = len(calls) == limit
	}
	full := limit <= 0 || k.backlog
	k.state.saturated(full)
	var fresh []*acceptance
	if full {
		k.accepting.take(0)
	} else {
		fresh = k.accepting.take(limit - len(calls))
	}
	settled := false
	defer func() {
		if !settled {
			for _, a := range fresh {
				a.settle(acceptElsewhere)
			}
		}
	}()
	plan := k.state.plan()
	var rejected []store.Outcome
	batch := make([]*prepared, 0, len(calls)+len(fresh))
	for i := range calls {
		call := &calls[i]
		if call.Options.Nonce == nil {
			batch = append(batch, &prepared{call: call})
			continue
		}
		nonce, text := *call.Options.Nonce, ""
		switch {
		case nonce > plan.next+uint64(k.cfg.MaxInFlight): // it would wait for ever, or nearly so
			text = fmt.Sprintf("The nonce %d that was asked for is too far ahead of the key's next one, %d.", nonce, plan.next)
		case !plan.giveExactly(nonce):
			text = fmt.Sprintf("The nonce %d that was asked for is used up or in use by another transaction of the same key.", nonce)
		default:
			batch = append(batch, &prepared{call: call, nonce: nonce, exact: true})
			continue
		}
		rejected = append(rejected, store.Outcome{Operation: call.Operation, Status: store.OpFailed, Error: text})
	}
	for _, a := range fresh {
		batch = append(batch, &prepared{call: a.new.Call(), fresh: a})
	}
	for _, p := range batch {
		if !p.exact {
			p.nonce = plan.give()
		}
	}
	if !full || limit <= 0 { // nobody waits for these nonces, or those who do have no room before what waits for these nonces is mined
		fillers, err := k.fillers(ctx, plan.left(k.cfg.BatchSize))
		if err != nil {
			return false, err
		}
		batch = append(batch, fillers...)
	}
	if len(batch) == 0 && len(rejected) == 0 {
		return false, nil
	}
	if err := k.finish(ctx, rejected); err != nil {
		return false, err
	}
	settled = true
	if err := k.commit(ctx, plan, batch); err != nil {
		return false, err
	}
	return k.backlog && limit > 0, nil
}

// prepared is a call with the nonce that it shall get.
type prepared struct {
	call   *store.OutboxCall
	fresh  *acceptance // the call is not stored yet: a client waits for that
	nonce  uint64
	exact  bool
	filler bool
	signed store.Signed
}

// fillers are transfers of nothing to oneself that use up these nonces.
func (k *keySubmitter) fillers(ctx context.Context, holes []uint64) ([]*prepared, error) {
	if len(holes) == 0 {
		return nil, nil
	}
	gas := k.transferGas(ctx)
	k.log.WarnContext(ctx, "filling nonces that would hold up later transactions", "first", holes[0], "count", len(holes))
	out := make([]*prepared, len(holes))
	for i, nonce := range holes {
		out[i] = &prepared{nonce: nonce, filler: true, call: &store.OutboxCall{
			Operation: store.NewID(), Filler: true, To: &k.key, Value: new(big.Int), Gas: gas,
		}}
	}
	return out, nil
}

// commit signs the batch, stores it with its nonces, and hands it to the sender. Every client that waits for its acceptance is told how it went.
func (k *keySubmitter) commit(ctx context.Context, plan *nonces, batch []*prepared) (err error) {
	defer func() {
		for _, p := range batch {
			if p.fresh != nil {
				p.fresh.settle(acceptElsewhere)
			}
		}
	}()
	if len(batch) == 0 {
		return nil
	}
	market, err := k.market.suggest(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	offers, errs := make([]fees, len(batch)), make([]error, len(batch))
	each(len(batch), signWidth, func(i int) {
		p := batch[i]
		reason := store.AttemptSubmit
		if len(p.call.Hashes) > 0 {
			reason = store.AttemptNonce
		}
		offers[i] = market.chosen(p.call.Options)
		p.signed, errs[i] = k.sign(ctx, p.call, p.nonce, offers[i], reason)
	})
	var signed []store.Signed
	var fresh []*prepared
	items := make(map[*prepared]*inflight, len(batch))
	var unsignable []store.Outcome
	unused := false
	for i, p := range batch {
		s, err := &p.signed, errs[i]
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx) //nolint:wrapcheck // our own end
		case err != nil && (p.filler || isUnreachable(err)):
			return err
		case err != nil && p.fresh != nil: // once it is in the outbox, the reason is told
			unused = true
			continue
		case err != nil:
			k.log.ErrorContext(ctx, "sign a transaction", "operation", p.call.Operation, "error", err)
			unsignable, unused = append(unsignable, store.Outcome{
				Operation: p.call.Operation, Status: store.OpFailed, Error: "The transaction cannot be signed.",
			}), true
			continue
		}
		s.Filler, s.Attempt.Asked = p.filler, p.call.Options.Fees()
		items[p] = &inflight{
			operation: p.call.Operation, filler: p.filler, nonce: p.nonce, hashes: append(p.call.Hashes, s.Hash),
			version: version{hash: s.Hash, fees: offers[i], explicit: s.Attempt.Asked}, assigned: now, offered: now, bumped: now, cancelAt: never,
		}
		if p.fresh != nil {
			fresh = append(fresh, p)
		} else {
			signed = append(signed, *s)
		}
	}
	if err := k.finish(ctx, unsignable); err != nil {
		return err
	}
	if len(signed) > 0 {
		if err := k.db.AssignOutbox(ctx, k.lease, k.cfg.Chain, k.key, plan.next, signed); err != nil {
			return fmt.Errorf("give nonces: %w", err)
		}
	}
	refused, err := k.accept(ctx, plan, fresh, items)
	if err != nil {
		return err
	}
	if refused {
		if err := k.closeUp(ctx, fresh, items); err != nil {
			return err
		}
	}
	flying := make([]*inflight, 0, len(items))
	out := make([]*outgoing, 0, len(items))
	for _, p := range batch {
		if t := items[p]; t != nil {
			flying, out = append(flying, t), append(out, &outgoing{inflight: t, raw: p.signed.Raw, sent: p.signed.Hash})
		}
	}
	slices.SortFunc(out, func(a, b *outgoing) int { return byNonce(a.inflight, b.inflight) })
	k.state.given(plan, flying, unused || refused)
	k.sending.put(out)
	return nil
}

// signWidth is how many transactions are signed at once: a remote signer takes its time, and there is more than one processor.
const signWidth = 8

func (k *keySubmitter) sign(ctx context.Context, call *store.OutboxCall, nonce uint64, offer fees, reason string) (store.Signed, error) {
	chainID := k.client.ChainID()
	tx, err := k.signer.Sign(ctx, k.key, offer.transaction(chainID, nonce, call.To, call.Value, call.Gas, call.Data), chainID)
	if err != nil {
		return store.Signed{}, fmt.Errorf("sign operation %s: %w", call.Operation, err)
	}
	raw, err := tx.MarshalBinary()
	if err != nil {
		return store.Signed{}, fmt.Errorf("encode operation %s: %w", call.Operation, err)
	}
	return store.Signed{Operation: call.Operation, Nonce: nonce, Gas: call.Gas, Raw: raw, Hash: tx.Hash(), Attempt: store.Attempt{
		Hash: tx.Hash(), Nonce: nonce, GasPrice: offer.price, MaxFeePerGas: offer.max, MaxPriorityFeePerGas: offer.tip, Created: time.Now(), Reason: reason,
	}}, nil
}

// resend sends again what is due: the same bytes, or the same call with a higher fee.
func (k *keySubmitter) resend(ctx context.Context, now time.Time) (more bool, err error) {
	if err := k.answerRejections(ctx); err != nil {
		return false, err
	}
	again, stuck := k.state.due(now, k.cfg.RebroadcastAfter, k.cfg.BumpAfter, k.cfg.BatchSize)
	if len(again)+len(stuck) == 0 {
		return false, nil
	}
	if len(stuck) > 0 && !k.orphan {
		if err := k.bump(ctx, stuck); err != nil {
			return false, err
		}
	}
	// Bumped or not, what is stored now is what is sent.
	items := append(again, stuck...)
	wanted := make([]uint64, len(items))
	for i, t := range items {
		wanted[i] = t.nonce
	}
	rows, err := k.db.SignedOutboxOf(ctx, k.cfg.Chain, k.key, wanted)
	if err != nil {
		return false, fmt.Errorf("send again: %w", err)
	}
	out := make([]*outgoing, 0, len(rows))
	for i := range rows {
		if t := k.state.at(rows[i].Nonce); t != nil && t.operation == rows[i].Operation {
			out = append(out, &outgoing{inflight: t, raw: rows[i].Raw, sent: rows[i].Hash})
		}
	}
	k.sending.put(out)
	return len(items) == k.cfg.BatchSize, nil
}

// bump signs transactions anew with a higher fee, as far as the limit allows, and stores them.
func (k *keySubmitter) bump(ctx context.Context, stuck []*inflight) error {
	market, err := k.market.suggest(ctx)
	if err != nil {
		return err
	}
	head, err := k.client.Head(ctx)
	if err != nil {
		return fmt.Errorf("raise fees: %w", err)
	}
	ids := make([]uuid.UUID, len(stuck))
	for i, t := range stuck {
		ids[i] = t.operation
	}
	calls, err := k.db.OutboxCalls(ctx, ids)
	if err != nil {
		return fmt.Errorf("raise fees: %w", err)
	}
	byID := make(map[uuid.UUID]*store.OutboxCall, len(calls))
	for i := range calls {
		byID[calls[i].Operation] = &calls[i]
	}
	var signed []store.Replacement
	var raised []*inflight
	var offers []fees
	for _, t := range stuck {
		call := byID[t.operation]
		if call == nil {
			continue
		}
		old := k.state.feesOf(t)
		passed := k.state.passedOver(t, head.Number)
		if k.state.isPossible(t) && !market.outbid(old) && !passed { // its fee is not what keeps it, as far as one can tell
			k.state.notRaised(t, time.Now())
			continue
		}
		offer, ok := market.bumped(old, k.cfg.MaxFeePerGas)
		if !ok {
			k.state.notRaised(t, time.Now())
			k.log.WarnContext(ctx, "a transaction stays unmined, and the fee limit leaves no room to raise its fee", "operation", t.operation, "nonce", t.nonce)
			continue
		}
		s, err := k.sign(ctx, k.present(ctx, call, false), t.nonce, offer, store.AttemptBump)
		if err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx) //nolint:wrapcheck // our own end
			}
			k.state.notRaised(t, time.Now()) // it goes out again as it is
			k.log.WarnContext(ctx, "the fee of a transaction cannot be raised", "operation", t.operation, "nonce", t.nonce, "error", err)
			continue
		}
		signed, raised, offers = append(signed, store.Replacement{Signed: s}), append(raised, t), append(offers, offer)
	}
	if len(signed) == 0 {
		return nil
	}
	if err := k.db.ReplaceSigned(ctx, k.lease, signed); err != nil {
		return fmt.Errorf("raise fees: %w", err)
	}
	now := time.Now()
	for i, t := range raised {
		k.state.raised(t, signed[i].Hash, offers[i], now)
		k.log.InfoContext(ctx, "raised the fee of a transaction", "operation", t.operation, "nonce", t.nonce)
	}
	k.metrics.bumped.WithLabelValues(k.cfg.Chain, k.key.Hex()).Add(float64(len(raised)))
	return nil
}
