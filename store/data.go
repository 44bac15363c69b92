package store

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// Data is one value of a message.
type Data struct {
	Namespace string    `db:"namespace"`
	Message   uuid.UUID `db:"message"`
	Position  int       `db:"position"` // within the message
	ID        uuid.UUID `db:"id"`
	Hash      []byte    `db:"hash"`  // SHA-256 over Value
	Value     string    `db:"value"` // canonical JSON
	Created   time.Time `db:"created"`
}

const dataColumns = `namespace, message, position, id, hash, value, created`

// Data returns one value by its id.
func (db *DB) Data(ctx context.Context, namespace string, id uuid.UUID) (Data, error) {
	var d Data
	err := db.db.GetContext(ctx, &d, `
		SELECT `+dataColumns+` FROM data WHERE namespace = $1 AND id = $2 ORDER BY created, message, position LIMIT 1`, namespace, id)
	return d, missing(err, "data", id.String(), "read data "+id.String())
}

// MessageData returns the values of a message in their order.
func (db *DB) MessageData(ctx context.Context, namespace string, message uuid.UUID) ([]Data, error) {
	data := []Data{}
	err := db.db.SelectContext(ctx, &data, `SELECT `+dataColumns+` FROM data WHERE namespace = $1 AND message = $2 ORDER BY position`,
		namespace, message)
	return data, wrap(err, "read the data of message "+message.String())
}

// insertData writes values; those that are there already stay.
func insertData(ctx context.Context, tx *sqlx.Tx, data []Data) error {
	if len(data) == 0 {
		return nil
	}
	n := len(data)
	namespaces, messages, positions, ids := make([]string, n), make([]string, n), make([]int64, n), make([]string, n)
	hashes, values, created := make([]string, n), make([]string, n), make([]string, n)
	for i := range data {
		d := &data[i]
		namespaces[i], messages[i], positions[i], ids[i] = d.Namespace, d.Message.String(), int64(d.Position), d.ID.String()
		hashes[i], values[i], created[i] = hex.EncodeToString(d.Hash), d.Value, d.Created.Format(time.RFC3339Nano)
	}
	_, err := tx.ExecContext(ctx, `
		INSERT INTO data (namespace, message, position, id, hash, value, created)
		SELECT namespace, message, position, id, decode(hash, 'hex'), value, created
		FROM unnest(CAST($1 AS text[]), CAST($2 AS uuid[]), CAST($3 AS integer[]), CAST($4 AS uuid[]), CAST($5 AS text[]), CAST($6 AS text[]),
			CAST($7 AS timestamptz[])) AS d (namespace, message, position, id, hash, value, created)
		ON CONFLICT (namespace, message, position) DO NOTHING`,
		pq.Array(namespaces), pq.Array(messages), pq.Array(positions), pq.Array(ids), pq.Array(hashes), pq.Array(values), pq.Array(created))
	if err != nil {
		return fmt.Errorf("insert the data: %w", err)
	}
	return nil
}
