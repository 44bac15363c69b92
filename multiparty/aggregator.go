package multiparty

import (
	"context"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/store"
)

const (
	pageOfPins = 50
	// What is read of one batch's chunks at most: a lying member may have written any number.
	maxChunkLogs  = 1000
	maxChunkBytes = 2 * maxPayload
)

// aggregate applies the next logs of the pin contract, in chain order.
func (n *Network) aggregate(ctx context.Context, lease store.Lease) (more bool, err error) {
	if err := n.lookForDeferred(ctx); err != nil {
		return false, err
	}
	pins, err := n.db.WaitingPins(ctx, n.cfg.Chain, n.cfg.Namespace, topicOf("BatchChunk").Bytes(), pageOfPins)
	if err != nil {
		return false, err //nolint:wrapcheck // it says what it did
	}
	done := true // the position in the database stands at the last log looked at
	for i := range pins {
		if done, err = n.apply(ctx, lease, &pins[i]); err != nil {
			return false, fmt.Errorf("apply the log %d of block %d: %w", pins[i].LogIndex, pins[i].BlockNumber, err)
		}
	}
	if !done {
		if err := n.db.MovePins(ctx, lease, n.cfg.Namespace, pins[len(pins)-1].Position); err != nil {
			return false, err //nolint:wrapcheck // as above
		}
	}
	return len(pins) == pageOfPins, nil
}

// apply applies one log. It is false when the log does not concern this namespace.
func (n *Network) apply(ctx context.Context, lease store.Lease, pin *store.Pin) (bool, error) {
	if len(pin.Topics) == 0 {
		return false, nil
	}
	if common.BytesToHash(pin.Topics[0]) != topicOf("BatchPin") {
		change, err := readMemberChange(pin)
		if err != nil {
			n.log.ErrorContext(ctx, "a log about members is passed over", "block", pin.BlockNumber, "log", pin.LogIndex, "error", err)
		}
		if err != nil || change == nil {
			return false, nil
		}
		contexts := memberContexts(change)
		if wait, err := n.dependent(ctx, pin, contexts); err != nil {
			return false, err
		} else if wait {
			return true, n.postpone(ctx, lease, pin, contexts, "it waits for a batch before it", 0)
		}
		return true, n.db.ApplyMemberChange(ctx, lease, n.cfg.Namespace, pin, *change) //nolint:wrapcheck // it says what it did
	}
	log, err := readBatchPin(pin)
	if log.network != n.id {
		return false, nil
	}
	var batch *store.PinnedBatch
	var contexts [][]byte
	wait := false
	if err == nil {
		batch, contexts, wait, err = n.obtain(ctx, pin, log)
	}
	switch {
	case wait:
		return true, n.postpone(ctx, lease, pin, contexts, "it waits for a batch before it", 0)
	case err == nil:
	case errors.Is(err, errMissing) && ctx.Err() == nil:
		n.log.WarnContext(ctx, "the payload of a batch cannot be had; what depends on it waits", "batch", log.id, "author", store.Account(log.author.Bytes()),
			"location", printable(log.location, 200), "try", pin.Tries+1, "error", err)
		return true, n.postpone(ctx, lease, pin, contexts, printable(err.Error(), 1000), backOff(pin.Tries))
	case errors.Is(err, errBatch), errors.Is(err, errLog):
		return true, n.refuse(ctx, lease, pin, log, printable(err.Error(), 1000))
	default:
		return false, err // the database or the node does not answer: all wait
	}
	refused, err := n.db.ApplyBatch(ctx, lease, pin, batch)
	if err != nil {
		return false, err //nolint:wrapcheck // it says what it did
	}
	if refused != "" {
		n.report(ctx, pin, log, refused)
		return true, nil
	}
	n.metrics.batches.WithLabelValues("applied").Inc()
	for i := range batch.Messages {
		n.metrics.messages.WithLabelValues(batch.Messages[i].Message.State).Inc()
	}
	n.log.DebugContext(ctx, "batch applied", "batch", log.id, "messages", len(batch.Messages), "block", pin.BlockNumber)
	return true, nil
}

