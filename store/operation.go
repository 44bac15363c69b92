package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// The types of operations.
const (
	OpInvoke = "blockchain_invoke"
	OpPin    = "blockchain_pin_batch"
	OpDeploy = "blockchain_deploy" // of our own pin contract, in development
)

// The states of an operation: Initialized → Pending → Succeeded or Failed. Terminal states never change.
const (
	OpInitialized = "Initialized" // accepted and stored
	OpPending     = "Pending"     // has a nonce; signed, and sent or about to be
	OpSucceeded   = "Succeeded"
	OpFailed      = "Failed"
)

// pluginEthereum is what stands as an operation's plugin.
const pluginEthereum = "ethereum"

// Operation is one blockchain transaction that we were asked for, with its outcome.
type Operation struct {
	ID          uuid.UUID        `json:"id"`
	Namespace   string           `json:"namespace"`
	Transaction uuid.UUID        `json:"tx"`
	Type        string           `json:"type"`
	Status      string           `json:"status"`
	Plugin      string           `json:"plugin"`
	Chain       string           `json:"-"`
	Key         common.Address   `json:"-"`
	Input       json.RawMessage  `json:"input"`
	Output      json.RawMessage  `json:"output,omitempty"` // an OperationOutput, once it was mined
	Error       string           `json:"error,omitempty"`
	Revert      *pactwire.Revert `json:"revert,omitempty"`
	Retry       *uuid.UUID       `json:"retry,omitempty"` // the newer operation that took over
	Created     time.Time        `json:"created"`
	Updated     time.Time        `json:"updated"`

	TransactionHash *common.Hash `json:"-"` // of the transaction that was mined, or else of the one sent last
	Attempts        []Attempt    `json:"-"` // every transaction that was signed for it, oldest first
	Nonce           *uint64      `json:"-"` // while it is pending
}

// OperationOutput is the output of an operation whose transaction was mined. Numbers are decimal strings.
type OperationOutput struct {
	TransactionHash   string `json:"transactionHash"`
	BlockNumber       string `json:"blockNumber"`
	BlockHash         string `json:"blockHash"`
	GasUsed           string `json:"gasUsed"`
	EffectiveGasPrice string `json:"effectiveGasPrice,omitempty"`
	ContractAddress   string `json:"contractAddress,omitempty"` // of a contract creation
}

// Mined decodes the output; false when the operation was not mined.
func (o Operation) Mined() (OperationOutput, bool) {
	var out OperationOutput
	if len(o.Output) == 0 || json.Unmarshal(o.Output, &out) != nil || out.TransactionHash == "" {
		return OperationOutput{}, false
	}
	return out, true
}

// Terminal tells whether the outcome is known.
func (o Operation) Terminal() bool { return o.Status == OpSucceeded || o.Status == OpFailed }

// operationRow is an operation as the tables hold it.
type operationRow struct {
	ID          uuid.UUID      `db:"id"`
	Namespace   string         `db:"namespace"`
	Transaction uuid.UUID      `db:"transaction"`
	Type        string         `db:"type"`
	Status      string         `db:"status"`
	Plugin      string         `db:"plugin"`
	Chain       string         `db:"chain"`
	Key         []byte         `db:"key"`
	Input       string         `db:"input"`
	Output      *string        `db:"output"`
	Error       string         `db:"error"`
	Revert      *string        `db:"revert"`
	Retry       *uuid.UUID     `db:"retry"`
	Created     time.Time      `db:"created"`
	Updated     time.Time      `db:"updated"`
	TxHash      []byte         `db:"tx_hash"`
	Attempts    pq.StringArray `db:"attempts"`
	Nonce       *int64         `db:"nonce"`
}

// sqlOperation reads operations as operationRow; o is the operation, q its row of the outbox, if it is still there.
const (
	operationColumns = `o.id, o.namespace, o.transaction, o.type, o.status, o.plugin, o.chain, o.key, o.input, o.output, o.error, o.revert, o.retry,
		o.created, o.updated, COALESCE(o.tx_hash, q.tx_hash) AS tx_hash, COALESCE(o.attempts, q.attempts) AS attempts, q.nonce`
	operationTables = `operations o LEFT JOIN outbox q ON q.operation = o.id`
	sqlOperation    = `SELECT ` + operationColumns + ` FROM ` + operationTables
)

func (r *operationRow) operation() (Operation, error) {
	op := Operation{
		ID: r.ID, Namespace: r.Namespace, Transaction: r.Transaction, Type: r.Type, Status: r.Status, Plugin: r.Plugin, Chain: r.Chain,
		Key: common.BytesToAddress(r.Key), Input: json.RawMessage(r.Input), Error: r.Error, Retry: r.Retry, Created: r.Created.UTC(),
		Updated: r.Updated.UTC(),
	}
	if r.Output != nil {
		op.Output = json.RawMessage(*r.Output)
	}
	if r.Revert != nil {
		op.Revert = &pactwire.Revert{}
		if err := json.Unmarshal([]byte(*r.Revert), op.Revert); err != nil {
			return Operation{}, fmt.Errorf("decode the revert of operation %s: %w", r.ID, err)
		}
	}
	if r.TxHash != nil {
		hash := common.BytesToHash(r.TxHash)
		op.TransactionHash = &hash
	}
	var err error
	if op.Attempts, err = decodeAttempts(r.Attempts); err != nil {
		return Operation{}, fmt.Errorf("operation %s: %w", r.ID, err)
	}
	if r.Nonce != nil {
		nonce := uint64(*r.Nonce)
		op.Nonce = &nonce
	}
	return op, nil
}

// Operation returns one operation of the namespace.
func (db *DB) Operation(ctx context.Context, ns string, id uuid.UUID) (Operation, error) {
	return db.operationWhere(ctx, id.String(), sqlOperation+` WHERE o.namespace = $1 AND o.id = $2`, ns, id)
}

// OperationByIdempotencyKey returns the operation that was accepted with the idempotency key.
func (db *DB) OperationByIdempotencyKey(ctx context.Context, ns, key string) (Operation, error) {
	return db.operationWhere(ctx, key, sqlOperation+`
		JOIN transactions t ON t.id = o.transaction WHERE t.namespace = $1 AND t.idempotency_key = $2 ORDER BY o.id LIMIT 1`, ns, key)
}

// TransactionOperations returns the operations of one transaction, oldest first.
func (db *DB) TransactionOperations(ctx context.Context, ns string, transaction uuid.UUID) ([]Operation, error) {
	var rows []operationRow
	err := db.db.SelectContext(ctx, &rows, sqlOperation+` WHERE o.namespace = $1 AND o.transaction = $2 ORDER BY o.id`, ns, transaction)
	if err != nil {
		return nil, wrap(err, "read the operations of transaction "+transaction.String())
	}
	operations := make([]Operation, len(rows))
	for i := range rows {
		if operations[i], err = rows[i].operation(); err != nil {
			return nil, err
		}
	}
	return operations, nil
}

func (db *DB) operationWhere(ctx context.Context, key, query string, args ...any) (Operation, error) {
	statement, err := db.prepared(ctx, query) // hot: whoever waits for an outcome reads it
	if err != nil {
		return Operation{}, wrap(err, "read operation "+key)
	}
	var row operationRow
	if err := statement.GetContext(ctx, &row, args...); err != nil {
		return Operation{}, missing(err, "operation", key, "read operation "+key)
	}
	return row.operation()
}
