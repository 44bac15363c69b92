package store

import (
	"bytes"
	"context"
	"database/sql"
	"database/sql/driver"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// The states of a message, and of the definition that it carries:
//
//	ready ──► sent ──► confirmed
//	  │         │
//	  └─────────┴────► rejected
const (
	StateReady     = "ready"     // stored, waits for a batch
	StateSent      = "sent"      // in a batch whose pin is on its way
	StateConfirmed = "confirmed" // in the network's order
	StateRejected  = "rejected"  // by the network's order, or because it could not be pinned
	StateReplaced  = "replaced"  // an API whose author has confirmed another one of the same name
)

// The values of the header's type, txtype and tag that Pactwire gives.
const (
	MessageBroadcast   = "broadcast"
	TxBatchPin         = "batch_pin"
	TagDefineInterface = "define_interface"
	TagDefineAPI       = "define_api"
)

// Message is one broadcast, sent by this member or received.
type Message struct {
	Namespace   string         `db:"namespace"` // here
	ID          uuid.UUID      `db:"id"`
	Network     string         `db:"network"` // the namespace's name in the network, as the header has it
	Type        string         `db:"type"`
	TxType      string         `db:"txtype"`
	Author      string         `db:"author"` // the sending member's account, 0x and lower-case hex
	Key         string         `db:"key"`
	Created     time.Time      `db:"created"`
	Topics      pq.StringArray `db:"topics"`
	Tag         string         `db:"tag"`
	Group       string         `db:"group"`
	DataHash    []byte         `db:"datahash"`
	Hash        []byte         `db:"hash"`
	Data        DataRefs       `db:"data"`
	Batch       *uuid.UUID     `db:"batch"`
	State       string         `db:"state"`
	Reason      string         `db:"reason"` // why it was rejected
	Confirmed   *time.Time     `db:"confirmed"`
	Transaction *uuid.UUID     `db:"transaction"` // of ours; nil for a foreign message
	Local       bool           `db:"local"`       // sent by this member
	Pin         *int64         `db:"pin"`         // position of the pin that decided it

	IdempotencyKey *string `db:"idempotency_key"` // of the request that broadcast it; nil: none
	BodyHash       []byte  `db:"body_hash"`       // of that request
}

// DataRef names one value of a message.
type DataRef struct {
	ID   uuid.UUID `json:"id"`
	Hash string    `json:"hash"` // hex
}

// DataRefs are kept as JSON in their message's row.
type DataRefs []DataRef

// Scan implements sql.Scanner.
func (r *DataRefs) Scan(value any) error {
	switch v := value.(type) {
	case string:
		return json.Unmarshal([]byte(v), r)
	case []byte:
		return json.Unmarshal(v, r)
	}
	return fmt.Errorf("read data references from %T", value)
}

// Value implements driver.Valuer.
func (r DataRefs) Value() (driver.Value, error) {
	if r == nil {
		r = DataRefs{}
	}
	text, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode data references: %w", err)
	}
	return string(text), nil
}

// MessageHeader is a message's header as it is hashed and as it is shown: the message's hash is the SHA-256 over its canonical JSON.
type MessageHeader struct {
	ID        uuid.UUID `json:"id"`
	Type      string    `json:"type"`
	TxType    string    `json:"txtype"`
	Author    string    `json:"author"`
	Key       string    `json:"key"`
	Created   time.Time `json:"created"`
	Namespace string    `json:"namespace"`
	Topic     []string  `json:"topic"`
	Topics    []string  `json:"topics"` // the same once more, under the name that FireFly's clients read
	Tag       string    `json:"tag,omitempty"`
	Group     string    `json:"group,omitempty"`
	DataHash  string    `json:"datahash"`
}

// Header returns the message's header.
func (m *Message) Header() MessageHeader {
	topics := []string(m.Topics)
	if topics == nil {
		topics = []string{}
	}
	return MessageHeader{
		ID: m.ID, Type: m.Type, TxType: m.TxType, Author: m.Author, Key: m.Key, Created: m.Created.UTC(), Namespace: m.Network,
		Topic: topics, Topics: topics, Tag: m.Tag, Group: m.Group, DataHash: hex.EncodeToString(m.DataHash),
	}
}

// Body returns the message as it stands in an event and in an answer.
func (m *Message) Body() (string, error) {
	refs := m.Data
	if refs == nil {
		refs = DataRefs{}
	}
	text, err := json.Marshal(struct {
		Header    MessageHeader `json:"header"`
		Hash      string        `json:"hash"`
		BatchID   *uuid.UUID    `json:"batchID,omitempty"`
		Batch     *uuid.UUID    `json:"batch,omitempty"` // FireFly's name of the same
		TxID      *uuid.UUID    `json:"txid,omitempty"`
		State     string        `json:"state"`
		Confirmed *time.Time    `json:"confirmed,omitempty"`
		Rejected  string        `json:"rejectReason,omitempty"`
		Data      DataRefs      `json:"data"`
	}{m.Header(), hex.EncodeToString(m.Hash), m.Batch, m.Batch, m.Transaction, m.State, m.Confirmed, m.Reason, refs})
	if err != nil {
		return "", fmt.Errorf("encode message %s: %w", m.ID, err)
	}
	return string(text), nil
}

// event makes the history's entry about the message.
func (m *Message) event(kind string) (Event, error) {
	body, err := m.Body()
	if err != nil {
		return Event{}, err
	}
	topic := ""
	if len(m.Topics) > 0 {
		topic = m.Topics[0]
	}
	return Event{
		Namespace: m.Namespace, ID: NewID(), Type: kind, Reference: m.ID, Transaction: m.Transaction, Topic: topic, Created: Now(),
		Author: optionalText(m.Author), Tag: optionalText(m.Tag), Group: optionalText(m.Group), Topics: m.Topics,
		TxType: optionalText(m.TxType), BodyKey: BodyMessage, Body: body,
	}, nil
}

