package multiparty

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/store"
)

const (
	maxInFlight   = 4       // batches whose pin is not on the chain yet; what comes in meanwhile gathers in the next one
	batchMessages = 500     // messages of one batch
	batchBytes    = 1 << 20 // of values in one batch, unless one message alone is larger
)

// publish makes the next batch of what has gathered and hands its pin to the submitter. It waits for nothing: a batch holds what came in while the last ones were
// on their way.
func (n *Network) publish(ctx context.Context, lease store.Lease) (more bool, err error) {
	failed, err := n.db.RejectFailedBatches(ctx, lease, n.cfg.Namespace)
	if err != nil {
		return false, err //nolint:wrapcheck // it says what it did
	}
	if failed > 0 {
		n.log.WarnContext(ctx, "batches could not be pinned; their messages are rejected", "batches", failed)
		n.metrics.batches.WithLabelValues("failed").Add(float64(failed))
	}
	inFlight, err := n.db.BatchesInFlight(ctx, n.cfg.Namespace)
	if err != nil || inFlight >= maxInFlight {
		return false, err //nolint:wrapcheck // as above
	}
	messages, data, err := n.db.ReadyMessages(ctx, n.cfg.Namespace, batchMessages, batchBytes)
	if err != nil || len(messages) == 0 {
		return false, err //nolint:wrapcheck // as above
	}
	return true, n.send(ctx, lease, messages, data)
}

func (n *Network) send(ctx context.Context, lease store.Lease, messages []store.Message, data map[uuid.UUID][]store.Data) error {
	ids := make([]uuid.UUID, len(messages))
	for i := range messages {
		ids[i] = messages[i].ID
	}
	id := store.NewID()
	packed, hash, err := encodePayload(id, n.cfg.NetworkName, n.author, messages, data)
	var placement sharedstorage.Placement
	if err == nil {
		placement, err = n.storage.Put(ctx, id, packed)
	}
	switch {
	case errors.Is(err, sharedstorage.ErrTooLarge) && len(messages) > 1:
		return n.send(ctx, lease, messages[:len(messages)/2], data) // the others stay for the next batch
	case errors.Is(err, sharedstorage.ErrTooLarge):
		return n.reject(ctx, lease, ids, err.Error())
	case err != nil:
		return fmt.Errorf("store the payload of batch %s: %w", id, err)
	}
	if sharedstorage.Elsewhere(placement.Location) {
		placement.Payload = bytes.Join(declaredContexts(messages), nil)
	}
	batch := &store.Batch{Namespace: n.cfg.Namespace, ID: id, Author: n.author, Hash: hash, Location: placement.Location}
	operations, err := n.operations(ctx, batch, placement, len(messages))
	var revert *chain.RevertError
	if errors.As(err, &revert) {
		reason := contract.DecodeRevert(revert.Data, n.errors).Reason
		return n.reject(ctx, lease, ids, "the pin contract refuses the batch: "+printable(reason, 500))
	}
	if err != nil {
		return err
	}
	sent, err := n.db.SendBatch(ctx, lease, batch, ids, operations)
	if err != nil || !sent {
		return err //nolint:wrapcheck // it says what it did
	}
	n.metrics.batches.WithLabelValues("sent").Inc()
	n.metrics.messages.WithLabelValues("sent").Add(float64(len(ids)))
	n.log.DebugContext(ctx, "batch sent", "batch", id, "messages", len(ids), "bytes", len(packed), "chunks", len(placement.Chunks))
	return nil
}

func (n *Network) reject(ctx context.Context, lease store.Lease, ids []uuid.UUID, reason string) error {
	n.log.WarnContext(ctx, "messages rejected", "messages", len(ids), "reason", reason)
	n.metrics.messages.WithLabelValues("rejected").Add(float64(len(ids)))
	return n.db.RejectMessages(ctx, lease, n.cfg.Namespace, ids, reason) //nolint:wrapcheck // it says what it did
}

// operations are the transactions that put the batch on the chain: its chunks, and the pin last. The submitter keeps their order.
func (n *Network) operations(ctx context.Context, b *store.Batch, p sharedstorage.Placement, messages int) ([]store.NewOperation, error) {
	operations := make([]store.NewOperation, 0, len(p.Chunks)+1)
	add := func(input map[string]string, method string, args ...any) error {
		data, err := n.abi.Pack(method, args...)
		if err != nil {
			return fmt.Errorf("encode the %s of batch %s: %w", method, b.ID, err)
		}
		gas, err := n.client.EstimateGasAgain(ctx, chain.CallRequest{From: &n.cfg.Key, To: n.cfg.PinContract, Data: data})
		if err != nil {
			return fmt.Errorf("estimate the %s of batch %s: %w", method, b.ID, err)
		}
		input["batch"] = b.ID.String()
		text, err := json.Marshal(input)
		if err != nil {
			return fmt.Errorf("describe the %s of batch %s: %w", method, b.ID, err)
		}
		operations = append(operations, store.NewOperation{
			ID: store.NewID(), Namespace: n.cfg.Namespace, Type: store.OpPin, Chain: n.cfg.Chain, Key: n.cfg.Key, To: &n.cfg.PinContract, Data: data, Gas: gas,
			Input: text, Errors: n.errors,
		})
		return nil
	}
	id := [16]byte(b.ID)
	for i, chunk := range p.Chunks {
		index := uint32(i) //nolint:gosec // bounded by the storage
		if err := add(map[string]string{"chunk": strconv.Itoa(i)}, "chunk", n.id, id, index, chunk); err != nil {
			return nil, err
		}
	}
	input := map[string]string{"messages": strconv.Itoa(messages), "location": p.Location}
	if err := add(input, "pin", n.id, id, [32]byte(b.Hash), p.Location, p.Payload); err != nil {
		return nil, err
	}
	return operations, nil
}
