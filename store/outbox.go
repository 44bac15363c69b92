package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/pactwire/pactwire/contract"
)

// OutboxCall is what an operation asks the chain for.
type OutboxCall struct {
	Operation uuid.UUID
	Filler    bool            // uses up a nonce, and has no operation
	To        *common.Address // nil: contract creation
	Data      []byte
	Value     *big.Int
	Gas       uint64
	Options   TxOptions
	Hashes    []common.Hash // of every transaction signed for it so far, oldest first
	Created   time.Time
	Nonce     *uint64        // nil: not given yet
	CancelAt  *int           // Hashes from this index on cancel it; nil: none does
	Request   *ChangeRequest // what a client asks for

	request string
}

// OutboxSigned is a row of the outbox that has its nonce.
type OutboxSigned struct {
	Operation uuid.UUID
	Filler    bool
	Nonce     uint64
	Raw       []byte      // the signed bytes sent last
	Hash      common.Hash // of Raw
	Hashes    []common.Hash
	Attempts  []Attempt // as Hashes; none of a filler
	CancelAt  *int      // Hashes from this index on cancel the operation; nil: none does
	Explicit  bool      // the fees are the caller's wish
	Assigned  time.Time
}

// Signed is a transaction that is about to be sent.
type Signed struct {
	Operation uuid.UUID
	Filler    bool // a row of the outbox is made for it
	Nonce     uint64
	Gas       uint64
	Raw       []byte
	Hash      common.Hash
	Attempt   Attempt // what is to be remembered of it
}

type outboxRow struct {
	Operation uuid.UUID      `db:"operation"`
	Filler    bool           `db:"filler"`
	Nonce     *int64         `db:"nonce"`
	To        []byte         `db:"to_address"`
	Data      []byte         `db:"data"`
	Value     string         `db:"value"`
	Gas       int64          `db:"gas"`
	Options   string         `db:"options"`
	Raw       []byte         `db:"raw"`
	TxHash    []byte         `db:"tx_hash"`
	TxHashes  pq.ByteaArray  `db:"tx_hashes"`
	Attempts  pq.StringArray `db:"attempts"`
	CancelAt  *int           `db:"cancel_at"`
	Request   *string        `db:"request"`
	Assigned  *time.Time     `db:"assigned"`
	Created   time.Time      `db:"created"`
}

const sqlOutboxCall = `
	SELECT operation, filler, nonce, to_address, data, CAST(value AS text) AS value, gas, options, tx_hashes, cancel_at, request, created FROM outbox `

// UnassignedOutbox returns what waits for a nonce, in the order of the operations' ids, which is that of their acceptance. What a change is asked of waits for that first.
func (db *DB) UnassignedOutbox(ctx context.Context, chain string, key common.Address, limit int) ([]OutboxCall, error) {
	return db.outboxCalls(ctx, sqlOutboxCall+`WHERE chain = $1 AND key = $2 AND nonce IS NULL AND request IS NULL ORDER BY operation LIMIT $3`, chain, key.Bytes(), limit)
}

// OutboxCalls returns what these operations ask for; those that have ended are missing.
func (db *DB) OutboxCalls(ctx context.Context, operations []uuid.UUID) ([]OutboxCall, error) {
	return db.outboxCalls(ctx, sqlOutboxCall+`WHERE operation = ANY(CAST($1 AS uuid[]))`, pq.Array(operations))
}

func (db *DB) outboxCalls(ctx context.Context, query string, args ...any) ([]OutboxCall, error) {
	doing := "read the outbox"
	statement, err := db.prepared(ctx, query)
	if err != nil {
		return nil, wrap(err, doing)
	}
	var rows []outboxRow
	if err := statement.SelectContext(ctx, &rows, args...); err != nil {
		return nil, wrap(err, doing)
	}
	calls := make([]OutboxCall, len(rows))
	for i := range rows {
		if calls[i], err = rows[i].call(); err != nil {
			return nil, wrap(err, doing)
		}
	}
	return calls, nil
}

func (r *outboxRow) call() (OutboxCall, error) {
	c := OutboxCall{
		Operation: r.Operation, Filler: r.Filler, Data: r.Data, Gas: uint64(r.Gas), Hashes: hashes(r.TxHashes), Created: r.Created,
		CancelAt: r.CancelAt,
	}
	if r.Nonce != nil {
		nonce := uint64(*r.Nonce)
		c.Nonce = &nonce
	}
	if r.Request != nil {
		c.request, c.Request = *r.Request, &ChangeRequest{}
		if err := json.Unmarshal([]byte(*r.Request), c.Request); err != nil {
			return OutboxCall{}, fmt.Errorf("operation %s: decode the request: %w", r.Operation, err)
		}
	}
	if r.To != nil {
		to := common.BytesToAddress(r.To)
		c.To = &to
	}
	var ok bool
	if c.Value, ok = new(big.Int).SetString(r.Value, 10); !ok {
		return OutboxCall{}, fmt.Errorf("operation %s: %q is no value", r.Operation, r.Value)
	}
	if err := json.Unmarshal([]byte(r.Options), &c.Options); err != nil {
		return OutboxCall{}, fmt.Errorf("operation %s: decode the options: %w", r.Operation, err)
	}
	return c, nil
}

