package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
)

const (
	maxAcceptBatch   = 100 // operations in one statement
	maxAcceptWriters = 2   // statements under way at once, so that a slow flush does not hold up everybody
)

// One statement for all three rows of each operation: one round trip, one flush. Nothing is inserted for an operation whose idempotency key is taken, and nothing at all
// without the fence, which stands before it. In arrays of bytes the driver writes an empty value for NULL.
const (
	sqlStoreOperations = `given AS (
		SELECT g.* FROM unnest(CAST($1 AS uuid[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS bytea[]), CAST($6 AS timestamptz[]),
			CAST($7 AS uuid[]), CAST($8 AS text[]), CAST($9 AS text[]), CAST($10 AS text[]), CAST($11 AS bytea[]), CAST($12 AS text[]), CAST($13 AS text[]),
			CAST($14 AS bytea[]), CAST($15 AS bytea[]), CAST($16 AS numeric[]), CAST($17 AS bigint[]), CAST($18 AS text[]), CAST($19 AS bigint[]),
			CAST($20 AS bytea[]), CAST($21 AS bytea[]), CAST($22 AS text[]))
			AS g (transaction, namespace, tx_type, idempotency_key, body_hash, created, id, type, plugin, chain, key, input, errors, to_address, data, value, gas,
				options, nonce, raw, tx_hash, attempt), fence
	), begun AS (
		INSERT INTO transactions (id, namespace, type, idempotency_key, body_hash, created)
		SELECT transaction, namespace, tx_type, idempotency_key, NULLIF(body_hash, ''), created FROM given
		ON CONFLICT (namespace, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
		RETURNING id
	), accepted AS (
		INSERT INTO operations (id, namespace, transaction, type, status, plugin, chain, key, input, errors, created, updated)
		SELECT g.id, g.namespace, g.transaction, g.type, CASE WHEN g.nonce IS NULL THEN 'Initialized' ELSE 'Pending' END, g.plugin, g.chain, g.key, g.input, g.errors,
			g.created, g.created
		FROM given g JOIN begun b ON b.id = g.transaction
	), queued AS (
		INSERT INTO outbox (operation, chain, key, to_address, data, value, gas, options, created, nonce, raw, tx_hash, tx_hashes, attempts, assigned)
		SELECT g.id, g.chain, g.key, NULLIF(g.to_address, ''), g.data, g.value, g.gas, g.options, g.created, g.nonce, NULLIF(g.raw, ''), NULLIF(g.tx_hash, ''),
			CASE WHEN g.nonce IS NULL THEN '{}' ELSE ARRAY[g.tx_hash] END, CASE WHEN g.nonce IS NULL THEN '{}' ELSE ARRAY[g.attempt] END,
			CASE WHEN g.nonce IS NULL THEN NULL ELSE g.created END
		FROM given g JOIN begun b ON b.id = g.transaction
	)
	SELECT id FROM begun`
	sqlInsertOperations = `WITH fence AS (SELECT true), ` + sqlStoreOperations
	sqlAcceptSigned     = `WITH fence AS (UPDATE signers SET next_nonce = $26 WHERE chain = $23 AND address = $24 AND epoch = $25 RETURNING epoch), ` + sqlStoreOperations
)

// acceptor stores the operations that are accepted at the same time in one statement. It never lingers: an operation that finds a free writer is stored at once,
// and what has gathered while all writers were busy is stored together. PostgreSQL would share the flush among single statements too, but not their other work.
type acceptor struct {
	db *DB

	mu      sync.Mutex
	queue   []*acceptance
	writing int
}

// acceptance is an operation on its way into the database.
type acceptance struct {
	ctx   context.Context //nolint:containedctx // it belongs to this one call, which lives no longer
	row   newOperationRow
	taken bool  // its idempotency key is in use; written before done is closed
	err   error // likewise
	done  chan struct{}
}

// store returns once the operation is safe, or errKeyTaken.
func (a *acceptor) store(ctx context.Context, row newOperationRow) error {
	mine := &acceptance{ctx: ctx, row: row, done: make(chan struct{})}
	a.mu.Lock()
	a.queue = append(a.queue, mine)
	if a.writing < maxAcceptWriters {
		a.writing++
		go a.write(context.WithoutCancel(ctx)) // it stores others' operations too
	}
	a.mu.Unlock()
	select {
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // wrapped by the caller
	case <-mine.done:
	}
	if mine.taken {
		return errKeyTaken
	}
	return mine.err
}