const messageColumns = `namespace, id, network, type, txtype, author, key, created, topics, tag, "group", datahash, hash, data, batch, state, reason,
	confirmed, transaction, local, pin, idempotency_key, body_hash`

// Message returns one message.
func (db *DB) Message(ctx context.Context, namespace string, id uuid.UUID) (Message, error) {
	var m Message
	err := db.db.GetContext(ctx, &m, `SELECT `+messageColumns+` FROM messages WHERE namespace = $1 AND id = $2`, namespace, id)
	return m, missing(err, "message", id.String(), "read message "+id.String())
}

// Broadcast is a message with its data, and the definition that the data holds, if any.
type Broadcast struct {
	Message   Message
	Data      []Data
	Interface *Interface
	API       *API // a new one
	Update    *API // a known one with another interface: it takes effect when the network has confirmed it
}

// ErrRepeated means that a broadcast with the same idempotency key is stored already; see RepeatedMessage.
var ErrRepeated = errors.New("the idempotency key is in use")

// RepeatedMessage looks whether the idempotency key has been used for a broadcast before: with the same body it returns the message of that time and true,
// with another body it is a conflict.
func (db *DB) RepeatedMessage(ctx context.Context, namespace, key string, bodyHash []byte) (m Message, existed bool, err error) {
	err = db.db.GetContext(ctx, &m, `SELECT `+messageColumns+` FROM messages WHERE namespace = $1 AND idempotency_key = $2`, namespace, key)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return Message{}, false, nil
	case err != nil:
		return Message{}, false, wrap(err, "read what idempotency key "+key+" stands for")
	case !bytes.Equal(m.BodyHash, bodyHash):
		return Message{}, false, pactwire.Conflict("idempotency_conflict", "The idempotency key %q has been used before with another request.", key)
	}
	return m, true, nil
}

// CreateBroadcast stores a message of this member, ready to be sent, and its definition, which this member may use at once. It fails with ErrRepeated
// when the message's idempotency key is in use.
func (db *DB) CreateBroadcast(ctx context.Context, b *Broadcast) error {
	m := &b.Message
	err := db.inTx(ctx, "store message "+m.ID.String(), func(tx *sqlx.Tx) error {
		m.State, m.Local = StateReady, true
		_, err := tx.NamedExecContext(ctx, `
			INSERT INTO messages (namespace, id, network, type, txtype, author, key, created, topics, tag, "group", datahash, hash, data, state, local,
				idempotency_key, body_hash)
			VALUES (:namespace, :id, :network, :type, :txtype, :author, :key, :created, :topics, :tag, :group, :datahash, :hash, :data, :state, true,
				:idempotency_key, NULLIF(CAST(:body_hash AS bytea), ''))`, m)
		if violates(err, "messages_idempotency") {
			return ErrRepeated
		}
		if err != nil {
			return fmt.Errorf("insert the message: %w", err)
		}
		if err := insertData(ctx, tx, b.Data); err != nil {
			return err
		}
		switch {
		case b.Interface != nil:
			return insertInterface(ctx, tx, b.Interface)
		case b.API != nil:
			return insertAPI(ctx, tx, b.API)
		case b.Update != nil:
			return lockLiveInterface(ctx, tx, b.Update.Namespace, b.Update.Interface)
		}
		return nil
	})
	if err == nil {
		db.Notify(TopicMessages(m.Namespace), TopicAPIs(m.Namespace))
	}
	return err
}

// RejectMessages gives up messages of this member that wait for a batch.
func (db *DB) RejectMessages(ctx context.Context, lease Lease, namespace string, ids []uuid.UUID, reason string) error {
	err := db.inTxAppending(ctx, "reject messages of namespace "+namespace, func(tx *sqlx.Tx) ([]Event, error) {
		if err := checkLease(ctx, tx, lease); err != nil {
			return nil, err
		}
		var rejected []Message
		err := tx.SelectContext(ctx, &rejected, `
			UPDATE messages SET state = 'rejected', reason = $3 WHERE namespace = $1 AND id = ANY($2) AND state = 'ready'
			RETURNING `+messageColumns, namespace, pq.Array(ids), reason)
		if err != nil {
			return nil, fmt.Errorf("reject the messages: %w", err)
		}
		return rejectDefinitions(ctx, tx, namespace, rejected)
	})
	if err == nil {
		db.Notify(TopicAPIs(namespace))
	}
	return err
}

// rejectDefinitions follows rejected messages: the definitions that they carried are rejected too. It returns the events.
func rejectDefinitions(ctx context.Context, tx *sqlx.Tx, namespace string, rejected []Message) ([]Event, error) {
	ids := make([]uuid.UUID, 0, len(rejected))
	events := make([]Event, 0, len(rejected))
	for i := range rejected {
		ids = append(ids, rejected[i].ID)
		event, err := rejected[i].event(EventMessageRejected)
		if err != nil {
			return nil, err
		}
		events = append(events, event)
	}
	for _, table := range []string{"interfaces", "apis"} {
		_, err := tx.ExecContext(ctx, `UPDATE `+table+` SET state = 'rejected' WHERE namespace = $1 AND message = ANY($2) AND state = 'ready'`,
			namespace, pq.Array(ids))
		if err != nil {
			return nil, fmt.Errorf("reject the definitions: %w", err)
		}
	}
	return events, nil
}

// taken turns the breach of a unique index into a conflict that the caller can understand.
func taken(err error, constraint, code, format string, args ...any) error {
	if violates(err, constraint) {
		return pactwire.Conflict(code, format, args...)
	}
	return err
}
