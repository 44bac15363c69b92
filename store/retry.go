package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
)

// FailedOperation returns a failed invocation as it would be asked for again: without the nonce that was asked for, and not estimated yet.
func (db *DB) FailedOperation(ctx context.Context, ns string, id uuid.UUID) (NewOperation, error) {
	doing := "read operation " + id.String()
	var row struct {
		Type    string     `db:"type"`
		Status  string     `db:"status"`
		Chain   string     `db:"chain"`
		Key     []byte     `db:"key"`
		Input   string     `db:"input"`
		Errors  string     `db:"errors"`
		Retry   *uuid.UUID `db:"retry"`
		To      []byte     `db:"to_address"`
		Data    []byte     `db:"data"`
		Value   *string    `db:"value"`
		Options *string    `db:"options"`
	}
	err := db.db.GetContext(ctx, &row, `
		SELECT type, status, chain, key, input, errors, retry, to_address, data, CAST(value AS text) AS value, options
		FROM operations WHERE namespace = $1 AND id = $2`, ns, id)
	none := NewOperation{}
	switch {
	case err != nil:
		return none, missing(err, "operation", id.String(), doing)
	case row.Status != OpFailed:
		return none, pactwire.Conflict("operation_not_failed", "The operation is %s; only a failed one can be done again.", row.Status)
	case row.Retry != nil:
		return none, alreadyRetried(*row.Retry)
	case row.Type != OpInvoke || row.Value == nil || row.Options == nil:
		return none, pactwire.Conflict("operation_not_retryable", "Only an invocation can be done again; the service itself sees to its %s operations.", row.Type)
	}
	n := NewOperation{
		Namespace: ns, Type: row.Type, Chain: row.Chain, Key: common.BytesToAddress(row.Key), Data: row.Data, Input: json.RawMessage(row.Input),
	}
	if row.To != nil {
		to := common.BytesToAddress(row.To)
		n.To = &to
	}
	var ok bool
	if n.Value, ok = new(big.Int).SetString(*row.Value, 10); !ok {
		return none, wrap(fmt.Errorf("%q is no value", *row.Value), doing)
	}
	if err := json.Unmarshal([]byte(*row.Options), &n.Options); err != nil {
		return none, wrap(fmt.Errorf("decode the options: %w", err), doing)
	}
	n.Options.Nonce = nil
	if err := json.Unmarshal([]byte(row.Errors), &n.Errors); err != nil {
		return none, wrap(fmt.Errorf("decode the custom errors: %w", err), doing)
	}
	return n, nil
}

func alreadyRetried(by uuid.UUID) error {
	return pactwire.Conflict("operation_retried", "The operation has been done again already, as operation %s.", by)
}

// The new operation belongs to the transaction of the old one, which names it: all in one statement, or nothing when another has been quicker.
const sqlRetryOperation = `
	WITH old AS (
		UPDATE operations SET retry = CAST($3 AS uuid), updated = CAST($4 AS timestamptz)
		WHERE namespace = $1 AND id = $2 AND status = 'Failed' AND retry IS NULL RETURNING *
	), o AS (
		INSERT INTO operations (id, namespace, transaction, type, status, plugin, chain, key, input, errors, created, updated)
		SELECT CAST($3 AS uuid), namespace, transaction, type, 'Initialized', plugin, chain, key, input, errors, CAST($4 AS timestamptz),
			CAST($4 AS timestamptz) FROM old
	)
	INSERT INTO outbox (operation, chain, key, to_address, data, value, gas, options, created)
	SELECT CAST($3 AS uuid), chain, key, to_address, data, value, CAST($5 AS bigint), CAST($6 AS text), CAST($4 AS timestamptz) FROM old`

// RetryOperation stores the new operation of a failed one; n comes from FailedOperation, and has been estimated.
func (db *DB) RetryOperation(ctx context.Context, failed uuid.UUID, n NewOperation) (Operation, error) {
	doing := "retry operation " + failed.String()
	options, err := json.Marshal(n.Options)
	if err != nil {
		return Operation{}, wrap(fmt.Errorf("encode the options: %w", err), doing)
	}
	id := NewID()
	result, err := db.db.ExecContext(ctx, sqlRetryOperation, n.Namespace, failed, id, Now().Format(time.RFC3339Nano), int64(n.GasLimit()), string(options))
	if err != nil {
		return Operation{}, wrap(err, doing)
	}
	made, err := result.RowsAffected()
	if err != nil {
		return Operation{}, wrap(err, doing)
	}
	if made == 0 {
		old, err := db.Operation(ctx, n.Namespace, failed)
		if err == nil && old.Retry != nil {
			err = alreadyRetried(*old.Retry)
		}
		return Operation{}, wrap(err, doing)
	}
	db.Notify(TopicOutbox(n.Chain))
	return db.Operation(ctx, n.Namespace, id)
}
