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
		return true, n.db.ApplyMemberChange(ctx, lease, n.cfg.Namespace, pin, *change) //nolint:wrapcheck // it says what it did
	}
	log, err := readBatchPin(pin)
	if log.network != n.id {
		return false, nil
	}
	var batch *store.PinnedBatch
	if err == nil {
		batch, err = n.fetch(ctx, pin, log)
	}
	switch {
	case err == nil:
	case errors.Is(err, errBatch), errors.Is(err, errLog):
		return true, n.refuse(ctx, lease, pin, log, printable(err.Error(), 1000))
	default:
		return false, err // the payload cannot be had now; what comes after it must wait
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

// fetch gets the batch's payload and verifies it. An errBatch means that the batch is bad for good.
func (n *Network) fetch(ctx context.Context, pin *store.Pin, log *batchPin) (*store.PinnedBatch, error) {
	placement := sharedstorage.Placement{Location: log.location, Payload: log.payload}
	if log.location != "" {
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