// SignedOutbox returns what has a nonce and has not ended, in the order of the nonces.
func (db *DB) SignedOutbox(ctx context.Context, chain string, key common.Address) ([]OutboxSigned, error) {
	return db.signedOutbox(ctx, `WHERE chain = $1 AND key = $2 AND nonce IS NOT NULL ORDER BY nonce`, chain, key.Bytes())
}

// SignedOutboxOf returns what has one of these nonces and has not ended, in the order of the nonces.
func (db *DB) SignedOutboxOf(ctx context.Context, chain string, key common.Address, nonces []uint64) ([]OutboxSigned, error) {
	wanted := make([]int64, len(nonces))
	for i, n := range nonces {
		wanted[i] = int64(n)
	}
	return db.signedOutbox(ctx, `WHERE chain = $1 AND key = $2 AND nonce = ANY(CAST($3 AS bigint[])) ORDER BY nonce`, chain, key.Bytes(), pq.Array(wanted))
}

func (db *DB) signedOutbox(ctx context.Context, where string, args ...any) ([]OutboxSigned, error) {
	doing := "read the signed part of the outbox"
	var rows []outboxRow
	err := db.db.SelectContext(ctx, &rows, `SELECT operation, filler, nonce, raw, tx_hash, tx_hashes, attempts, cancel_at, options, assigned FROM outbox `+where, args...)
	if err != nil {
		return nil, wrap(err, doing)
	}
	signed := make([]OutboxSigned, len(rows))
	for i := range rows {
		r := &rows[i]
		var options TxOptions
		if err := json.Unmarshal([]byte(r.Options), &options); err != nil {
			return nil, wrap(fmt.Errorf("operation %s: decode the options: %w", r.Operation, err), doing)
		}
		attempts, err := decodeAttempts(r.Attempts)
		if err != nil {
			return nil, wrap(fmt.Errorf("operation %s: %w", r.Operation, err), doing)
		}
		signed[i] = OutboxSigned{
			Operation: r.Operation, Filler: r.Filler, Nonce: uint64(*r.Nonce), Raw: r.Raw, Hash: common.BytesToHash(r.TxHash), Hashes: hashes(r.TxHashes),
			Attempts: attempts, CancelAt: r.CancelAt, Explicit: options.Fees() && r.CancelAt == nil,
		}
		if r.Assigned != nil {
			signed[i].Assigned = *r.Assigned
		}
	}
	return signed, nil
}

// Fees tells whether the caller wished for certain fees.
func (o *TxOptions) Fees() bool {
	return o.GasPrice != nil || o.MaxFeePerGas != nil || o.MaxPriorityFeePerGas != nil
}

// The nonces, the signed bytes, the key's next nonce and the operations' states change in one statement: one round trip and one flush for a whole batch, before
// any of it is sent. Without the fence nothing changes.
const sqlAssignOutbox = `
	WITH fence AS (
		UPDATE signers SET next_nonce = $4 WHERE chain = $1 AND address = $2 AND epoch = $3 RETURNING epoch
	), signed AS (
		SELECT operation, filler, nonce, gas, raw, tx_hash, attempt
		FROM unnest(CAST($5 AS uuid[]), CAST($6 AS boolean[]), CAST($7 AS bigint[]), CAST($8 AS bigint[]), CAST($9 AS bytea[]), CAST($10 AS bytea[]),
			CAST($12 AS text[])) AS s (operation, filler, nonce, gas, raw, tx_hash, attempt), fence
	), assigned AS (
		UPDATE outbox SET nonce = s.nonce, raw = s.raw, tx_hash = s.tx_hash, tx_hashes = outbox.tx_hashes || s.tx_hash,
			attempts = outbox.attempts || s.attempt, assigned = $11
		FROM signed s WHERE outbox.operation = s.operation AND NOT s.filler
	), filled AS (
		INSERT INTO outbox (operation, chain, key, filler, nonce, to_address, data, gas, raw, tx_hash, tx_hashes, assigned, created)
		SELECT operation, $1, $2, true, nonce, $2, '', gas, raw, tx_hash, ARRAY[tx_hash], $11, $11 FROM signed WHERE filler
	), pending AS (
		UPDATE operations SET status = 'Pending', updated = $11 FROM signed s WHERE operations.id = s.operation AND operations.status = 'Initialized'
	)
	SELECT count(*) FROM fence`

// AssignOutbox gives nonces: it stores each with the transaction that was signed for it, and the key's next nonce.
func (db *DB) AssignOutbox(ctx context.Context, lease Lease, chain string, key common.Address, next uint64, signed []Signed) error {
	doing := "assign nonces"
	statement, err := db.prepared(ctx, sqlAssignOutbox)
	if err != nil {
		return wrap(err, doing)
	}
	c := columnsOf(signed)
	var fence int
	err = statement.GetContext(ctx, &fence, chain, key.Bytes(), lease.Epoch, int64(next), c.operations, pq.Array(c.fillers), pq.Array(c.nonces),
		pq.Array(c.gas), c.raw, c.hashes, Now(), c.attempts)
	if err == nil && fence == 0 {
		err = ErrFenced
	}
	return wrap(err, doing)
}

