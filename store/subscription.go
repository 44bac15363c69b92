package store

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// Subscription is a durable subscription: what an application wants to hear, and how far it has heard it.
type Subscription struct {
	ID        uuid.UUID       `db:"id"`
	Namespace string          `db:"namespace"`
	Name      string          `db:"name"`
	Transport string          `db:"transport"`
	Filter    json.RawMessage `db:"filter"`   // as answered
	Options   json.RawMessage `db:"options"`  // as answered, firstEvent resolved
	Position  int64           `db:"position"` // everything up to here is acknowledged or filtered out
	Beyond    pq.Int64Array   `db:"beyond"`   // acknowledged out of order, beyond the position: pairs of first and last sequence
	Created   time.Time       `db:"created"`
	Updated   *time.Time      `db:"updated"`
}

// JSON is kept as text, which database/sql does not scan into a json.RawMessage: it is read as bytes.
const subscriptionColumns = `id, namespace, name, transport, convert_to(filter, 'UTF8') AS filter, convert_to(options, 'UTF8') AS options,
	position, beyond, created, updated`

// LeaseSubscription names the lease under which a subscription is delivered.
func LeaseSubscription(id uuid.UUID) string { return "subscription/" + id.String() }

// FirstEvent settles where a new subscription starts: given the highest sequence of its namespace, it returns the options to keep
// and the position. It runs inside the transaction that makes the subscription.
type FirstEvent func(head int64) (options json.RawMessage, position int64)

// CreateSubscription makes a new subscription and fills in what it was given: id, options, position, time.
func (db *DB) CreateSubscription(ctx context.Context, s *Subscription, first FirstEvent) error {
	err := db.inTx(ctx, "create subscription "+s.Name, func(tx *sqlx.Tx) error { return insertSubscription(ctx, tx, s, first) })
	if violates(err, "subscriptions_name") {
		return pactwire.Conflict("subscription_name_taken", "There already is a subscription named %q.", s.Name)
	}
	if err == nil {
		db.Notify(TopicSubscriptions(s.Namespace))
	}
	return err
}

func insertSubscription(ctx context.Context, tx *sqlx.Tx, s *Subscription, first FirstEvent) error {
	var head, pruned int64
	// Locked, so that no event that the subscription is to hear is let go while it is made.
	err := tx.QueryRowxContext(ctx, `SELECT sequence, pruned FROM namespaces WHERE name = $1 FOR SHARE`, s.Namespace).Scan(&head, &pruned)
	if err != nil {
		return missing(err, "namespace", s.Namespace, "read the head of the history")
	}
	s.ID, s.Created = NewID(), Now()
	s.Options, s.Position = first(head)
	if pruned > 0 {
		s.Position = max(s.Position, pruned) // from the first event that there is
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO subscriptions (id, namespace, name, transport, filter, options, position, created) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)`,
		s.ID, s.Namespace, s.Name, s.Transport, string(s.Filter), string(s.Options), s.Position, s.Created)
	if err != nil {
		return fmt.Errorf("insert the subscription: %w", err)
	}
	return nil
}

// UpsertSubscription creates the subscription, or changes the filter, the options and the transport of the one with that name; the position of an
// existing one never moves. keep says which options an existing one gets, given those it has. It returns whether it was created.
func (db *DB) UpsertSubscription(ctx context.Context, s *Subscription, first FirstEvent, keep func(old json.RawMessage) json.RawMessage) (bool, error) {
	for {
		created := false
		err := db.inTx(ctx, "put subscription "+s.Name, func(tx *sqlx.Tx) error {
			var old Subscription
			err := tx.GetContext(ctx, &old, `SELECT `+subscriptionColumns+` FROM subscriptions WHERE namespace = $1 AND name = $2 FOR UPDATE`,
				s.Namespace, s.Name)
			if errors.Is(err, sql.ErrNoRows) {
				created = true
				return insertSubscription(ctx, tx, s, first)
			}
			if err != nil {
				return fmt.Errorf("read the subscription: %w", err)
			}
			err = tx.GetContext(ctx, s, `
				UPDATE subscriptions SET transport = $2, filter = $3, options = $4, updated = $5 WHERE id = $1 RETURNING `+subscriptionColumns,
				old.ID, s.Transport, string(s.Filter), string(keep(old.Options)), Now())
			if err != nil {
				return fmt.Errorf("update the subscription: %w", err)
			}
			return nil
		})
		if violates(err, "subscriptions_name") {
			continue // somebody made it in between: now it is there to be changed
		}
		if err == nil {
			db.Notify(TopicSubscriptions(s.Namespace))
		}
		return created, err
	}
}

// Subscription returns one subscription by its id or its name.
func (db *DB) Subscription(ctx context.Context, namespace, idOrName string) (Subscription, error) {
	var s Subscription
	column, key := "name", any(idOrName)
	if id, err := uuid.Parse(idOrName); err == nil {
		column, key = "id", id
	}
	err := db.db.GetContext(ctx, &s, `SELECT `+subscriptionColumns+` FROM subscriptions WHERE namespace = $1 AND `+column+` = $2`, namespace, key)
	return s, missing(err, "subscription", idOrName, "read subscription "+idOrName)
}

// SubscriptionsByID returns those of the subscriptions that still exist.
func (db *DB) SubscriptionsByID(ctx context.Context, ids []uuid.UUID) ([]Subscription, error) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = id.String()
	}
	var list []Subscription
	err := db.db.SelectContext(ctx, &list, `SELECT `+subscriptionColumns+` FROM subscriptions WHERE id = ANY(CAST($1 AS uuid[]))`, pq.Array(keys))
	return list, wrap(err, "read subscriptions")
}

// DeleteSubscription removes one subscription, by its id or its name.
func (db *DB) DeleteSubscription(ctx context.Context, namespace, idOrName string) error {
	s, err := db.Subscription(ctx, namespace, idOrName)
	if err != nil {
		return err
	}
	err = db.inTx(ctx, "delete subscription "+s.Name, func(tx *sqlx.Tx) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM subscriptions WHERE id = $1`, s.ID)
		if err != nil {
			return fmt.Errorf("delete the row: %w", err)
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return missing(cmp.Or(err, error(sql.ErrNoRows)), "subscription", idOrName, "delete the row")
		}
		if _, err := tx.ExecContext(ctx, `DELETE FROM leases WHERE name = $1`, LeaseSubscription(s.ID)); err != nil {
			return fmt.Errorf("delete the lease: %w", err)
		}
		return nil
	})
	if err == nil {
		db.Notify(TopicSubscriptions(namespace))
	}
	return err
}