// write stores what waits, batch after batch, until nothing waits.
func (a *acceptor) write(ctx context.Context) {
	for {
		a.mu.Lock()
		var batch []*acceptance
		i := 0
		for ; i < len(a.queue) && len(batch) < maxAcceptBatch; i++ {
			if a.queue[i].ctx.Err() == nil {
				batch = append(batch, a.queue[i])
			}
		}
		rest := copy(a.queue, a.queue[i:])
		clear(a.queue[rest:])
		a.queue = a.queue[:rest]
		if len(batch) == 0 {
			a.writing--
			a.mu.Unlock()
			return
		}
		a.mu.Unlock()
		a.insert(ctx, batch)
	}
}

// insert stores a batch and tells each of its operations how it went. When the batch fails as a whole, each operation is tried alone: one of them may be the
// cause.
func (a *acceptor) insert(ctx context.Context, batch []*acceptance) {
	rows := make([]newOperationRow, len(batch))
	for i := range batch {
		rows[i] = batch[i].row
	}
	statement, err := a.db.prepared(ctx, sqlInsertOperations)
	var begun map[uuid.UUID]bool
	if err == nil {
		begun, err = insertOperations(ctx, statement, rows)
	}
	if err != nil && len(batch) > 1 && Refused(err) {
		for i := range batch {
			a.insert(ctx, batch[i:i+1])
		}
		return
	}
	chains := map[string]bool{}
	for _, one := range batch {
		one.err, one.taken = err, err == nil && !begun[one.row.transaction]
		chains[one.row.chain] = true
		close(one.done)
	}
	if err == nil {
		for chain := range chains {
			a.db.Notify(TopicOutbox(chain))
		}
	}
}

// insertOperations stores operations and returns the ids of those transactions that were begun: not the ones whose idempotency key is taken. fence are the
// arguments of the fence.
func insertOperations(ctx context.Context, insert *sqlx.Stmt, rows []newOperationRow, fence ...any) (map[uuid.UUID]bool, error) {
	var ids []uuid.UUID
	if err := insert.SelectContext(ctx, &ids, append(operationArguments(rows), fence...)...); err != nil {
		return nil, fmt.Errorf("insert the operations: %w", err)
	}
	begun := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		begun[id] = true
	}
	return begun, nil
}

// Accepted is an operation that is accepted with its nonce and its signature.
type Accepted struct {
	New    NewOperation
	Signed Signed
}

// AcceptSigned stores operations together with their nonces and signatures, and the key's next nonce. For each it returns the operation, or nil when its idempotency
// key has been used before. Refused tells of an error whether one of the operations is the cause; nothing was stored then.
func (db *DB) AcceptSigned(ctx context.Context, lease Lease, chain string, key common.Address, next uint64, accepted []Accepted) ([]*Operation, error) {
	doing := "accept operations with their nonces"
	rows, operations := make([]newOperationRow, len(accepted)), make([]Operation, len(accepted))
	for i := range accepted {
		op, row, err := accepted[i].New.prepare()
		if err != nil {
			return nil, wrap(err, doing)
		}
		row.sign(&accepted[i].Signed)
		op.Status = OpPending
		operations[i], rows[i] = op, row
	}
	statement, err := db.prepared(ctx, sqlAcceptSigned)
	if err != nil {
		return nil, wrap(err, doing)
	}
	begun, err := insertOperations(ctx, statement, rows, chain, key.Bytes(), lease.Epoch, int64(next)) //nolint:gosec // nonces are below 2^63
	if err != nil {
		return nil, wrap(err, doing)
	}
	if len(begun) == 0 { // all of them are repeated, or the key has a newer owner
		if err := db.checkSigner(ctx, lease, chain, key); err != nil {
			return nil, wrap(err, doing)
		}
	}
	stored := make([]*Operation, len(operations))
	for i := range operations {
		if begun[operations[i].Transaction] {
			stored[i] = &operations[i]
		}
	}
	return stored, nil
}

// checkSigner fails with ErrFenced unless the lease is that of the key's owner.
func (db *DB) checkSigner(ctx context.Context, lease Lease, chain string, key common.Address) error {
	var epoch int64
	if err := db.db.GetContext(ctx, &epoch, `SELECT epoch FROM signers WHERE chain = $1 AND address = $2`, chain, key.Bytes()); err != nil {
		return fmt.Errorf("read the key's owner: %w", err)
	}
	if epoch != lease.Epoch {
		return ErrFenced
	}
	return nil
}
