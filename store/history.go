package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// The event types of the history (decisions, section 8).
const (
	EventBlockchainReceived = "blockchain_event_received"
	EventBlockchainRemoved  = "blockchain_event_removed"
	EventMessageConfirmed   = "message_confirmed"
	EventMessageRejected    = "message_rejected"
	EventInterfaceConfirmed = "contract_interface_confirmed"
	EventAPIConfirmed       = "contract_api_confirmed"
	EventInvokeSucceeded    = "blockchain_invoke_op_succeeded"
	EventInvokeFailed       = "blockchain_invoke_op_failed"
)

// The names under which an event's enrichment stands in its frame.
const (
	BodyBlockchainEvent = "blockchainevent"
	BodyMessage         = "message"
	BodyInterface       = "contractInterface"
	BodyAPI             = "contractAPI"
	BodyOperation       = "operation"
)

// Event is one entry of a namespace's history.
type Event struct {
	Namespace   string         `db:"namespace"`
	Sequence    int64          `db:"sequence"` // position in the namespace's history; given by appendHistory
	ID          uuid.UUID      `db:"id"`
	Type        string         `db:"type"`
	Reference   uuid.UUID      `db:"reference"`   // the blockchain event, message, interface, API or operation that it is about
	Transaction *uuid.UUID     `db:"transaction"` // the transaction of ours that it belongs to
	Topic       string         `db:"topic"`
	Created     time.Time      `db:"created"`
	Listener    *uuid.UUID     `db:"listener"` // blockchain events: the listener that heard it
	Name        *string        `db:"name"`     // blockchain events: the contract event's name
	Author      *string        `db:"author"`   // messages
	Tag         *string        `db:"tag"`      // messages
	Group       *string        `db:"group"`    // messages
	Topics      pq.StringArray `db:"topics"`   // messages
	TxType      *string        `db:"tx_type"`
	BodyKey     string         `db:"body_key"` // the enrichment's name in the frame
	// Body is the enrichment: a JSON object, without the members that follow from the sequence. A blockchain event's own
	// `sequence` is that of its event_received entry, and is written into the object when it is read.
	Body string `db:"body"`
}

// The row locks of the namespaces are taken in the order of their names, so that two transactions cannot block each other for ever. What is asked for is how far
// each history reached before.
const sqlAppendHistory = `
	WITH given AS (
		SELECT * FROM unnest(CAST($1 AS text[]), CAST($2 AS uuid[]), CAST($3 AS text[]), CAST($4 AS uuid[]), CAST($5 AS uuid[]), CAST($6 AS text[]),
			CAST($7 AS timestamptz[]), CAST($8 AS uuid[]), CAST($9 AS text[]), CAST($10 AS text[]), CAST($11 AS text[]), CAST($12 AS text[]),
			CAST($13 AS text[]), CAST($14 AS text[]), CAST($15 AS text[]), CAST($16 AS text[]), CAST($17 AS bigint[]))
			AS e (namespace, id, type, reference, transaction, topic, created, listener, name, author, tag, "group", topics, tx_type, body_key, body, place)
	), locked AS (
		SELECT n.name, c.events
		FROM namespaces n JOIN unnest(CAST($18 AS text[]), CAST($19 AS bigint[])) AS c (name, events) ON c.name = n.name ORDER BY n.name FOR UPDATE OF n
	), numbered AS (
		UPDATE namespaces n SET sequence = n.sequence + l.events FROM locked l WHERE n.name = l.name RETURNING n.name, n.sequence - l.events AS before
	), appended AS (
		INSERT INTO events (namespace, sequence, id, type, reference, transaction, topic, created, listener, name, author, tag, "group", topics,
			tx_type, body_key, body)
		SELECT g.namespace, n.before + g.place, g.id, g.type, g.reference, g.transaction, g.topic, g.created, g.listener, g.name, g.author, g.tag, g."group",
			CASE WHEN g.topics IS NULL THEN NULL ELSE ARRAY(SELECT json_array_elements_text(CAST(g.topics AS json))) END, g.tx_type, g.body_key, g.body
		FROM given g JOIN numbered n ON n.name = g.namespace
	)
	SELECT name, before FROM numbered`

// appendHistory numbers the events, in the order given within each namespace, and inserts them. It must be the last thing that a transaction does: it
// takes the row locks of the namespaces, and they are held until the commit. That makes sequence order the order of commits.
// After the commit the caller notifies TopicHistory of each namespace.
func (hot statements) appendHistory(ctx context.Context, tx *sqlx.Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	c := newEventColumns(len(events))
	for i := range events {
		if err := c.add(&events[i]); err != nil {
			return err
		}
	}
	var histories []struct {
		Name   string `db:"name"`
		Before int64  `db:"before"`
	}
	if err := hot.in(ctx, tx, sqlAppendHistory).SelectContext(ctx, &histories, c.arguments()...); err != nil {
		return fmt.Errorf("append to the history: %w", err)
	}
	before := make(map[string]int64, len(histories))
	for _, h := range histories {
		before[h.Name] = h.Before
	}
	for i := range events {
		reached, known := before[events[i].Namespace]
		if !known {
			return fmt.Errorf("append to the history: there is no namespace %s", events[i].Namespace)
		}
		events[i].Sequence = reached + c.place[i]
	}
	return nil
}

