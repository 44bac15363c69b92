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

// PinnedBatch is a batch that came from the chain. Whatever can be said by looking at the batch alone has been verified; what depends on the network's
// order so far is decided by ApplyBatch.
type PinnedBatch struct {
	Batch    Batch
	Account  []byte // of the author, who is the pin's sender
	Messages []PinnedMessage
}

// PinnedMessage is one message of a pinned batch, with the definition that it carries.
type PinnedMessage struct {
	Message   Message
	Data      []Data
	Interface *Interface
	API       *API
	Invalid   string // why its definition is wrong; the message is then rejected, here as everywhere
}

// ApplyBatch decides a pinned batch at its place in the network's order: its messages, its definitions, the events about them and the namespace's new position
// are one transaction. It returns a reason when the batch as a whole is refused: the author is no member, or the batch or one of
// its messages is a repetition. The same chain gives the same decisions on every member, whatever each has sent or deleted itself.
func (db *DB) ApplyBatch(ctx context.Context, lease Lease, pin *Pin, b *PinnedBatch) (refused string, err error) {
	namespace := b.Batch.Namespace
	err = db.inTxAppending(ctx, "apply batch "+b.Batch.ID.String(), func(tx *sqlx.Tx) ([]Event, error) {
		if applied, err := pinSettled(ctx, tx, namespace, pin); err != nil || applied {
			return nil, err
		}
		var events []Event
		fresh, err := pinIsFresh(ctx, tx, pin, &b.Batch)
		if err == nil && fresh {
			refused, err = b.refusal(ctx, tx)
		}
		if err == nil && fresh && refused == "" {
			if err = b.adopt(ctx, tx); err == nil {
				events, err = b.decide(ctx, tx, pin)
			}
		}
		if err != nil {
			return nil, err
		}
		// The lease comes after the work: it cannot be renewed while a transaction has looked at it.
		moved, err := settlePin(ctx, tx, lease, namespace, pin)
		switch {
		case err != nil:
			return nil, err
		case !moved:
			return nil, ErrFenced // somebody else has applied it meanwhile
		case refused != "":
			return refusePin(ctx, tx, namespace, pin, &b.Batch, refused)
		}
		return events, nil
	})
	if err == nil {
		db.Notify(TopicMessages(namespace), TopicAPIs(namespace))
	}
	return refused, err
}

// pinIsFresh tells whether the log is still recorded and its batch not yet applied. After a reorganisation the chain brings the same transaction again, in
// another block.
func pinIsFresh(ctx context.Context, tx *sqlx.Tx, pin *Pin, b *Batch) (bool, error) {
	if there, err := pinIsThere(ctx, tx, pin); err != nil || !there {
		return false, err
	}
	var again bool
	err := tx.GetContext(ctx, &again, `SELECT EXISTS (SELECT 1 FROM batches WHERE namespace = $1 AND id = $2 AND author = $3 AND pin_tx = $4)`,
		b.Namespace, b.ID, b.Author, pin.TxHash)
	if err != nil {
		return false, fmt.Errorf("look for the transaction: %w", err)
	}
	return !again, nil
}

// refusal tells why the batch as a whole cannot be applied at this place of the order; empty when it can.
func (b *PinnedBatch) refusal(ctx context.Context, tx *sqlx.Tx) (string, error) {
	namespace := b.Batch.Namespace
	var found struct {
		Member   bool `db:"member"`
		Repeated bool `db:"repeated"`
	}
	err := tx.GetContext(ctx, &found, `
		SELECT EXISTS (SELECT 1 FROM members WHERE namespace = $1 AND account = $2 AND active) AS member,
			EXISTS (SELECT 1 FROM batches WHERE namespace = $1 AND id = $3 AND author = $4 AND pin IS NOT NULL) AS repeated`,
		namespace, b.Account, b.Batch.ID, b.Batch.Author)
	switch {
	case err != nil:
		return "", fmt.Errorf("look for the author: %w", err)
	case !found.Member:
		return "its author is not a member of the network", nil
	case found.Repeated:
		return "the batch was pinned before", nil
	}
	var repeated []uuid.UUID
	err = tx.SelectContext(ctx, &repeated, `SELECT id FROM messages WHERE namespace = $1 AND id = ANY($2) AND pin IS NOT NULL LIMIT 1`,
		namespace, pq.Array(b.messageIDs()))
	if err != nil {
		return "", fmt.Errorf("look for repeated messages: %w", err)
	}
	if len(repeated) > 0 {
		return fmt.Sprintf("message %s was pinned before", repeated[0]), nil
	}
	return "", nil
}

func (b *PinnedBatch) messageIDs() []uuid.UUID {
	ids := make([]uuid.UUID, len(b.Messages))
	for i := range b.Messages {
		ids[i] = b.Messages[i].Message.ID
	}
	return ids
}

// adopt takes over what this member knows of its own messages. A message here that has the id of one in the batch but is another message has lost its
// id to the network's order, and goes.
func (b *PinnedBatch) adopt(ctx context.Context, tx *sqlx.Tx) error {
	namespace := b.Batch.Namespace
	var known []Message
	err := tx.SelectContext(ctx, &known, `SELECT `+messageColumns+` FROM messages WHERE namespace = $1 AND id = ANY($2) FOR UPDATE`,
		namespace, pq.Array(b.messageIDs()))
	if err != nil {
		return fmt.Errorf("look for known messages: %w", err)
	}
	byID := make(map[uuid.UUID]*Message, len(known))
	for i := range known {
		byID[known[i].ID] = &known[i]
	}
	var lost []uuid.UUID
	for i := range b.Messages {
		m := &b.Messages[i].Message
		own := byID[m.ID]
		switch {
		case own == nil:
		case string(own.Hash) == string(m.Hash):
			m.Local, m.Transaction = own.Local, own.Transaction
		default:
			lost = append(lost, m.ID)
		}
	}
	if len(lost) == 0 {
		return nil
	}
	for _, statement := range []string{
		`DELETE FROM interfaces WHERE namespace = $1 AND message = ANY($2) AND state = 'ready'`,
		`DELETE FROM apis WHERE namespace = $1 AND message = ANY($2) AND state = 'ready'`,
		`DELETE FROM messages WHERE namespace = $1 AND id = ANY($2)`,
	} {
		if _, err := tx.ExecContext(ctx, statement, namespace, pq.Array(lost)); err != nil {
			return fmt.Errorf("give up messages whose ids are taken: %w", err)
		}
	}
	return nil
}

