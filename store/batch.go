package store

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Batch is a group of messages that is pinned to the chain with one transaction.
type Batch struct {
	Namespace string     `db:"namespace"`
	ID        uuid.UUID  `db:"id"`
	Author    string     `db:"author"`
	Hash      []byte     `db:"hash"`     // SHA-256 over the payload, which is canonical JSON
	Location  string     `db:"location"` // where the payload is, in the words of the shared storage
	Messages  int        `db:"messages"` // how many
	State     string     `db:"state"`    // StateSent, StateConfirmed, StateRejected
	Reason    string     `db:"reason"`
	Operation *uuid.UUID `db:"operation"` // the operation that pins it; nil for a foreign batch
	Created   time.Time  `db:"created"`
	Confirmed *time.Time `db:"confirmed"`
	Pin       *int64     `db:"pin"` // position of the pin that decided it
}

// BatchPin is where the network's order has a batch.
type BatchPin struct {
	Hash        []byte `db:"hash"`
	Location    string `db:"location"`
	TxHash      []byte `db:"pin_tx"`
	BlockNumber int64  `db:"block_number"`
}

// MessagePin returns where the network's order has a message's batch; nil when it has not, or when that block was reorganised away since.
func (db *DB) MessagePin(ctx context.Context, chain string, m *Message) (*BatchPin, error) {
	if m.Batch == nil || m.Pin == nil {
		return nil, nil //nolint:nilnil // no pin is no error
	}
	var pins []BatchPin
	err := db.db.SelectContext(ctx, &pins, `
		SELECT b.hash, b.location, b.pin_tx, p.block_number FROM batches b JOIN pins p ON p.chain = $4 AND p.position = b.pin
		WHERE b.namespace = $1 AND b.id = $2 AND b.author = $3`, m.Namespace, *m.Batch, m.Author, chain)
	if err != nil || len(pins) == 0 {
		return nil, wrap(err, "read the pin of message "+m.ID.String())
	}
	return &pins[0], nil
}

// ReadyMessages returns the oldest messages that wait for a batch, with their data: at most maxCount, and at most maxBytes of data unless
// the first message alone is larger.
func (db *DB) ReadyMessages(ctx context.Context, namespace string, maxCount int, maxBytes int64) ([]Message, map[uuid.UUID][]Data, error) {
	doing := "read the messages that wait in namespace " + namespace
	var messages []Message
	err := db.db.SelectContext(ctx, &messages, `
		SELECT `+messageColumns+` FROM messages WHERE namespace = $1 AND state = 'ready' AND local ORDER BY id LIMIT $2`, namespace, maxCount)
	if err != nil {
		return nil, nil, wrap(err, doing)
	}
	if len(messages) == 0 {
		return nil, nil, nil
	}
	// A value travels with its id and hash, so that many small ones are not small together.
	var sizes []struct {
		Message uuid.UUID `db:"message"`
		Size    int64     `db:"size"`
	}
	ids := messageIDs(messages)
	err = db.db.SelectContext(ctx, &sizes, `
		SELECT message, sum(octet_length(value) + 160) AS size FROM data WHERE namespace = $1 AND message = ANY($2) GROUP BY message`,
		namespace, pq.Array(ids))
	if err != nil {
		return nil, nil, wrap(err, doing)
	}
	size := make(map[uuid.UUID]int64, len(sizes))
	for _, s := range sizes {
		size[s.Message] = s.Size
	}
	fit, total := 0, int64(0)
	for fit < len(ids) && (fit == 0 || total+size[ids[fit]] <= maxBytes) {
		total += size[ids[fit]]
		fit++
	}
	var rows []Data
	err = db.db.SelectContext(ctx, &rows, `
		SELECT `+dataColumns+` FROM data WHERE namespace = $1 AND message = ANY($2) ORDER BY message, position`, namespace, pq.Array(ids[:fit]))
	if err != nil {
		return nil, nil, wrap(err, doing)
	}
	data := make(map[uuid.UUID][]Data, fit)
	for i := range rows {
		data[rows[i].Message] = append(data[rows[i].Message], rows[i])
	}
	return messages[:fit], data, nil
}

func messageIDs(messages []Message) []uuid.UUID {
	ids := make([]uuid.UUID, len(messages))
	for i := range messages {
		ids[i] = messages[i].ID
	}
	return ids
}

