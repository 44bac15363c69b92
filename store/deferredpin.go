package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// DeferredPin is a log of the pin contract that could not be applied when its turn came.
type DeferredPin struct {
	Pin
	Contexts pq.ByteaArray `db:"contexts"`
	Reason   string        `db:"reason"`
	Tries    int           `db:"tries"`
	NextTry  time.Time     `db:"next_try"`
}

// EveryContext overlaps with all contexts.
var EveryContext = make([]byte, 8)

// overlap is the condition that the contexts of d overlap with the expression.
func overlap(other string) string {
	return `(d.contexts && ` + other + ` OR CAST('\x0000000000000000' AS bytea) = ANY (d.contexts) OR CAST('\x0000000000000000' AS bytea) = ANY (` + other + `))`
}

// DeferPin moves the namespace's position over the pin, and keeps it to be applied later: after everything before it whose contexts overlap with its own.
func (db *DB) DeferPin(ctx context.Context, lease Lease, namespace string, pin *Pin, contexts [][]byte, reason string, nextTry time.Time) error {
	return db.inTx(ctx, "defer a pin of namespace "+namespace, func(tx *sqlx.Tx) error {
		if fresh, err := movePins(ctx, tx, lease, namespace, pin.Position); err != nil || !fresh {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			INSERT INTO deferred_pins (namespace, chain, position, contexts, reason, next_try, created) VALUES ($1, $2, $3, $4, $5, $6, $7)`,
			namespace, pin.Chain, pin.Position, pq.ByteaArray(contexts), reason, nextTry, Now())
		if err != nil {
			return fmt.Errorf("record the deferral: %w", err)
		}
		return nil
	})
}

// PinsDeferred counts the namespace's deferred pins.
func (db *DB) PinsDeferred(ctx context.Context, namespace string) (int, error) {
	var n int
	err := db.db.GetContext(ctx, &n, `SELECT count(*) FROM deferred_pins WHERE namespace = $1`, namespace)
	return n, wrap(err, "count the deferred pins of namespace "+namespace)
}

// MustWait tells whether one of the namespace's deferred pins has contexts that overlap with the given ones.
func (db *DB) MustWait(ctx context.Context, namespace string, contexts [][]byte) (bool, error) {
	var wait bool
	err := db.db.GetContext(ctx, &wait, `
		SELECT EXISTS (SELECT 1 FROM deferred_pins d WHERE d.namespace = $1 AND `+overlap(`CAST($2 AS bytea[])`)+`)`, namespace, pq.ByteaArray(contexts))
	return wait, wrap(err, "look for what a pin depends on")
}

// DuePins returns the deferred pins whose turn it is: they do not wait for another one, and the pause since the last try is over. Those that a reorganisation
// took away are forgotten.
func (db *DB) DuePins(ctx context.Context, namespace string, limit int) ([]DeferredPin, error) {
	doing := "read the deferred pins of namespace " + namespace
	_, err := db.db.ExecContext(ctx, `
		DELETE FROM deferred_pins d WHERE d.namespace = $1 AND NOT EXISTS (SELECT 1 FROM pins p WHERE p.chain = d.chain AND p.position = d.position)`, namespace)
	if err != nil {
		return nil, wrap(err, doing)
	}
	var due []DeferredPin
	err = db.db.SelectContext(ctx, &due, `
		SELECT p.chain, p.position, p.block_number, p.tx_index, p.log_index, p.block_hash, p.tx_hash, p.topics, p.data,
			e.contexts, e.reason, e.tries, e.next_try
		FROM deferred_pins e JOIN pins p ON p.chain = e.chain AND p.position = e.position
		WHERE e.namespace = $1 AND e.next_try <= $2 AND NOT EXISTS (
			SELECT 1 FROM deferred_pins d WHERE d.namespace = e.namespace AND d.position < e.position AND `+overlap("e.contexts")+`)
		ORDER BY e.position LIMIT $3`, namespace, Now(), limit)
	for i := range due {
		due[i].Deferred, due[i].Pin.Tries = true, due[i].Tries
	}
	return due, wrap(err, doing)
}

// PostponePin notes that a deferred pin was tried in vain.
func (db *DB) PostponePin(ctx context.Context, lease Lease, namespace string, position int64, reason string, nextTry time.Time) error {
	return db.inTx(ctx, "postpone a pin of namespace "+namespace, func(tx *sqlx.Tx) error {
		if err := checkLease(ctx, tx, lease); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `
			UPDATE deferred_pins SET reason = $3, next_try = $4, tries = tries + 1 WHERE namespace = $1 AND position = $2`, namespace, position, reason, nextTry)
		if err != nil {
			return fmt.Errorf("write the next try: %w", err)
		}
		return nil
	})
}
