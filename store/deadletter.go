package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// DeadLetter is an event that a webhook did not take in spite of all tries. The subscription's position has passed it.
type DeadLetter struct {
	Subscription uuid.UUID  `db:"subscription"`
	Sequence     int64      `db:"sequence"`
	Event        uuid.UUID  `db:"event"`
	Payload      string     `db:"payload"` // the event as it was posted
	Attempts     int        `db:"attempts"`
	Reason       string     `db:"reason"`
	Status       int        `db:"status"`  // of the last answer; 0 when there was none
	Created      time.Time  `db:"created"` // when it was given up
	Redrive      *time.Time `db:"redrive"` // when it was asked to be delivered again
}

const deadLetterColumns = `subscription, sequence, event, payload, attempts, reason, status, created, redrive`

// ownSubscription fails with ErrFenced, or a pactwire.KindNotFound, unless the lease's epoch is still the highest; it stays so until the transaction ends.
func (db *DB) ownSubscription(ctx context.Context, tx *sqlx.Tx, id uuid.UUID, epoch int64) error {
	var known []int64
	if err := tx.SelectContext(ctx, &known, `SELECT epoch FROM subscriptions WHERE id = $1 FOR UPDATE`, id); err != nil {
		return fmt.Errorf("read the subscription's epoch: %w", err)
	}
	switch {
	case len(known) == 0:
		return pactwire.NotFound("subscription", "The subscription %s was deleted.", id)
	case known[0] > epoch:
		return fmt.Errorf("subscription %s: %w", id, ErrFenced)
	}
	return nil
}

// MoveWithDeadLetters moves a subscription past events that could not be delivered, and keeps them, in one transaction: neither happens without the
// other. It fails with ErrFenced when the lease has a newer owner.
func (db *DB) MoveWithDeadLetters(ctx context.Context, m Move, letters []DeadLetter) error {
	return db.inTx(ctx, "keep dead letters", func(tx *sqlx.Tx) error {
		if err := db.ownSubscription(ctx, tx, m.ID, m.Epoch); err != nil {
			return err
		}
		beyond := m.Beyond
		if beyond == nil {
			beyond = []int64{}
		}
		_, err := tx.ExecContext(ctx, `UPDATE subscriptions SET position = $2, beyond = $3, epoch = $4 WHERE id = $1`, m.ID, m.Position, pq.Array(beyond), m.Epoch)
		if err != nil {
			return fmt.Errorf("move the position: %w", err)
		}
		return putDeadLetters(ctx, tx, m.ID, letters)
	})
}

func putDeadLetters(ctx context.Context, tx *sqlx.Tx, subscription uuid.UUID, letters []DeadLetter) error {
	for i := range letters {
		l := &letters[i]
		_, err := tx.ExecContext(ctx, `
			INSERT INTO dead_letters (subscription, sequence, event, payload, attempts, reason, status, created) VALUES ($1, $2, $3, $4, $5, $6, $7, now())
			ON CONFLICT (subscription, sequence) DO UPDATE
			SET attempts = dead_letters.attempts + excluded.attempts, reason = excluded.reason, status = excluded.status, created = excluded.created, redrive = NULL`,
			subscription, l.Sequence, l.Event, l.Payload, l.Attempts, l.Reason, l.Status)
		if err != nil {
			return fmt.Errorf("insert a dead letter: %w", err)
		}
	}
	if _, err := tx.ExecContext(ctx, `DELETE FROM delivery_attempts WHERE subscription = $1`, subscription); err != nil {
		return fmt.Errorf("forget the tries: %w", err)
	}
	return nil
}

