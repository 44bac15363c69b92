package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Pin is one log of a chain's pin contract, as the reader recorded it. The reader deletes the pins of blocks that were reorganised away; one that
// a namespace had applied by then stays applied, and is not applied again when it comes back in another block.
type Pin struct {
	Chain       string        `db:"chain"`
	Position    int64         `db:"position"` // the order in which they were recorded, which is chain order
	BlockNumber int64         `db:"block_number"`
	TxIndex     int64         `db:"tx_index"`
	LogIndex    int64         `db:"log_index"`
	BlockHash   []byte        `db:"block_hash"`
	TxHash      []byte        `db:"tx_hash"`
	Topics      pq.ByteaArray `db:"topics"`
	Data        []byte        `db:"data"`

	Deferred bool `db:"-"` // the namespace's position has passed it, but it is not applied yet
	Tries    int  `db:"-"` // of a deferred one
}

// WaitingPins returns the next logs of the chain's pin contract that the namespace has not applied yet, at most limit, without the data of those whose
// first topic is skipData: a chunk is read together with its pin.
func (db *DB) WaitingPins(ctx context.Context, chain, namespace string, skipData []byte, limit int) ([]Pin, error) {
	var pins []Pin
	err := db.db.SelectContext(ctx, &pins, `
		SELECT chain, position, block_number, tx_index, log_index, block_hash, tx_hash, topics,
			CASE WHEN topics[1] = $3 THEN CAST('' AS bytea) ELSE data END AS data
		FROM pins WHERE chain = $1 AND position > coalesce((SELECT position FROM pin_cursors WHERE namespace = $2), 0)
		ORDER BY position LIMIT $4`, chain, namespace, skipData, limit)
	return pins, wrap(err, "read the pins that wait for namespace "+namespace)
}

// PinChunks returns the data of the logs with these topics that belong to the batch and were recorded before the pin, in chain order. It fails with
// ErrTooManyChunks beyond the limits.
func (db *DB) PinChunks(ctx context.Context, pin *Pin, topics [][]byte, batch uuid.UUID, maxCount, maxBytes int64) ([][]byte, error) {
	const from = `
		FROM pins WHERE chain = $1 AND substring(data FROM 1 FOR 32) = $2 AND position < $3 AND topics = $4`
	word := make([]byte, 32)
	copy(word, batch[:])
	args := []any{pin.Chain, word, pin.Position, pq.ByteaArray(topics)}
	var found struct {
		Count int64 `db:"count"`
		Bytes int64 `db:"bytes"`
	}
	if err := db.db.GetContext(ctx, &found, `SELECT count(*) AS count, coalesce(sum(length(data)), 0) AS bytes`+from, args...); err != nil {
		return nil, wrap(err, "count the chunks of batch "+batch.String())
	}
	if found.Count > maxCount || found.Bytes > maxBytes {
		return nil, fmt.Errorf("batch %s: %w: %d with %d bytes", batch, ErrTooManyChunks, found.Count, found.Bytes)
	}
	chunks := [][]byte{}
	err := db.db.SelectContext(ctx, &chunks, `SELECT data`+from+` ORDER BY position`, args...)
	return chunks, wrap(err, "read the chunks of batch "+batch.String())
}

// ErrTooManyChunks means that more was written to the chain for one batch than a batch may have.
var ErrTooManyChunks = errors.New("too many chunks")

// MovePins moves the namespace's position over logs that do not concern it.
func (db *DB) MovePins(ctx context.Context, lease Lease, namespace string, position int64) error {
	return db.inTx(ctx, "move over the pins of namespace "+namespace, func(tx *sqlx.Tx) error {
		_, err := movePins(ctx, tx, lease, namespace, position)
		return err
	})
}