// inTxAppending is inTx for what is told in the history: it appends the events that fn returns, commits, and wakes those who wait for the histories.
func (db *DB) inTxAppending(ctx context.Context, doing string, fn func(*sqlx.Tx) ([]Event, error)) error {
	hot, err := db.prepareAll(ctx, sqlAppendHistory)
	if err != nil {
		return wrap(err, doing)
	}
	var events []Event
	err = db.inTx(ctx, doing, func(tx *sqlx.Tx) (err error) {
		if events, err = fn(tx); err != nil {
			return err
		}
		return hot.appendHistory(ctx, tx, events)
	})
	if err == nil {
		db.notifyHistories(events)
	}
	return err
}

// notifyHistories wakes those who wait for the histories that have got these events.
func (db *DB) notifyHistories(events []Event) {
	var topics []string
	for i := range events {
		if i == 0 || events[i].Namespace != events[i-1].Namespace {
			topics = append(topics, TopicHistory(events[i].Namespace))
		}
	}
	if len(topics) > 0 {
		db.Notify(topics...)
	}
}

// eventColumns holds events column by column, as unnest takes them.
type eventColumns struct {
	namespace, id, kind, reference, topic, created, bodyKey, body   []string
	transaction, listener, name, author, tag, group, topics, txType []*string
	place                                                           []int64          // of each event among those of its namespace, from 1
	count                                                           map[string]int64 // of each namespace
}

func newEventColumns(n int) *eventColumns {
	text := func() []string { return make([]string, 0, n) }
	nullable := func() []*string { return make([]*string, 0, n) }
	return &eventColumns{
		namespace: text(), id: text(), kind: text(), reference: text(), topic: text(), created: text(), bodyKey: text(), body: text(),
		transaction: nullable(), listener: nullable(), name: nullable(), author: nullable(), tag: nullable(), group: nullable(),
		topics: nullable(), txType: nullable(), place: make([]int64, 0, n), count: map[string]int64{},
	}
}

func (c *eventColumns) add(e *Event) error {
	c.namespace = append(c.namespace, e.Namespace)
	c.count[e.Namespace]++
	c.place = append(c.place, c.count[e.Namespace])
	c.id = append(c.id, e.ID.String())
	c.kind = append(c.kind, e.Type)
	c.reference = append(c.reference, e.Reference.String())
	c.transaction = append(c.transaction, optionalID(e.Transaction))
	c.topic = append(c.topic, e.Topic)
	c.created = append(c.created, e.Created.Format(time.RFC3339Nano))
	c.listener = append(c.listener, optionalID(e.Listener))
	c.name = append(c.name, e.Name)
	c.author = append(c.author, e.Author)
	c.tag = append(c.tag, e.Tag)
	c.group = append(c.group, e.Group)
	// An array of arrays would have to be rectangular: the topics travel as JSON and are unpacked by the statement.
	var topics *string
	if e.Topics != nil {
		list, err := json.Marshal(e.Topics)
		if err != nil {
			return fmt.Errorf("encode the topics of event %s: %w", e.ID, err)
		}
		s := string(list)
		topics = &s
	}
	c.topics = append(c.topics, topics)
	c.txType = append(c.txType, e.TxType)
	c.bodyKey = append(c.bodyKey, e.BodyKey)
	c.body = append(c.body, e.Body)
	return nil
}

func (c *eventColumns) arguments() []any {
	names, counts := make([]string, 0, len(c.count)), make([]int64, 0, len(c.count))
	for name, n := range c.count {
		names, counts = append(names, name), append(counts, n)
	}
	return []any{
		pq.Array(c.namespace), pq.Array(c.id), pq.Array(c.kind), pq.Array(c.reference), pq.Array(c.transaction), pq.Array(c.topic),
		pq.Array(c.created), pq.Array(c.listener), pq.Array(c.name), pq.Array(c.author), pq.Array(c.tag), pq.Array(c.group), pq.Array(c.topics),
		pq.Array(c.txType), pq.Array(c.bodyKey), pq.Array(c.body), pq.Array(c.place), pq.Array(names), pq.Array(counts),
	}
}

func optionalID(id *uuid.UUID) *string {
	if id == nil {
		return nil
	}
	s := id.String()
	return &s
}

// optionalText is nil for the empty string.
func optionalText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