// SendBatch stores the batch and the operations that put it on the chain, the last of which is the pin, and marks the messages as sent, in one transaction: whatever happens
// afterwards, the batch goes out exactly once. It is false when the messages are no longer all waiting.
func (db *DB) SendBatch(ctx context.Context, lease Lease, b *Batch, messages []uuid.UUID, operations []NewOperation) (bool, error) {
	doing := "send batch " + b.ID.String()
	hot, err := db.prepareAll(ctx, sqlInsertOperations)
	if err != nil {
		return false, wrap(err, doing)
	}
	var pin Operation
	rows := make([]newOperationRow, len(operations))
	for i := range operations {
		if pin, rows[i], err = operations[i].prepare(); err != nil {
			return false, wrap(err, doing)
		}
	}
	sent := false
	err = db.inTx(ctx, doing, func(tx *sqlx.Tx) error {
		if err := checkLease(ctx, tx, lease); err != nil {
			return err
		}
		var waiting []uuid.UUID
		err := tx.SelectContext(ctx, &waiting, `
			SELECT id FROM messages WHERE namespace = $1 AND id = ANY($2) AND state = 'ready' FOR UPDATE`, b.Namespace, pq.Array(messages))
		if err != nil {
			return fmt.Errorf("lock the messages: %w", err)
		}
		if len(waiting) != len(messages) {
			return nil
		}
		begun, err := insertOperations(ctx, hot.in(ctx, tx, sqlInsertOperations), rows)
		if err != nil {
			return err
		}
		if len(begun) != len(rows) {
			return errKeyTaken
		}
		b.State, b.Operation, b.Messages, b.Created = StateSent, &pin.ID, len(messages), Now()
		_, err = tx.NamedExecContext(ctx, `
			INSERT INTO batches (namespace, id, author, hash, location, messages, state, operation, created)
			VALUES (:namespace, :id, :author, :hash, :location, :messages, :state, :operation, :created)`, b)
		if err != nil {
			return fmt.Errorf("insert the batch: %w", err)
		}
		_, err = tx.ExecContext(ctx, `
			UPDATE messages SET state = 'sent', batch = $3, transaction = $4 WHERE namespace = $1 AND id = ANY($2)`,
			b.Namespace, pq.Array(messages), b.ID, pin.Transaction)
		if err != nil {
			return fmt.Errorf("mark the messages: %w", err)
		}
		sent = true
		return nil
	})
	if err == nil && sent {
		db.Notify(TopicOutbox(operations[0].Chain))
	}
	return sent && err == nil, err
}

// BatchesInFlight counts the namespace's batches whose pin is not on the chain yet.
func (db *DB) BatchesInFlight(ctx context.Context, namespace string) (int, error) {
	var n int
	err := db.db.GetContext(ctx, &n, `
		SELECT count(*) FROM batches b JOIN operations o ON o.id = b.operation
		WHERE b.namespace = $1 AND b.state = 'sent' AND o.status IN ('Initialized', 'Pending')`, namespace)
	return n, wrap(err, "count the batches in flight of namespace "+namespace)
}

// RejectFailedBatches gives up the batches whose pin has failed for good, with their messages, and tells how many there were.
func (db *DB) RejectFailedBatches(ctx context.Context, lease Lease, namespace string) (int, error) {
	var failed []struct {
		Batch
		Error string `db:"error"`
	}
	err := db.inTxAppending(ctx, "reject the failed batches of namespace "+namespace, func(tx *sqlx.Tx) ([]Event, error) {
		if err := checkLease(ctx, tx, lease); err != nil {
			return nil, err
		}
		err := tx.SelectContext(ctx, &failed, `
			SELECT b.id, b.author, o.error FROM batches b JOIN operations o ON o.id = b.operation
			WHERE b.namespace = $1 AND b.state = 'sent' AND o.status = 'Failed' ORDER BY b.id LIMIT 100 FOR UPDATE OF b`, namespace)
		if err != nil {
			return nil, fmt.Errorf("look for them: %w", err)
		}
		var events []Event
		for _, b := range failed {
			rejected, err := rejectBatch(ctx, tx, namespace, b.ID, b.Author, "the batch could not be pinned: "+b.Error)
			if err != nil {
				return nil, err
			}
			events = append(events, rejected...)
		}
		return events, nil
	})
	if err == nil && len(failed) > 0 {
		db.Notify(TopicAPIs(namespace))
	}
	return len(failed), err
}

// rejectBatch gives up a batch of this member with those of its messages that the network's order has not decided. It returns the events.
func rejectBatch(ctx context.Context, tx *sqlx.Tx, namespace string, id uuid.UUID, author, reason string) ([]Event, error) {
	_, err := tx.ExecContext(ctx, `
		UPDATE batches SET state = 'rejected', reason = $4 WHERE namespace = $1 AND id = $2 AND author = $3`, namespace, id, author, reason)
	if err != nil {
		return nil, fmt.Errorf("reject the batch: %w", err)
	}
	var rejected []Message
	err = tx.SelectContext(ctx, &rejected, `
		UPDATE messages SET state = 'rejected', reason = $4
		WHERE namespace = $1 AND batch = $2 AND author = $3 AND local AND state = 'sent' AND pin IS NULL
		RETURNING `+messageColumns, namespace, id, author, reason)
	if err != nil {
		return nil, fmt.Errorf("reject the batch's messages: %w", err)
	}
	return rejectDefinitions(ctx, tx, namespace, rejected)
}