// obtain gets the batch, or tells that it has to wait for another. An errBatch means that the batch is bad for good, an errMissing that it may come later.
func (n *Network) obtain(ctx context.Context, pin *store.Pin, log *batchPin) (batch *store.PinnedBatch, contexts [][]byte, wait bool, err error) {
	author := accountContext(log.author)
	if !sharedstorage.Elsewhere(log.location) {
		if batch, err = n.fetch(ctx, pin, log); err != nil {
			return nil, nil, false, err
		}
		contexts = append(batchContexts(batch), author)
		wait, err = n.dependent(ctx, pin, contexts)
		return batch, contexts, wait, err
	}
	declared, err := readContexts(log.payload)
	if err != nil {
		return nil, nil, false, err
	}
	contexts = append(declared, author) //nolint:gocritic // declared has no room to spare that anybody uses
	if wait, err = n.dependent(ctx, pin, contexts); wait || err != nil {
		return nil, contexts, wait, err
	}
	limit := firstFetch
	if pin.Deferred {
		limit = laterFetch
	}
	fetching, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if batch, err = n.fetch(fetching, pin, log); err != nil {
		return nil, contexts, false, err
	}
	if !sameContexts(declared, batchContexts(batch)) {
		return nil, contexts, false, fmt.Errorf("%w: it has other topics or messages than its pin says", errBatch)
	}
	return batch, contexts, false, nil
}

// fetch gets the batch's payload and verifies it.
func (n *Network) fetch(ctx context.Context, pin *store.Pin, log *batchPin) (*store.PinnedBatch, error) {
	placement := sharedstorage.Placement{Location: log.location, Payload: log.payload}
	elsewhere := sharedstorage.Elsewhere(log.location)
	if elsewhere {
		placement.Payload = nil // contexts
	} else if log.location != "" {
		topics := [][]byte{topicOf("BatchChunk").Bytes(), pin.Topics[1], pin.Topics[2]}
		logs, err := n.db.PinChunks(ctx, pin, topics, log.id, maxChunkLogs, maxChunkBytes)
		if errors.Is(err, store.ErrTooManyChunks) {
			return nil, fmt.Errorf("%w: %w", errBatch, err)
		}
		if err != nil {
			return nil, err //nolint:wrapcheck // it says what it did
		}
		if placement.Chunks, err = readChunks(logs); err != nil {
			return nil, err
		}
	}
	packed, err := n.storage.Get(ctx, log.id, placement)
	if errors.Is(err, sharedstorage.ErrUnusable) {
		return nil, fmt.Errorf("%w: %w", errBatch, err)
	}
	if err != nil && elsewhere {
		return nil, fmt.Errorf("%w: batch %s: %w", errMissing, log.id, err)
	}
	if err != nil {
		return nil, fmt.Errorf("fetch the payload of batch %s: %w", log.id, err)
	}
	text, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	return verifyPayload(text, log, n.cfg.Namespace, n.cfg.NetworkName)
}

// refuse passes a bad batch over.
func (n *Network) refuse(ctx context.Context, lease store.Lease, pin *store.Pin, log *batchPin, reason string) error {
	n.report(ctx, pin, log, reason)
	batch := &store.Batch{ID: log.id, Author: store.Account(log.author.Bytes()), Hash: log.hash[:]}
	return n.db.RefusePin(ctx, lease, n.cfg.Namespace, pin, batch, reason) //nolint:wrapcheck // it says what it did
}

func (n *Network) report(ctx context.Context, pin *store.Pin, log *batchPin, reason string) {
	n.metrics.batches.WithLabelValues("refused").Inc()
	n.log.WarnContext(ctx, "a batch is refused", "batch", log.id, "author", store.Account(log.author.Bytes()), "block", pin.BlockNumber,
		"transaction", common.BytesToHash(pin.TxHash), "reason", reason)
}
