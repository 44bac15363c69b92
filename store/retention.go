package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// Retention says which events of a namespace's history are kept. An event goes when either bound says so; a zero bound says nothing.
type Retention struct {
	Age   time.Duration // events that are older go
	Count int64         // of the newest events; those before them go
	Force bool          // also events that a durable subscription has not passed yet
}

// Enabled tells whether anything ever goes.
func (r Retention) Enabled() bool { return r.Age > 0 || r.Count > 0 }

// Pruned is what PruneHistory did, or found.
type Pruned struct {
	Removed  int64 // events that are gone now
	More     bool  // there is more that may go
	HeldBack int64 // events that would go if no durable subscription were before them
	Kept     int64 // events that the history holds, those that are about to go included
}

// prunePiece is how many events one transaction removes at most.
const prunePiece = 2000

// PruneHistory removes the next piece of what the retention lets go, at most prunePiece events from the history's beginning. Blockchain events stay known to
// listeners, which record no log twice, but their values are gone. Call it again while there is more.
//
// First the namespace's mark moves, in one short transaction that sees all positions and that no subscription can be made beside; then the events below the
// mark go. Dying in between leaves events that nobody reads any more, and that the next call removes.
func (db *DB) PruneHistory(ctx context.Context, namespace string, keep Retention) (Pruned, error) {
	doing := "prune the history of namespace " + namespace
	result, err := db.removePruned(ctx, namespace)
	if err != nil || result.Removed > 0 {
		result.More = err == nil
		return result, wrap(err, doing)
	}
	var head, mark, target int64
	err = db.db.QueryRowxContext(ctx, `SELECT sequence, pruned FROM namespaces WHERE name = $1`, namespace).Scan(&head, &mark)
	if err != nil {
		return result, missing(err, "namespace", namespace, doing)
	}
	result.Kept = head - mark
	if target, err = db.pruneTarget(ctx, namespace, keep, head, mark); err != nil || target <= mark {
		return result, wrap(err, doing)
	}
	err = db.inTx(ctx, doing, func(tx *sqlx.Tx) error {
		// Whoever makes a subscription holds this row too, and then finds the new mark, or is found here.
		if err := tx.GetContext(ctx, &mark, `SELECT pruned FROM namespaces WHERE name = $1 FOR NO KEY UPDATE`, namespace); err != nil {
			return fmt.Errorf("lock the namespace: %w", err)
		}
		allowed := target
		if !keep.Force {
			var slowest sql.NullInt64
			if err := tx.GetContext(ctx, &slowest, `SELECT min(position) FROM subscriptions WHERE namespace = $1`, namespace); err != nil {
				return fmt.Errorf("look for the slowest subscription: %w", err)
			}
			if slowest.Valid {
				allowed = min(allowed, slowest.Int64)
			}
		}
		result.HeldBack = max(0, target-max(allowed, mark))
		allowed = min(allowed, mark+prunePiece)
		if allowed <= mark {
			return nil
		}
		result.More = true
		if _, err := tx.ExecContext(ctx, `UPDATE namespaces SET pruned = $2 WHERE name = $1`, namespace, allowed); err != nil {
			return fmt.Errorf("move the mark: %w", err)
		}
		return nil
	})
	if err != nil || !result.More {
		return result, err
	}
	removed, err := db.removePruned(ctx, namespace)
	result.Removed = removed.Removed
	result.Kept -= removed.Removed
	return result, wrap(err, doing)
}

// pruneTarget is the last sequence that the bounds let go, whoever has not passed it. It looks no further than one event per call needs.
func (db *DB) pruneTarget(ctx context.Context, namespace string, keep Retention, head, mark int64) (int64, error) {
	target := mark
	if keep.Count > 0 {
		target = max(target, head-keep.Count)
	}
	if keep.Age <= 0 || target >= head {
		return target, nil
	}
	// The history is in the order of time, give or take what happened at the same moment: halving finds where the old events end.
	old := func(sequence int64) (bool, error) {
		var is bool
		err := db.db.GetContext(ctx, &is, `SELECT created < now() - $3 * interval '1 millisecond' FROM events WHERE namespace = $1 AND sequence = $2`,
			namespace, sequence, keep.Age.Milliseconds())
		if errors.Is(err, sql.ErrNoRows) {
			return true, nil // gone already
		}
		return is, err //nolint:wrapcheck // the caller does
	}
	low, high := target, head+1 // low is old, high is not
	for low+1 < high {
		middle := low + (high-low)/2
		is, err := old(middle)
		if err != nil {
			return 0, err
		}
		if is {
			low = middle
		} else {
			high = middle
		}
	}
	return low, nil
}

// removePruned removes up to a piece of the events below the mark.
func (db *DB) removePruned(ctx context.Context, namespace string) (Pruned, error) {
	result, err := db.db.ExecContext(ctx, `
		DELETE FROM events e USING (
			SELECT w.sequence FROM events w JOIN namespaces n ON n.name = w.namespace
			WHERE w.namespace = $1 AND w.sequence <= n.pruned ORDER BY w.sequence LIMIT $2
		) g WHERE e.namespace = $1 AND e.sequence = g.sequence`, namespace, prunePiece)
	if err != nil {
		return Pruned{}, wrap(err, "remove old events")
	}
	n, err := result.RowsAffected()
	return Pruned{Removed: n}, wrap(err, "remove old events")
}

// HistorySize is how many bytes the histories of all namespaces take, with their indexes.
func (db *DB) HistorySize(ctx context.Context) (int64, error) {
	var size int64
	err := db.db.GetContext(ctx, &size, `SELECT pg_total_relation_size('events') + pg_total_relation_size('blockchain_events')`)
	return size, wrap(err, "measure the history")
}

// HistoryEvents is how many events the history of a namespace holds.
func (db *DB) HistoryEvents(ctx context.Context, namespace string) (int64, error) {
	var n int64
	err := db.db.GetContext(ctx, &n, `SELECT sequence - pruned FROM namespaces WHERE name = $1`, namespace) // there are no gaps
	return n, missing(err, "namespace", namespace, "count the history of namespace "+namespace)
}
