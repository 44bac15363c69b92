package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
)

// NewOperation is what a transaction is asked for with. It has been validated and estimated.
type NewOperation struct {
	ID        uuid.UUID // NewID() when zero
	Namespace string
	Type      string // OpInvoke, OpPin or OpDeploy
	Chain     string
	Key       common.Address  // who signs
	To        *common.Address // nil: contract creation
	Data      []byte
	Value     *big.Int // nil: nothing
	Gas       uint64   // as estimated; the limit has a reserve above it, unless Options.Gas sets it
	Options   TxOptions
	Input     json.RawMessage  // what was asked, readable; {} when empty
	Errors    []contract.Error // custom errors of the interface, to decode a revert on the chain

	IdempotencyKey string // empty: none
	BodyHash       []byte // of the request, with an idempotency key
}

// TxOptions are the wishes of the caller that go into the transaction as they are.
type TxOptions struct {
	Gas                  *uint64  `json:"gas,omitempty"`
	GasPrice             *big.Int `json:"gasPrice,omitempty"`
	MaxFeePerGas         *big.Int `json:"maxFeePerGas,omitempty"`
	MaxPriorityFeePerGas *big.Int `json:"maxPriorityFeePerGas,omitempty"`
	Nonce                *uint64  `json:"nonce,omitempty"`
}

// The reserve that a gas limit has above the estimate. What is not used is not paid for.
const (
	gasReserve    = 25_000     // more than what writing a value costs where zero was
	maxGasReserve = 500_000    // blocks and accounts are bounded, too
	maxTxGas      = 16_777_216 // no transaction may have more where EIP-7825 holds
)

// GasLimit is the gas limit of the transaction. An estimate holds for the state that it was made on, and others change it meanwhile: a slot that was set to zero by
// the transaction before costs far more to write than one that held a value. A fifth more, as is common, is not enough for that.
func (n *NewOperation) GasLimit() uint64 {
	if n.Options.Gas != nil {
		return *n.Options.Gas
	}
	limit := n.Gas + min(n.Gas/2+gasReserve, maxGasReserve)
	if n.Gas <= maxTxGas {
		limit = min(limit, maxTxGas)
	}
	return limit
}

// txType is the type of the transaction that an operation of this type begins.
func (n *NewOperation) txType() string {
	switch n.Type {
	case OpPin:
		return TxPin
	case OpDeploy:
		return TxDeploy
	}
	return TxInvoke
}

// One statement for all three rows: one round trip, one flush. Nothing is inserted when the idempotency key is taken.
const sqlInsertOperation = `
	WITH t AS (
		INSERT INTO transactions (id, namespace, type, idempotency_key, body_hash, created)
		VALUES (CAST($1 AS uuid), $2, $3, CAST($4 AS text), CAST($5 AS bytea), CAST($6 AS timestamptz))
		ON CONFLICT (namespace, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
		RETURNING id
	), o AS (
		INSERT INTO operations (id, namespace, transaction, type, status, plugin, chain, key, input, errors, created, updated)
		SELECT CAST($7 AS uuid), CAST($2 AS text), t.id, CAST($8 AS text), 'Initialized', CAST($9 AS text), CAST($10 AS text), CAST($11 AS bytea),
			CAST($12 AS text), CAST($13 AS text), CAST($6 AS timestamptz), CAST($6 AS timestamptz) FROM t
	)
	INSERT INTO outbox (operation, chain, key, to_address, data, value, gas, options, created)
	SELECT CAST($7 AS uuid), CAST($10 AS text), CAST($11 AS bytea), CAST($14 AS bytea), CAST($15 AS bytea), CAST($16 AS numeric),
		CAST($17 AS bigint), CAST($18 AS text), CAST($6 AS timestamptz) FROM t`

// errKeyTaken means that nothing was inserted because the idempotency key is in use.
var errKeyTaken = errors.New("the idempotency key is in use")

// CreateOperation stores the operation for the submitter: once it returns, the operation will end. A repeat with the same idempotency key and the same
// body returns the operation of the first time, and true; with another body it is a conflict.
func (db *DB) CreateOperation(ctx context.Context, n NewOperation) (op Operation, existed bool, err error) {
	doing := "accept an operation"
	op, args, err := n.prepare()
	if err != nil {
		return Operation{}, false, wrap(err, doing)
	}
	insert, err := db.prepared(ctx, sqlInsertOperation)
	if err != nil {
		return Operation{}, false, wrap(err, doing)
	}
	err = execInsertOperation(ctx, insert, args)
	if errors.Is(err, errKeyTaken) {
		return db.repeatedOperation(ctx, n)
	}
	if err != nil {
		return Operation{}, false, wrap(err, doing)
	}
	db.Notify(TopicOutbox(n.Chain))
	return op, false, nil
}

