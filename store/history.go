package store

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
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

const sqlAppendHistory = `
	INSERT INTO events (namespace, sequence, id, type, reference, transaction, topic, created, listener, name, author, tag, "group", topics,
		tx_type, body_key, body)
	SELECT namespace, sequence, id, type, reference, transaction, topic, created, listener, name, author, tag, "group",
		CASE WHEN topics IS NULL THEN NULL ELSE ARRAY(SELECT json_array_elements_text(CAST(topics AS json))) END, tx_type, body_key, body
	FROM unnest(CAST($1 AS text[]), CAST($2 AS bigint[]), CAST($3 AS uuid[]), CAST($4 AS text[]), CAST($5 AS uuid[]), CAST($6 AS uuid[]),
		CAST($7 AS text[]), CAST($8 AS timestamptz[]), CAST($9 AS uuid[]), CAST($10 AS text[]), CAST($11 AS text[]), CAST($12 AS text[]),
		CAST($13 AS text[]), CAST($14 AS text[]), CAST($15 AS text[]), CAST($16 AS text[]), CAST($17 AS text[]))
		AS e (namespace, sequence, id, type, reference, transaction, topic, created, listener, name, author, tag, "group", topics, tx_type,
			body_key, body)`

// appendHistory numbers the events, in the order given within each namespace, and inserts them. It must be the last thing that a transaction does: it
// takes the row locks of the namespaces, in the order of their names so that two transactions cannot block each other for ever,
// and they are held until the commit. That makes sequence order the order of commits.
// After the commit the caller notifies TopicHistory of each namespace.
func appendHistory(ctx context.Context, tx *sqlx.Tx, events []Event) error {
	if len(events) == 0 {
		return nil
	}
	count := map[string]int64{}
	for i := range events {
		count[events[i].Namespace]++
	}
	names := make([]string, 0, len(count))
	for name := range count {
		names = append(names, name)
	}
	sort.Strings(names)
	next := make(map[string]int64, len(names))
	for _, name := range names {
		var head int64
		err := tx.GetContext(ctx, &head, `UPDATE namespaces SET sequence = sequence + $2 WHERE name = $1 RETURNING sequence`, name, count[name])
		if err != nil {
			return fmt.Errorf("number the events of namespace %s: %w", name, err)
		}
		next[name] = head - count[name] + 1
	}
	c := newEventColumns(len(events))
	for i := range events {
		e := &events[i]
		e.Sequence = next[e.Namespace]
		next[e.Namespace]++
		if err := c.add(e); err != nil {
			return err
		}
	}
	if _, err := tx.ExecContext(ctx, sqlAppendHistory, c.arguments()...); err != nil {
		return fmt.Errorf("append to the history: %w", err)
	}
	return nil
}

// eventColumns holds events column by column, as unnest takes them.
type eventColumns struct {
	namespace, id, kind, reference, topic, created, bodyKey, body   []string
	transaction, listener, name, author, tag, group, topics, txType []*string
	sequence                                                        []int64
}

func newEventColumns(n int) *eventColumns {
	text := func() []string { return make([]string, 0, n) }
	nullable := func() []*string { return make([]*string, 0, n) }
	return &eventColumns{
		namespace: text(), id: text(), kind: text(), reference: text(), topic: text(), created: text(), bodyKey: text(), body: text(),
		transaction: nullable(), listener: nullable(), name: nullable(), author: nullable(), tag: nullable(), group: nullable(),
		topics: nullable(), txType: nullable(), sequence: make([]int64, 0, n),
	}
}

func (c *eventColumns) add(e *Event) error {
	c.namespace = append(c.namespace, e.Namespace)
	c.sequence = append(c.sequence, e.Sequence)
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
	return []any{
		pq.Array(c.namespace), pq.Array(c.sequence), pq.Array(c.id), pq.Array(c.kind), pq.Array(c.reference), pq.Array(c.transaction),
		pq.Array(c.topic), pq.Array(c.created), pq.Array(c.listener), pq.Array(c.name), pq.Array(c.author), pq.Array(c.tag),
		pq.Array(c.group), pq.Array(c.topics), pq.Array(c.txType), pq.Array(c.bodyKey), pq.Array(c.body),
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
