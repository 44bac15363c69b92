package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// BlockchainEvent is the record of one log heard by one listener. Its values live in Body, which is kept in the history entry at (Namespace, Sequence).
type BlockchainEvent struct {
	ID          uuid.UUID `db:"id"`
	Namespace   string    `db:"namespace"`
	Sequence    int64     `db:"sequence"` // that of its blockchain_event_received entry in the history; given when it is recorded
	Listener    uuid.UUID `db:"listener"`
	Name        string    `db:"name"`
	ProtocolID  string    `db:"protocol_id"` // block/transaction/log, zero-padded
	TxHash      []byte    `db:"tx_hash"`
	BlockNumber int64     `db:"block_number"`
	BlockHash   []byte    `db:"block_hash"`
	LogIndex    int64     `db:"log_index"`
	Timestamp   time.Time `db:"timestamp"` // of the block
	Removed     bool      `db:"removed"`   // its block was reorganised away after it was recorded
	Topic       string    `db:"topic"`     // of the listener
	// Body is the record as the specification shows it, a JSON object without `sequence`. It is empty when the history has been pruned.
	Body string `db:"body"`
}

const blockchainEventColumns = `b.id, b.namespace, b.sequence, b.listener, b.name, b.protocol_id, b.tx_hash, b.block_number, b.block_hash,
	b.log_index, b.timestamp, b.removed, coalesce(e.topic, '') AS topic, coalesce(e.body, '') AS body`

// BlockchainEvent returns one record with its body.
func (db *DB) BlockchainEvent(ctx context.Context, namespace string, id uuid.UUID) (BlockchainEvent, error) {
	var b BlockchainEvent
	err := db.db.GetContext(ctx, &b, `
		SELECT `+blockchainEventColumns+`
		FROM blockchain_events b LEFT JOIN events e ON e.namespace = b.namespace AND e.sequence = b.sequence
		WHERE b.namespace = $1 AND b.id = $2`, namespace, id)
	return b, missing(err, "blockchain event", id.String(), "read blockchain event "+id.String())
}