// RepeatedOperation looks whether the idempotency key has been used before: with the same body it returns the operation of that time and true, with
// another body it is a conflict.
func (db *DB) RepeatedOperation(ctx context.Context, n NewOperation) (op Operation, existed bool, err error) {
	op, existed, err = db.repeatedOperation(ctx, n)
	if pactwire.KindOf(err) == pactwire.KindNotFound {
		return Operation{}, false, nil
	}
	return op, existed, err
}

// repeatedOperation returns the operation that the idempotency key was first used for.
func (db *DB) repeatedOperation(ctx context.Context, n NewOperation) (Operation, bool, error) {
	var hash []byte
	err := db.db.GetContext(ctx, &hash, `SELECT body_hash FROM transactions WHERE namespace = $1 AND idempotency_key = $2`, n.Namespace, n.IdempotencyKey)
	if err != nil {
		return Operation{}, false, missing(err, "operation", n.IdempotencyKey, "read what idempotency key "+n.IdempotencyKey+" stands for")
	}
	if !bytes.Equal(hash, n.BodyHash) {
		return Operation{}, false, pactwire.Conflict("idempotency_conflict",
			"The idempotency key %q has been used before with another request.", n.IdempotencyKey)
	}
	op, err := db.OperationByIdempotencyKey(ctx, n.Namespace, n.IdempotencyKey)
	return op, true, err
}

// insertOperation stores the operation within a transaction. After the commit the caller notifies TopicOutbox of its chain.
func insertOperation(ctx context.Context, tx *sqlx.Tx, n NewOperation) (Operation, error) {
	op, args, err := n.prepare()
	if err != nil {
		return Operation{}, err
	}
	insert, err := tx.PreparexContext(ctx, sqlInsertOperation)
	if err != nil {
		return Operation{}, fmt.Errorf("prepare a statement: %w", err)
	}
	defer insert.Close()
	err = execInsertOperation(ctx, insert, args)
	if errors.Is(err, errKeyTaken) {
		return Operation{}, pactwire.Conflict("idempotency_conflict", "The idempotency key %q has been used before.", n.IdempotencyKey)
	}
	return op, err
}

func execInsertOperation(ctx context.Context, insert *sqlx.Stmt, args []any) error {
	result, err := insert.ExecContext(ctx, args...)
	if err != nil {
		return fmt.Errorf("insert the operation: %w", err)
	}
	inserted, err := result.RowsAffected()
	if err != nil {
		return fmt.Errorf("insert the operation: %w", err)
	}
	if inserted == 0 {
		return errKeyTaken
	}
	return nil
}

// prepare makes the operation as it will be stored, and the arguments of sqlInsertOperation.
func (n *NewOperation) prepare() (Operation, []any, error) {
	if n.ID == uuid.Nil {
		n.ID = NewID()
	}
	if len(n.Input) == 0 {
		n.Input = json.RawMessage(`{}`)
	}
	options, err := json.Marshal(n.Options)
	if err != nil {
		return Operation{}, nil, fmt.Errorf("encode the options: %w", err)
	}
	custom := []byte(`[]`)
	if len(n.Errors) > 0 {
		if custom, err = json.Marshal(n.Errors); err != nil {
			return Operation{}, nil, fmt.Errorf("encode the custom errors: %w", err)
		}
	}
	var to, bodyHash any // as nil slices the driver would send empty values for NULL
	if n.To != nil {
		to = n.To.Bytes()
	}
	if n.BodyHash != nil {
		bodyHash = n.BodyHash
	}
	value := "0"
	if n.Value != nil {
		value = n.Value.String()
	}
	data := n.Data
	if data == nil {
		data = []byte{}
	}
	now := Now()
	op := Operation{
		ID: n.ID, Namespace: n.Namespace, Transaction: NewID(), Type: n.Type, Status: OpInitialized, Plugin: pluginEthereum, Chain: n.Chain,
		Key: n.Key, Input: n.Input, Created: now, Updated: now,
	}
	return op, []any{
		op.Transaction, n.Namespace, n.txType(), optionalText(n.IdempotencyKey), bodyHash, now.Format(time.RFC3339Nano), op.ID, op.Type,
		op.Plugin, n.Chain, n.Key.Bytes(), string(n.Input), string(custom), to, data, value, int64(n.GasLimit()), string(options),
	}, nil
}
