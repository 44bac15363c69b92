package store

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
)

// EventQuery says which part of a namespace's history to read.
type EventQuery struct {
	Namespace string
	After     int64 // read on from here
	Limit     int   // rows
	Bytes     int64 // of bodies; at least one event is returned however big it is

	TypeContains string     // only events whose type contains this
	Listener     *uuid.UUID // only events of this listener
}

// EventPage is a piece of the history, in sequence order.
type EventPage struct {
	Events []Event
	// Through is how far the page reaches: no event up to here that passes the query is missing in it.
	Through int64
	// Head is the highest sequence that was committed when the page was read.
	Head int64
}

// filteredSpan bounds how many entries of the history one query with conditions looks at, however few of them pass. It is not larger because a database
// that has no statistics of the table yet sorts them all.
const filteredSpan = 10_000

// octet_length of a text does not fetch it from where big values are kept, so that rows beyond the bound on bytes cost nothing. The row of the
// namespace gives the head at the same instant as the events: entries up to it are all visible, because appends hold that row until they commit.
const sqlEventsAfter = `
	SELECT n.sequence, n.pruned, coalesce(p.found, 0), p.sequence, p.id, p.type, p.reference, p.transaction, p.topic, p.created, p.listener, p.name,
		p.author, p.tag, p."group", p.topics, p.tx_type, p.body_key, p.body
	FROM namespaces n LEFT JOIN (
		SELECT w.*, count(*) OVER () AS found,
			sum(octet_length(w.body)) OVER (ORDER BY w.sequence ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
		FROM (
			SELECT * FROM events
			WHERE namespace = $1 AND sequence > $2 AND sequence <= $2 + CAST($3 AS bigint)
				AND ($6 = '' OR strpos(type, $6) > 0) AND (CAST($7 AS uuid) IS NULL OR listener = $7)
			ORDER BY sequence LIMIT $4
		) w
	) p ON p.before IS NULL OR p.before < $5
	WHERE n.name = $1
	ORDER BY p.sequence`

// EventsAfter reads the next page of the history.
func (db *DB) EventsAfter(ctx context.Context, q EventQuery) (EventPage, error) {
	page := EventPage{Through: q.After}
	span := int64(q.Limit) // the sequence has no gaps
	if q.TypeContains != "" || q.Listener != nil {
		span = filteredSpan
	}
	read, err := db.prepared(ctx, sqlEventsAfter)
	if err != nil {
		return page, wrap(err, "read the history of namespace "+q.Namespace)
	}
	rows, err := read.QueryContext(ctx, q.Namespace, q.After, span, q.Limit, q.Bytes, q.TypeContains, q.Listener)
	if err != nil {
		return page, wrap(err, "read the history of namespace "+q.Namespace)
	}
	defer rows.Close()
	known, found, pruned := false, 0, int64(0)
	for rows.Next() {
		known = true
		e := Event{Namespace: q.Namespace}
		var row optionalEvent
		err := rows.Scan(&page.Head, &pruned, &found, &row.sequence, &row.id, &row.kind, &row.reference, &e.Transaction, &row.topic, &row.created, &e.Listener,
			&e.Name, &e.Author, &e.Tag, &e.Group, &e.Topics, &e.TxType, &row.bodyKey, &row.body)
		if err != nil {
			return page, wrap(err, "scan an event of namespace "+q.Namespace)
		}
		if !row.sequence.Valid {
			break // the row of the namespace alone: there are no events
		}
		e.Sequence, e.ID, e.Type, e.Reference, e.Topic = row.sequence.Int64, row.id.UUID, row.kind.String, row.reference.UUID, row.topic.String
		e.Created, e.BodyKey, e.Body = row.created.Time.UTC(), row.bodyKey.String, row.body.String
		if page.Events == nil {
			page.Events = make([]Event, 0, found)
		}
		page.Events = append(page.Events, e)
	}
	if err := rows.Err(); err != nil {
		return page, wrap(err, "read the history of namespace "+q.Namespace)
	}
	if !known {
		return page, missing(sql.ErrNoRows, "namespace", q.Namespace, "read the history")
	}
	if n := len(page.Events); n > 0 && (n < found || n >= q.Limit) {
		page.Through = page.Events[n-1].Sequence // there may be more behind it
	} else {
		page.Through = max(page.Through, min(page.Head, q.After+span), pruned)
	}
	return page, nil
}

// optionalEvent holds the columns that are null when there is no event.
type optionalEvent struct {
	sequence                   sql.NullInt64
	id, reference              uuid.NullUUID
	kind, topic, bodyKey, body sql.NullString
	created                    sql.NullTime
}

// EventByID returns one event of a namespace.
func (db *DB) EventByID(ctx context.Context, namespace string, id uuid.UUID) (Event, error) {
	var e Event
	err := db.db.GetContext(ctx, &e, `
		SELECT namespace, sequence, id, type, reference, transaction, topic, created, listener, name, author, tag, "group", topics, tx_type,
			body_key, body
		FROM events WHERE namespace = $1 AND id = $2`, namespace, id)
	e.Created = e.Created.UTC()
	return e, missing(err, "event", id.String(), "read event "+id.String())
}

// HeadSequence returns the highest sequence of a namespace's history; 0 when it is empty.
func (db *DB) HeadSequence(ctx context.Context, namespace string) (int64, error) {
	head, err := db.prepared(ctx, `SELECT sequence FROM namespaces WHERE name = $1`)
	if err != nil {
		return 0, wrap(err, "read the head of namespace "+namespace)
	}
	var sequence int64
	err = head.GetContext(ctx, &sequence, namespace)
	return sequence, missing(err, "namespace", namespace, "read the head of namespace "+namespace)
}

// AppendEvents appends events to the histories of their namespaces, in a transaction of its own, and fills in their sequences. Events without an
// id or a time get them.
func (db *DB) AppendEvents(ctx context.Context, events []Event) error {
	for i := range events {
		if events[i].ID == uuid.Nil {
			events[i].ID = NewID()
		}
		if events[i].Created.IsZero() {
			events[i].Created = Now()
		}
	}
	return db.inTxAppending(ctx, fmt.Sprintf("append %d events", len(events)), func(*sqlx.Tx) ([]Event, error) { return events, nil })
}
