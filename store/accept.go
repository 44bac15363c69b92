package store

import (
	"context"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

const (
	maxAcceptBatch   = 100 // operations in one statement
	maxAcceptWriters = 2   // statements under way at once, so that a slow flush does not hold up everybody
)

// One statement for all three rows of each operation: one round trip, one flush. In arrays of bytes the driver writes an empty value for NULL.
// Nothing is inserted for an operation whose idempotency key is taken.
const sqlInsertOperations = `
	WITH given AS (
		SELECT * FROM unnest(CAST($1 AS uuid[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS bytea[]), CAST($6 AS timestamptz[]),
			CAST($7 AS uuid[]), CAST($8 AS text[]), CAST($9 AS text[]), CAST($10 AS text[]), CAST($11 AS bytea[]), CAST($12 AS text[]), CAST($13 AS text[]),
			CAST($14 AS bytea[]), CAST($15 AS bytea[]), CAST($16 AS numeric[]), CAST($17 AS bigint[]), CAST($18 AS text[]))
			AS g (transaction, namespace, tx_type, idempotency_key, body_hash, created, id, type, plugin, chain, key, input, errors, to_address, data, value, gas,
				options)
	), begun AS (
		INSERT INTO transactions (id, namespace, type, idempotency_key, body_hash, created)
		SELECT transaction, namespace, tx_type, idempotency_key, NULLIF(body_hash, ''), created FROM given
		ON CONFLICT (namespace, idempotency_key) WHERE idempotency_key IS NOT NULL DO NOTHING
		RETURNING id
	), accepted AS (
		INSERT INTO operations (id, namespace, transaction, type, status, plugin, chain, key, input, errors, created, updated)
		SELECT g.id, g.namespace, g.transaction, g.type, 'Initialized', g.plugin, g.chain, g.key, g.input, g.errors, g.created, g.created
		FROM given g JOIN begun b ON b.id = g.transaction
	), queued AS (
		INSERT INTO outbox (operation, chain, key, to_address, data, value, gas, options, created)
		SELECT g.id, g.chain, g.key, NULLIF(g.to_address, ''), g.data, g.value, g.gas, g.options, g.created FROM given g JOIN begun b ON b.id = g.transaction
	)
	SELECT id FROM begun`

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
	if err != nil && len(batch) > 1 && refused(err) {
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

// insertOperations stores operations and returns the ids of those transactions that were begun: not the ones whose idempotency key is taken.
func insertOperations(ctx context.Context, insert *sqlx.Stmt, rows []newOperationRow) (map[uuid.UUID]bool, error) {
	var ids []uuid.UUID
	if err := insert.SelectContext(ctx, &ids, operationArguments(rows)...); err != nil {
		return nil, fmt.Errorf("insert the operations: %w", err)
	}
	begun := make(map[uuid.UUID]bool, len(ids))
	for _, id := range ids {
		begun[id] = true
	}
	return begun, nil
}

// newOperationRow is what an accepted operation leaves in the tables.
type newOperationRow struct {
	transaction, operation                                        uuid.UUID
	namespace, txType, kind, chain, created, input, custom, value string
	options                                                       string
	idempotencyKey                                                *string
	bodyHash, key, to, data                                       []byte // of a contract creation, to is empty
	gas                                                           int64
}

// operationArguments are the arguments of sqlInsertOperations: the rows column by column.
func operationArguments(rows []newOperationRow) []any {
	var text [12][]string
	var idempotencyKeys []*string
	var binary [4]pq.ByteaArray
	var gas []int64
	for i := range rows {
		r := &rows[i]
		for column, value := range [...]string{
			r.transaction.String(), r.namespace, r.txType, r.created, r.operation.String(), r.kind, pluginEthereum, r.chain, r.input, r.custom, r.value, r.options,
		} {
			text[column] = append(text[column], value)
		}
		for column, value := range [...][]byte{r.bodyHash, r.key, r.to, r.data} {
			binary[column] = append(binary[column], value)
		}
		idempotencyKeys, gas = append(idempotencyKeys, r.idempotencyKey), append(gas, r.gas)
	}
	return []any{
		pq.Array(text[0]), pq.Array(text[1]), pq.Array(text[2]), pq.Array(idempotencyKeys), binary[0], pq.Array(text[3]), pq.Array(text[4]),
		pq.Array(text[5]), pq.Array(text[6]), pq.Array(text[7]), binary[1], pq.Array(text[8]), pq.Array(text[9]), binary[2], binary[3], pq.Array(text[10]),
		pq.Array(gas), pq.Array(text[11]),
	}
}
