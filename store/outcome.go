package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// Outcome is the end of one operation.
type Outcome struct {
	Operation uuid.UUID
	Status    string           // OpSucceeded or OpFailed
	Output    *OperationOutput // nil when nothing was mined
	TxHash    *common.Hash     // of the transaction that was mined
	Error     string           // why it failed, one sentence
	Revert    *pactwire.Revert // what the contract said, if it reverted
}

// The rows of the outbox go and the operations end in one statement, if the lease is still the owner's; it stays so until the transaction ends. An operation that has
// ended already is left as it is. What a retry needs stays with an invocation that failed.
const sqlFinishOperations = `
	WITH fence AS (
		SELECT epoch FROM leases WHERE name = $8 AND epoch = $9 FOR SHARE
	), ended AS (
		SELECT e.* FROM unnest(CAST($1 AS uuid[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]), CAST($6 AS bytea[]))
			AS e (operation, status, output, error, revert, tx_hash), fence
	), gone AS (
		DELETE FROM outbox q USING ended e WHERE q.operation = e.operation
		RETURNING e.*, q.attempts, q.to_address, q.data, q.value, q.gas, q.options
	)
	UPDATE operations o SET status = g.status, output = g.output, error = g.error, revert = g.revert, tx_hash = NULLIF(g.tx_hash, ''),
		attempts = g.attempts, updated = $7,
		to_address = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.to_address END,
		data = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.data END,
		value = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.value END,
		gas = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.gas END,
		options = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.options END
	FROM gone g
	WHERE o.id = g.operation AND o.status IN ('Initialized', 'Pending')
	RETURNING o.id, o.namespace, o.transaction, o.type, o.status, o.plugin, o.chain, o.key, o.input, o.output, o.error, o.revert, o.retry, o.created,
		o.updated, o.tx_hash, o.attempts, CAST(NULL AS bigint) AS nonce`

// FinishOperations ends operations, each with its event, in one transaction, and hands them to those who wait for them. The events come in the order of the
// outcomes.
func (db *DB) FinishOperations(ctx context.Context, lease Lease, outcomes []Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	columns, order, err := outcomeColumns(outcomes)
	if err != nil {
		return wrap(err, "finish operations")
	}
	hot, err := db.prepareAll(ctx, sqlFinishOperations)
	if err != nil {
		return wrap(err, "finish operations")
	}
	var ended []Operation
	err = db.inTxAppending(ctx, "finish operations", func(tx *sqlx.Tx) ([]Event, error) {
		now := Now()
		var rows []operationRow
		if err := hot.in(ctx, tx, sqlFinishOperations).SelectContext(ctx, &rows, append(columns, now, lease.Name, lease.Epoch)...); err != nil {
			return nil, fmt.Errorf("update the operations: %w", err)
		}
		if len(rows) == 0 { // there was nothing to end but fillers, or the lease is lost
			return nil, checkLease(ctx, tx, lease)
		}
		sort.Slice(rows, func(i, j int) bool { return order[rows[i].ID] < order[rows[j].ID] })
		var events []Event
		for i := range rows {
			op, err := rows[i].operation()
			if err != nil {
				return nil, err
			}
			ended = append(ended, op)
			if op.Type != OpInvoke {
				continue
			}
			event, err := op.event()
			if err != nil {
				return nil, err
			}
			event.Created = now
			events = append(events, event)
		}
		return events, nil
	})
	if err != nil {
		return err
	}
	db.handOver(ended)
	db.NotifyOthers(TopicOutcomes)
	return nil
}

// event is the entry of the history that tells the outcome.
func (o Operation) event() (Event, error) {
	body, err := o.JSON()
	if err != nil {
		return Event{}, err
	}
	kind, txType := EventInvokeFailed, TxInvoke
	if o.Status == OpSucceeded {
		kind = EventInvokeSucceeded
	}
	return Event{
		Namespace: o.Namespace, ID: NewID(), Type: kind, Reference: o.ID, Transaction: &o.Transaction, TxType: &txType, BodyKey: BodyOperation, Body: body,
	}, nil
}

// outcomeColumns are the first arguments of sqlFinishOperations, and each operation's place in the order of the outcomes.
func outcomeColumns(outcomes []Outcome) ([]any, map[uuid.UUID]int, error) {
	var operations, statuses, errs []string
	var outputs, reverts []*string
	var hashes pq.ByteaArray
	order := make(map[uuid.UUID]int, len(outcomes))
	for i := range outcomes {
		o := &outcomes[i]
		order[o.Operation] = i
		operations = append(operations, o.Operation.String())
		statuses = append(statuses, o.Status)
		errs = append(errs, storable(o.Error))
		var output, revert *string
		if o.Output != nil {
			text, err := json.Marshal(o.Output)
			if err != nil {
				return nil, nil, fmt.Errorf("encode the output of operation %s: %w", o.Operation, err)
			}
			s := string(text)
			output = &s
		}
		if o.Revert != nil {
			text, err := json.Marshal(o.Revert)
			if err != nil {
				return nil, nil, fmt.Errorf("encode the revert of operation %s: %w", o.Operation, err)
			}
			s := string(text)
			revert = &s
		}
		outputs, reverts = append(outputs, output), append(reverts, revert)
		var hash []byte // a nil element of the array is NULL
		if o.TxHash != nil {
			hash = o.TxHash.Bytes()
		}
		hashes = append(hashes, hash)
	}
	return []any{pq.Array(operations), pq.Array(statuses), pq.Array(outputs), pq.Array(errs), pq.Array(reverts), hashes}, order, nil
}

// storable makes of a text that came from a chain or a node one that PostgreSQL keeps: valid UTF-8 without NUL.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