// movePins moves the namespace's position. It is false when the position was there already: whatever stands there is applied.
func movePins(ctx context.Context, tx *sqlx.Tx, lease Lease, namespace string, position int64) (bool, error) {
	if err := checkLease(ctx, tx, lease); err != nil {
		return false, err
	}
	result, err := tx.ExecContext(ctx, `
		INSERT INTO pin_cursors (namespace, position) VALUES ($1, $2)
		ON CONFLICT (namespace) DO UPDATE SET position = excluded.position WHERE pin_cursors.position < excluded.position`, namespace, position)
	if err != nil {
		return false, fmt.Errorf("move the position: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("move the position: %w", err)
	}
	return n == 1, nil
}

// settlePin notes that the pin is applied or refused. It is false when it was before.
func settlePin(ctx context.Context, tx *sqlx.Tx, lease Lease, namespace string, pin *Pin) (bool, error) {
	if !pin.Deferred {
		return movePins(ctx, tx, lease, namespace, pin.Position)
	}
	if err := checkLease(ctx, tx, lease); err != nil {
		return false, err
	}
	result, err := tx.ExecContext(ctx, `DELETE FROM deferred_pins WHERE namespace = $1 AND position = $2`, namespace, pin.Position)
	if err != nil {
		return false, fmt.Errorf("settle the deferred pin: %w", err)
	}
	n, err := result.RowsAffected()
	if err != nil {
		return false, fmt.Errorf("settle the deferred pin: %w", err)
	}
	return n == 1, nil
}

// pinSettled tells whether the pin was applied or refused before.
func pinSettled(ctx context.Context, tx *sqlx.Tx, namespace string, pin *Pin) (bool, error) {
	var applied bool
	err := tx.GetContext(ctx, &applied, `
		SELECT CASE WHEN $3 THEN NOT EXISTS (SELECT 1 FROM deferred_pins WHERE namespace = $1 AND position = $2)
			ELSE EXISTS (SELECT 1 FROM pin_cursors WHERE namespace = $1 AND position >= $2) END`, namespace, pin.Position, pin.Deferred)
	if err != nil {
		return false, fmt.Errorf("read the position: %w", err)
	}
	return applied, nil
}

// RefusedPin is a batch that was pinned but not applied, and why.
type RefusedPin struct {
	Namespace   string    `db:"namespace"`
	Position    int64     `db:"position"`
	Author      string    `db:"author"` // the account that pinned it
	Batch       uuid.UUID `db:"batch"`
	BlockNumber int64     `db:"block_number"`
	TxHash      []byte    `db:"tx_hash"`
	Reason      string    `db:"reason"`
	Created     time.Time `db:"created"`
}

// RefusedPins returns the newest refused batches of a namespace.
func (db *DB) RefusedPins(ctx context.Context, namespace string, limit int) ([]RefusedPin, error) {
	refused := []RefusedPin{}
	err := db.db.SelectContext(ctx, &refused, `
		SELECT namespace, position, author, batch, block_number, tx_hash, reason, created FROM refused_pins
		WHERE namespace = $1 ORDER BY position DESC LIMIT $2`, namespace, limit)
	return refused, wrap(err, "read the refused batches of namespace "+namespace)
}

// RefusePin records that the batch is not applied, and moves the namespace's position behind it. Where it is this member's own batch (same id, author
// and hash, not decided before), its messages are rejected for the same reason.
func (db *DB) RefusePin(ctx context.Context, lease Lease, namespace string, pin *Pin, batch *Batch, reason string) error {
	err := db.inTxAppending(ctx, "refuse batch "+batch.ID.String(), func(tx *sqlx.Tx) ([]Event, error) {
		if fresh, err := settlePin(ctx, tx, lease, namespace, pin); err != nil || !fresh {
			return nil, err
		}
		return refusePin(ctx, tx, namespace, pin, batch, reason)
	})
	if err == nil {
		db.Notify(TopicMessages(namespace), TopicAPIs(namespace))
	}
	return err
}

// refusePin returns the events that the refusal leads to.
func refusePin(ctx context.Context, tx *sqlx.Tx, namespace string, pin *Pin, batch *Batch, reason string) ([]Event, error) {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO refused_pins (namespace, position, author, batch, block_number, tx_hash, reason, created)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		namespace, pin.Position, batch.Author, batch.ID, pin.BlockNumber, pin.TxHash, reason, Now())
	if err != nil {
		return nil, fmt.Errorf("record the refusal: %w", err)
	}
	var own []uuid.UUID
	err = tx.SelectContext(ctx, &own, `
		SELECT id FROM batches WHERE namespace = $1 AND id = $2 AND author = $3 AND hash = $4 AND operation IS NOT NULL AND pin IS NULL FOR UPDATE`,
		namespace, batch.ID, batch.Author, batch.Hash)
	if err != nil {
		return nil, fmt.Errorf("look for the own batch: %w", err)
	}
	if len(own) == 0 {
		return nil, nil
	}
	return rejectBatch(ctx, tx, namespace, batch.ID, batch.Author, reason)
}

// pinIsThere tells whether the log is still recorded, and keeps it so until the transaction ends: the reader deletes what a reorganisation took away.
func pinIsThere(ctx context.Context, tx *sqlx.Tx, pin *Pin) (bool, error) {
	var one int
	err := tx.GetContext(ctx, &one, `SELECT 1 FROM pins WHERE chain = $1 AND position = $2 FOR SHARE`, pin.Chain, pin.Position)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the pin: %w", err)
	}
	return true, nil
}