// SettleRedriven takes dead letters that were delivered after all out of the list, and puts those that failed again back into it.
// It fails with ErrFenced when the lease has a newer owner.
func (db *DB) SettleRedriven(ctx context.Context, subscription uuid.UUID, epoch int64, delivered []int64, failed []DeadLetter) error {
	return db.inTx(ctx, "settle redriven events", func(tx *sqlx.Tx) error {
		if err := db.ownSubscription(ctx, tx, subscription, epoch); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM dead_letters WHERE subscription = $1 AND sequence = ANY($2)`, subscription, pq.Array(delivered))
		if err != nil {
			return fmt.Errorf("delete dead letters: %w", err)
		}
		return putDeadLetters(ctx, tx, subscription, failed)
	})
}

// Redrive asks for dead letters of a subscription to be delivered again: those of the events, or all when none is named. It returns how many there are.
func (db *DB) Redrive(ctx context.Context, s Subscription, events []uuid.UUID) (int64, error) {
	result, err := db.db.ExecContext(ctx, `
		UPDATE dead_letters SET redrive = now() WHERE subscription = $1 AND redrive IS NULL AND (cardinality(CAST($2 AS uuid[])) = 0 OR event = ANY(CAST($2 AS uuid[])))`,
		s.ID, pq.Array(idTexts(events)))
	if err != nil {
		return 0, wrap(err, "redrive the dead letters of subscription "+s.Name)
	}
	n, err := result.RowsAffected()
	if n > 0 {
		db.Notify(TopicSubscriptions(s.Namespace))
	}
	return n, wrap(err, "redrive the dead letters of subscription "+s.Name)
}

// NextRedriven returns the oldest dead letters that are to be delivered again, at most that many events and, beyond the first, that many bytes.
func (db *DB) NextRedriven(ctx context.Context, subscription uuid.UUID, limit, bytes int) ([]DeadLetter, error) {
	var list []DeadLetter
	err := db.db.SelectContext(ctx, &list, `
		SELECT `+deadLetterColumns+` FROM (
			SELECT *, sum(octet_length(payload)) OVER (ORDER BY sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
			FROM (SELECT * FROM dead_letters WHERE subscription = $1 AND redrive IS NOT NULL ORDER BY sequence LIMIT $2) l
		) l WHERE before IS NULL OR before < $3 ORDER BY sequence`, subscription, limit, bytes)
	return list, wrap(err, "read redriven events")
}

// WithRedriven returns those of the subscriptions that have dead letters to be delivered again.
func (db *DB) WithRedriven(ctx context.Context, ids []uuid.UUID) ([]uuid.UUID, error) {
	var list []uuid.UUID
	err := db.db.SelectContext(ctx, &list, `
		SELECT DISTINCT subscription FROM dead_letters WHERE subscription = ANY(CAST($1 AS uuid[])) AND redrive IS NOT NULL`, pq.Array(idTexts(ids)))
	return list, wrap(err, "look for redriven events")
}

// CountDeadLetters returns how many dead letters a subscription has.
func (db *DB) CountDeadLetters(ctx context.Context, subscription uuid.UUID) (int64, error) {
	var n int64
	err := db.db.GetContext(ctx, &n, `SELECT count(*) FROM dead_letters WHERE subscription = $1`, subscription)
	return n, wrap(err, "count dead letters")
}

// The subscription's id stands in the place of the namespace.
var deadLetterListing = listing{
	resource: "dead letter", columns: deadLetterColumns, from: "dead_letters", where: "subscription = CAST($1 AS uuid)", key: column{"sequence", "bigint"},
	fields: map[string]column{
		"sequence": {"sequence", "bigint"}, "event": idColumn("event"), "created": timeColumn("created"), "attempts": {"attempts", "integer"},
	},
}

// ListDeadLetters returns a page of a subscription's dead letters.
func (db *DB) ListDeadLetters(ctx context.Context, subscription uuid.UUID, p Page) ([]DeadLetter, PageInfo, error) {
	return list[DeadLetter](ctx, db, deadLetterListing, subscription.String(), p)
}

// DeliveryAttempt is the trouble that a webhook subscription has with what it is about to deliver.
type DeliveryAttempt struct {
	Subscription uuid.UUID `db:"subscription"`
	Sequence     int64     `db:"sequence"` // of the first event that is tried
	Redriven     bool      `db:"redriven"` // it comes from the dead letters
	Attempts     int       `db:"attempts"`
	Reason       string    `db:"reason"`
	Status       int       `db:"status"` // of the last answer; 0 when there was none
	Next         time.Time `db:"next"`   // when the next try is due
}

// SaveAttempt keeps how often a delivery was tried. Nothing happens when the lease has a newer owner.
func (db *DB) SaveAttempt(ctx context.Context, a DeliveryAttempt, epoch int64) error {
	_, err := db.db.ExecContext(ctx, `
		INSERT INTO delivery_attempts (subscription, sequence, redriven, attempts, reason, status, next)
		SELECT id, $3, $4, $5, $6, $7, $8 FROM subscriptions WHERE id = $1 AND epoch <= $2
		ON CONFLICT (subscription) DO UPDATE SET sequence = excluded.sequence, redriven = excluded.redriven, attempts = excluded.attempts,
			reason = excluded.reason, status = excluded.status, next = excluded.next`,
		a.Subscription, epoch, a.Sequence, a.Redriven, a.Attempts, a.Reason, a.Status, a.Next)
	return wrap(err, "keep a delivery's tries")
}

// ClearAttempt forgets the trouble: it is over.
func (db *DB) ClearAttempt(ctx context.Context, subscription uuid.UUID, epoch int64) error {
	_, err := db.db.ExecContext(ctx, `
		DELETE FROM delivery_attempts USING subscriptions s WHERE subscription = $1 AND s.id = $1 AND s.epoch <= $2`, subscription, epoch)
	return wrap(err, "forget a delivery's tries")
}

// Attempt returns the trouble of a subscription; false when there is none.
func (db *DB) Attempt(ctx context.Context, subscription uuid.UUID) (DeliveryAttempt, bool, error) {
	var list []DeliveryAttempt
	err := db.db.SelectContext(ctx, &list, `
		SELECT a.* FROM delivery_attempts a JOIN subscriptions s ON s.id = a.subscription
		WHERE a.subscription = $1 AND (a.redriven OR a.sequence > s.position)`, subscription)
	if err != nil || len(list) == 0 {
		return DeliveryAttempt{}, false, wrap(err, "read a delivery's tries")
	}
	return list[0], true, nil
}

// SubscriptionsByTransport returns the subscriptions of all namespaces that have a transport.
func (db *DB) SubscriptionsByTransport(ctx context.Context, transport string) ([]Subscription, error) {
	var list []Subscription
	err := db.db.SelectContext(ctx, &list, `SELECT `+subscriptionColumns+` FROM subscriptions WHERE transport = $1`, transport)
	return list, wrap(err, "list subscriptions by transport")
}

func idTexts(ids []uuid.UUID) []string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	return texts
}
