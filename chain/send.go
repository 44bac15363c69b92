package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

const (
	// maxUnknownRefusals is how often a node may refuse a transaction for a reason that we do not know before its operation fails. With the growing
	// pauses in between that takes about a minute.
	maxUnknownRefusals = 12
	// maxFundsRefusals is the same for an account without funds, once a node has taken the transaction at some time.
	maxFundsRefusals = 8
	// maxInvalidRefusals is how often a node may call a transaction invalid that was replaced and gone back to.
	maxInvalidRefusals = 4
)

// sendLoop carries what is to be sent to the node, message after message, in the order of the nonces.
func (k *keySubmitter) sendLoop(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-k.sending.wake:
		}
		for batch := k.sending.take(k.cfg.MessageSize); len(batch) > 0; batch = k.sending.take(k.cfg.MessageSize) {
			batch = slices.DeleteFunc(batch, func(out *outgoing) bool { return !k.state.current(out.inflight) }) // it has lost its nonce meanwhile
			if len(batch) == 0 {
				continue
			}
			if err := k.send(ctx, batch); err != nil {
				return err
			}
		}
	}
}

// send sends one message. It tries until the node answers: what is behind it could not be mined before anyway.
func (k *keySubmitter) send(ctx context.Context, batch []*outgoing) error {
	elems := make([]rpc.BatchElem, len(batch))
	pause := 50 * time.Millisecond
	for {
		for i, t := range batch {
			elems[i] = rpc.BatchElem{Method: "eth_sendRawTransaction", Args: []any{hexutil.Bytes(t.raw)}, Result: new(jsonMessage)}
		}
		err := k.client.BatchCall(ctx, elems)
		if err == nil {
			break
		}
		if definite(err) || pactwire.KindOf(err) == pactwire.KindBadUpstream { // the message as a whole was refused, too large perhaps: one by one it may go
			for i := range elems {
				elems[i].Error = k.client.CallContext(ctx, elems[i].Result, elems[i].Method, elems[i].Args...)
			}
			break
		}
		if ctx.Err() != nil {
			return nil
		}
		for _, t := range batch {
			k.state.unclear(t.inflight)
		}
		k.log.WarnContext(ctx, "send transactions", "first_nonce", batch[0].nonce, "count", len(batch), "error", err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
	return k.judge(ctx, batch, elems)
}

// judge draws the consequences of the node's answers.
func (k *keySubmitter) judge(ctx context.Context, batch []*outgoing, elems []rpc.BatchElem) error {
	now := time.Now()
	var failed []refusal
	var back []*inflight // need another nonce
	var held *inflight   // the chain's next one, which the node has and has not mined
	taken := 0
	for i, out := range batch {
		t, err := out.inflight, elems[i].Error
		if err != nil && !definite(err) {
			k.state.unclear(t)
			k.state.refused(t, now, false)
			continue
		}
		possible := k.state.isPossible(t)
		verdict := classifySend(err)
		if verdict != sendAccepted {
			k.log.DebugContext(ctx, "a node did not take a transaction", "operation", t.operation, "nonce", t.nonce, "error", err)
		}
		if t.filler && !possible && (verdict == sendNoFunds || verdict == sendInvalid || verdict == sendUnknown) && k.state.needless(t) {
			back = append(back, t)
			continue
		}
		if k.judgeReplacement(out, verdict, err, now) {
			continue
		}
		switch verdict {
		case sendAccepted:
			if err != nil && !k.orphan && k.state.isNext(t, out.sent, now, k.cfg.RebroadcastAfter) { // the node has had it all the time
				held = t
			}
			k.state.sent(t, out.sent, now)
			taken++
		case sendNonceTooLow:
			if !possible { // no node had it, so that a foreign transaction has used the nonce up
				back = append(back, t)
			}
			signal(k.state.verify)
		case sendNonceTaken:
			if possible { // by ours, most likely: it stays. Should it be a foreign one, confirm finds out once it is mined
				k.state.sent(t, common.Hash{}, now)
				continue
			}
			k.state.foreign(t.nonce)
			back = append(back, t)
		case sendFeeTooLow:
			if k.state.isExplicit(t) && !possible {
				failed = append(failed, refusal{t, "The chain's node refuses the fee that was asked for: " + err.Error()})
				continue
			}
			k.state.refused(t, now, !k.state.isExplicit(t))
		case sendNoFunds:
			n := k.state.refused(t, now, false)
			alone := !possible && aloneTooDear(err)
			if !t.filler && (alone || k.state.unfunded(t) && (!possible || n >= maxFundsRefusals)) {
				failed = append(failed, refusal{t, "The signing account cannot pay for the transaction: " + err.Error()})
			}
		case sendInvalid:
			n := k.state.refused(t, now, false)
			// Possible without that anybody knows of a node that took it: an answer was lost, or another process sent it. What is invalid was not taken then either.
			if !t.filler && (!possible || len(k.state.hashesOf(t)) == 1 || n >= maxInvalidRefusals && !k.state.isTaken(t)) {
				failed = append(failed, refusal{t, "The chain's node refuses the transaction: " + err.Error()})
			}
		case sendRetry:
			k.state.refused(t, now, false)
		case sendUnknown:
			if n := k.state.refused(t, now, false); n >= maxUnknownRefusals && !possible && !t.filler {
				failed = append(failed, refusal{t, "The chain's node refuses the transaction: " + err.Error()})
			}
		}
	}
	k.metrics.sent.WithLabelValues(k.cfg.Chain, k.key.Hex()).Add(float64(taken))
	if held != nil {
		k.lookFor(ctx, held)
	}
	if err := k.fail(ctx, failed); err != nil {
		return err
	}
	return k.giveBack(ctx, back)
}

// refusal is a transaction that no node will take.
type refusal struct {
	*inflight
	reason string
}

// fail ends operations that cannot be sent. Their nonces are free again.
func (k *keySubmitter) fail(ctx context.Context, refusals []refusal) error {
	if len(refusals) == 0 {
		return nil
	}
	k.moving.Lock()
	defer k.moving.Unlock()
	var items []*inflight
	var outcomes []store.Outcome
	for _, r := range refusals {
		if k.state.current(r.inflight) {
			items = append(items, r.inflight)
			outcomes = append(outcomes, store.Outcome{Operation: r.operation, Status: store.OpFailed, Error: r.reason})
		}
	}
	if err := k.finish(ctx, outcomes); err != nil {
		return err
	}
	k.state.drop(items...)
	return nil
}

// giveBack makes operations wait for another nonce.
func (k *keySubmitter) giveBack(ctx context.Context, items []*inflight) error {
	if len(items) == 0 {
		return nil
	}
	mined, _, err := k.chainNonces(ctx)
	if err != nil {
		return err
	}
	// Both the sender and the confirmer come here. What one has given back already may have its new nonce by now.
	k.moving.Lock()
	defer k.moving.Unlock()
	ids := make([]uuid.UUID, 0, len(items))
	cancelled := false
	for _, t := range items {
		if k.state.current(t) {
			ids = append(ids, t.operation)
			cancelled = cancelled || k.state.isCancelled(t)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if err := k.db.UnassignOutbox(ctx, k.lease, ids); err != nil {
		return fmt.Errorf("take nonces back: %w", err)
	}
	k.log.WarnContext(ctx, "nonces are given back: used up by another program, or no longer needed", "first", items[0].nonce, "count", len(ids))
	k.state.chainAtLeast(mined)
	k.state.drop(items...)
	if cancelled { // they end instead of getting another nonce
		k.db.Notify(store.TopicChanges(k.cfg.Chain))
	}
	signal(k.state.kick)
	return nil
}

// finish stores the end of operations, and counts it.
func (k *keySubmitter) finish(ctx context.Context, outcomes []store.Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	if err := k.db.FinishOperations(ctx, k.lease, outcomes); err != nil {
		return err //nolint:wrapcheck // it says what was being done
	}
	for i := range outcomes {
		k.metrics.finished.WithLabelValues(k.cfg.Chain, k.key.Hex(), outcomes[i].Status).Inc()
	}
	return nil
}
