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
	gasReserve    = 100_000    // more than what writing a value costs where zero was: 97,920 more than elsewhere since EIP-8037
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

// errKeyTaken means that nothing was inserted because the idempotency key is in use.
var errKeyTaken = errors.New("the idempotency key is in use")

// CreateOperation stores the operation for the submitter: once it returns, the operation will end. A repeat with the same idempotency key and the same
// body returns the operation of the first time, and true; with another body it is a conflict.
func (db *DB) CreateOperation(ctx context.Context, n NewOperation) (op Operation, existed bool, err error) {
	doing := "accept an operation"
	op, row, err := n.prepare()
	if err != nil {
		return Operation{}, false, wrap(err, doing)
	}
	err = db.acceptor.store(ctx, row)
	if errors.Is(err, errKeyTaken) {
		return db.repeatedOperation(ctx, n)
	}
	if err != nil {
		return Operation{}, false, wrap(err, doing)
	}
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

// Call is what the operation asks the chain for, as the outbox would tell it.
func (n *NewOperation) Call() *OutboxCall {
	value := n.Value
	if value == nil {
		value = new(big.Int)
	}
	return &OutboxCall{Operation: n.ID, To: n.To, Data: n.Data, Value: value, Gas: n.GasLimit(), Options: n.Options, Created: Now()}
}

// prepare makes the operation as it will be stored, and its row for insertOperations.
func (n *NewOperation) prepare() (Operation, newOperationRow, error) {
	if n.ID == uuid.Nil {
		n.ID = NewID()
	}
	if len(n.Input) == 0 {
		n.Input = json.RawMessage(`{}`)
	}
	options, err := json.Marshal(n.Options)
	if err != nil {
		return Operation{}, newOperationRow{}, fmt.Errorf("encode the options: %w", err)
	}
	custom := []byte(`[]`)
	if len(n.Errors) > 0 {
		if custom, err = json.Marshal(n.Errors); err != nil {
			return Operation{}, newOperationRow{}, fmt.Errorf("encode the custom errors: %w", err)
		}
	}
	var to []byte
	if n.To != nil {
		to = n.To.Bytes()
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
	return op, newOperationRow{
		transaction: op.Transaction, operation: op.ID, namespace: n.Namespace, txType: n.txType(), kind: op.Type, chain: n.Chain,
		created: now.Format(time.RFC3339Nano), input: string(n.Input), custom: string(custom), value: value, options: string(options),
		idempotencyKey: optionalText(n.IdempotencyKey), bodyHash: n.BodyHash, key: n.Key.Bytes(), to: to, data: data, gas: int64(n.GasLimit()),
	}, nil
}
