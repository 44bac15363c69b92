package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Presence is what one process has to do with a subscription.
type Presence struct {
	Subscription uuid.UUID `db:"subscription"`
	Consumers    int       `db:"consumers"`
	InFlight     int       `db:"in_flight"`
	LastError    string    `db:"last_error"`
}

// ShowPresence lets other processes see what a process has to do with subscriptions, until it says something else or some time has passed. One without
// consumers is forgotten.
func (db *DB) ShowPresence(ctx context.Context, process uuid.UUID, list []Presence, lasting time.Duration) error {
	var ids, errors, gone []string
	var consumers, inFlight []int64
	for i := range list {
		p := &list[i]
		if p.Consumers == 0 {
			gone = append(gone, p.Subscription.String())
			continue
		}
		ids, errors = append(ids, p.Subscription.String()), append(errors, p.LastError)
		consumers, inFlight = append(consumers, int64(p.Consumers)), append(inFlight, int64(p.InFlight))
	}
	return db.inTx(ctx, "show who serves subscriptions", func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO presence (subscription, process, consumers, in_flight, last_error, expires)
			SELECT p.subscription, $1, p.consumers, p.in_flight, p.last_error, now() + $6 * interval '1 millisecond'
			FROM unnest(CAST($2 AS uuid[]), CAST($3 AS bigint[]), CAST($4 AS bigint[]), CAST($5 AS text[])) AS p (subscription, consumers, in_flight, last_error)
			ON CONFLICT (subscription, process) DO UPDATE
			SET consumers = excluded.consumers, in_flight = excluded.in_flight, last_error = excluded.last_error, expires = excluded.expires`,
			process, pq.Array(ids), pq.Array(consumers), pq.Array(inFlight), pq.Array(errors), lasting.Milliseconds())
		if err != nil {
			return fmt.Errorf("write: %w", err)
		}
		// Those who died have said nothing: whoever speaks clears up behind them.
		_, err = tx.ExecContext(ctx, `DELETE FROM presence WHERE process = $1 AND subscription = ANY(CAST($2 AS uuid[])) OR expires < now() - interval '1 hour'`,
			process, pq.Array(gone))
		if err != nil {
			return fmt.Errorf("clear: %w", err)
		}
		return nil
	})
}

// PresenceElsewhere adds up what all processes but one have to do with a subscription.
func (db *DB) PresenceElsewhere(ctx context.Context, subscription, process uuid.UUID) (Presence, error) {
	p := Presence{Subscription: subscription}
	err := db.db.GetContext(ctx, &p, `
		SELECT coalesce(sum(consumers), 0) AS consumers, coalesce(sum(in_flight), 0) AS in_flight, coalesce(max(last_error), '') AS last_error
		FROM presence WHERE subscription = $1 AND process <> $2 AND expires > now()`, subscription, process)
	return p, wrap(err, "read who serves a subscription")
}