// LowerNonces gives operations of which nothing has been sent other nonces instead of theirs. What was signed for them before is forgotten.
func (db *DB) LowerNonces(ctx context.Context, lease Lease, signed []Signed) error {
	return db.inTx(ctx, "lower nonces", func(tx *sqlx.Tx) error {
		if err := checkLease(ctx, tx, lease); err != nil {
			return err
		}
		c := columnsOf(signed)
		_, err := tx.ExecContext(ctx, `
			UPDATE outbox SET nonce = s.nonce, raw = s.raw, tx_hash = s.tx_hash, tx_hashes = ARRAY[s.tx_hash], attempts = ARRAY[s.attempt]
			FROM unnest(CAST($1 AS uuid[]), CAST($2 AS bigint[]), CAST($3 AS bytea[]), CAST($4 AS bytea[]), CAST($5 AS text[]))
				AS s (operation, nonce, raw, tx_hash, attempt)
			WHERE outbox.operation = s.operation`, c.operations, pq.Array(c.nonces), c.raw, c.hashes, c.attempts)
		if err != nil {
			return fmt.Errorf("update the outbox: %w", err)
		}
		return nil
	})
}

// UnassignOutbox takes the nonces back: the operations wait for new ones, and fillers are gone. Only for nonces that another transaction has used up, or whose
// transactions no node has taken.
func (db *DB) UnassignOutbox(ctx context.Context, lease Lease, operations []uuid.UUID) error {
	return db.inTx(ctx, "take nonces back", func(tx *sqlx.Tx) error {
		if err := checkLease(ctx, tx, lease); err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM outbox WHERE filler AND operation = ANY(CAST($1 AS uuid[]))`, pq.Array(operations)); err != nil {
			return fmt.Errorf("delete fillers: %w", err)
		}
		_, err := tx.ExecContext(ctx, `
			UPDATE outbox SET nonce = NULL, raw = NULL, tx_hash = NULL, assigned = NULL,
				request = CASE WHEN cancel_at IS NULL THEN request ELSE '{"kind":"cancel"}' END
			WHERE operation = ANY(CAST($1 AS uuid[]))`, pq.Array(operations))
		if err != nil {
			return fmt.Errorf("update the outbox: %w", err)
		}
		return nil
	})
}

// OutboxErrors returns the custom errors that may be in the reverts of these operations.
func (db *DB) OutboxErrors(ctx context.Context, operations []uuid.UUID) (map[uuid.UUID][]contract.Error, error) {
	doing := "read the custom errors of operations"
	var rows []struct {
		ID     uuid.UUID `db:"id"`
		Errors string    `db:"errors"`
	}
	if err := db.db.SelectContext(ctx, &rows, `SELECT id, errors FROM operations WHERE id = ANY(CAST($1 AS uuid[]))`, pq.Array(operations)); err != nil {
		return nil, wrap(err, doing)
	}
	custom := make(map[uuid.UUID][]contract.Error, len(rows))
	for _, r := range rows {
		var errs []contract.Error
		if err := json.Unmarshal([]byte(r.Errors), &errs); err != nil {
			return nil, wrap(fmt.Errorf("operation %s: %w", r.ID, err), doing)
		}
		custom[r.ID] = errs
	}
	return custom, nil
}

// OldestUnassigned tells when the oldest operation that waits for a nonce was accepted; false when none waits.
func (db *DB) OldestUnassigned(ctx context.Context, chain string, key common.Address) (time.Time, bool, error) {
	var created []time.Time
	err := db.db.SelectContext(ctx, &created, `
		SELECT created FROM outbox WHERE chain = $1 AND key = $2 AND nonce IS NULL ORDER BY operation LIMIT 1`, chain, key.Bytes())
	if err != nil || len(created) == 0 {
		return time.Time{}, false, wrap(err, "read the outbox")
	}
	return created[0], true, nil
}

// signedColumns holds signed transactions column by column, as unnest takes them.
type signedColumns struct {
	operations  pq.StringArray
	fillers     []bool
	nonces, gas []int64
	raw, hashes pq.ByteaArray
	attempts    pq.StringArray
}

func columnsOf(signed []Signed) signedColumns {
	var c signedColumns
	for i := range signed {
		s := &signed[i]
		c.operations = append(c.operations, s.Operation.String())
		c.fillers = append(c.fillers, s.Filler)
		c.nonces = append(c.nonces, int64(s.Nonce))
		c.gas = append(c.gas, int64(s.Gas))
		c.raw = append(c.raw, s.Raw)
		c.hashes = append(c.hashes, s.Hash.Bytes())
		c.attempts = append(c.attempts, s.Attempt.encode())
	}
	return c
}

func hashes(raw pq.ByteaArray) []common.Hash {
	if len(raw) == 0 {
		return nil
	}
	out := make([]common.Hash, len(raw))
	for i := range raw {
		out[i] = common.BytesToHash(raw[i])
	}
	return out
}