// ClaimSubscription reads a subscription for the new owner of its lease, and fences every former owner: a position that one of them still
// writes can no longer come after what is read here.
func (db *DB) ClaimSubscription(ctx context.Context, id uuid.UUID, epoch int64) (Subscription, error) {
	var s Subscription
	err := db.db.GetContext(ctx, &s, `UPDATE subscriptions SET epoch = $2 WHERE id = $1 AND epoch <= $2 RETURNING `+subscriptionColumns, id, epoch)
	if errors.Is(err, sql.ErrNoRows) {
		return s, db.fencedOrGone(ctx, id)
	}
	return s, wrap(err, "claim subscription "+id.String())
}

// Move is how far a subscription has been consumed, as the owner of its lease knows it.
type Move struct {
	ID       uuid.UUID
	Epoch    int64 // of the lease
	Position int64
	Beyond   []int64 // as in Subscription
}

// MoveSubscriptions keeps how far subscriptions have been consumed, in one statement, which takes part or not for each of them: it returns an error for
// each. That is ErrFenced when the lease has a newer owner, and a pactwire.KindNotFound when the subscription is gone.
func (db *DB) MoveSubscriptions(ctx context.Context, moves []Move) []error {
	failed := make([]error, len(moves))
	fail := func(err error) []error {
		for i := range failed {
			failed[i] = wrap(err, "move subscriptions")
		}
		return failed
	}
	n := len(moves)
	ids, epochs, positions, beyond := make([]string, n), make([]int64, n), make([]int64, n), make([]string, n)
	index := make(map[uuid.UUID]int, n)
	for i := range moves {
		m := &moves[i]
		ids[i], epochs[i], positions[i] = m.ID.String(), m.Epoch, m.Position
		beyond[i] = "{" + strings.Trim(strings.ReplaceAll(fmt.Sprint(m.Beyond), " ", ","), "[]") + "}"
		index[m.ID] = i
	}
	move, err := db.prepared(ctx, `
		UPDATE subscriptions s SET position = m.position, beyond = CAST(m.beyond AS bigint[]), epoch = m.epoch
		FROM unnest(CAST($1 AS uuid[]), CAST($2 AS bigint[]), CAST($3 AS bigint[]), CAST($4 AS text[])) AS m (id, epoch, position, beyond)
		WHERE s.id = m.id AND s.epoch <= m.epoch RETURNING s.id`)
	if err != nil {
		return fail(err)
	}
	var moved []uuid.UUID
	if err := move.SelectContext(ctx, &moved, pq.Array(ids), pq.Array(epochs), pq.Array(positions), pq.Array(beyond)); err != nil {
		return fail(err)
	}
	for _, id := range moved {
		delete(index, id)
	}
	for id, i := range index {
		failed[i] = db.fencedOrGone(ctx, id)
	}
	return failed
}

func (db *DB) fencedOrGone(ctx context.Context, id uuid.UUID) error {
	left, err := db.SubscriptionsByID(ctx, []uuid.UUID{id})
	switch {
	case err != nil:
		return err
	case len(left) == 0:
		return pactwire.NotFound("subscription", "The subscription %s was deleted.", id)
	}
	return fmt.Errorf("subscription %s: %w", id, ErrFenced)
}