// decide confirms or rejects each message and writes the outcome. It returns the events.
func (b *PinnedBatch) decide(ctx context.Context, tx *sqlx.Tx, pin *Pin) ([]Event, error) {
	now := Now()
	events := make([]Event, 0, len(b.Messages))
	var data []Data
	for i := range b.Messages {
		p := &b.Messages[i]
		m := &p.Message
		m.Batch, m.Pin = &b.Batch.ID, &pin.Position
		definition, reason, err := p.define(ctx, tx)
		if err != nil {
			return nil, err
		}
		kind := EventMessageConfirmed
		if m.Confirmed, m.State, m.Reason = &now, StateConfirmed, ""; reason != "" {
			kind = EventMessageRejected
			m.Confirmed, m.State, m.Reason = nil, StateRejected, reason
		}
		event, err := m.event(kind)
		if err != nil {
			return nil, err
		}
		if events = append(events, event); definition != nil {
			events = append(events, *definition)
		}
		data = append(data, p.Data...)
	}
	if err := b.write(ctx, tx); err != nil {
		return nil, err
	}
	if err := insertData(ctx, tx, data); err != nil {
		return nil, err
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO batches (namespace, id, author, hash, location, messages, state, created, confirmed, pin, pin_tx)
		VALUES ($1, $2, $3, $4, $5, $6, 'confirmed', $7, $7, $8, $9)
		ON CONFLICT (namespace, id, author) DO UPDATE SET hash = excluded.hash, location = excluded.location, messages = excluded.messages,
			state = excluded.state, reason = '', confirmed = excluded.confirmed, pin = excluded.pin, pin_tx = excluded.pin_tx`,
		b.Batch.Namespace, b.Batch.ID, b.Batch.Author, b.Batch.Hash, b.Batch.Location, len(b.Messages), now, pin.Position, pin.TxHash)
	if err != nil {
		return nil, fmt.Errorf("write the batch: %w", err)
	}
	return events, nil
}

// write stores the decided messages, all with one statement.
func (b *PinnedBatch) write(ctx context.Context, tx *sqlx.Tx) error {
	type row struct {
		Namespace string     `json:"namespace"`
		ID        uuid.UUID  `json:"id"`
		Network   string     `json:"network"`
		Type      string     `json:"type"`
		TxType    string     `json:"txtype"`
		Author    string     `json:"author"`
		Key       string     `json:"key"`
		Created   time.Time  `json:"created"`
		Topics    []string   `json:"topics"`
		Tag       string     `json:"tag"`
		Group     string     `json:"group"`
		DataHash  string     `json:"datahash"`
		Hash      string     `json:"hash"`
		Data      string     `json:"data"`
		Batch     *uuid.UUID `json:"batch"`
		State     string     `json:"state"`
		Reason    string     `json:"reason"`
		Confirmed *time.Time `json:"confirmed"`
		Local     bool       `json:"local"`
		Pin       *int64     `json:"pin"`
	}
	rows := make([]row, len(b.Messages))
	for i := range b.Messages {
		m := &b.Messages[i].Message
		refs, err := json.Marshal(m.Data)
		if err != nil {
			return fmt.Errorf("encode data references: %w", err)
		}
		rows[i] = row{
			Namespace: m.Namespace, ID: m.ID, Network: m.Network, Type: m.Type, TxType: m.TxType, Author: m.Author, Key: m.Key, Created: m.Created,
			Topics: m.Topics, Tag: m.Tag, Group: m.Group, DataHash: fmt.Sprintf(`\x%x`, m.DataHash), Hash: fmt.Sprintf(`\x%x`, m.Hash),
			Data: string(refs), Batch: m.Batch, State: m.State, Reason: m.Reason, Confirmed: m.Confirmed, Local: m.Local, Pin: m.Pin,
		}
	}
	text, err := json.Marshal(rows)
	if err != nil {
		return fmt.Errorf("encode the messages: %w", err)
	}
	_, err = tx.ExecContext(ctx, `
		INSERT INTO messages (namespace, id, network, type, txtype, author, key, created, topics, tag, "group", datahash, hash, data, batch, state,
			reason, confirmed, local, pin)
		SELECT namespace, id, network, type, txtype, author, key, created, topics, tag, "group", datahash, hash, data, batch, state,
			reason, confirmed, local, pin
		FROM json_to_recordset(CAST($1 AS json)) AS m (namespace text, id uuid, network text, type text, txtype text, author text, key text,
			created timestamptz, topics text[], tag text, "group" text, datahash bytea, hash bytea, data text, batch uuid, state text, reason text,
			confirmed timestamptz, local boolean, pin bigint)
		ON CONFLICT (namespace, id) DO UPDATE SET batch = excluded.batch, state = excluded.state, reason = excluded.reason,
			confirmed = excluded.confirmed, pin = excluded.pin`, string(text))
	if err != nil {
		return fmt.Errorf("write the messages: %w", err)
	}
	return nil
}
