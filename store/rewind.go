package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// RewindChain takes a reorganisation into the records: every block after ancestor is not part of the chain any more. Records of such blocks are marked
// as removed and told as EventBlockchainRemoved, the newest first; the history itself is never rewritten. Pins of such blocks go; what was applied of them stays applied. The live part and
// whoever catches up go on at ancestor+1. It returns how many records were removed.
func (db *DB) RewindChain(ctx context.Context, name string, lease Lease, ancestor int64) (int, error) {
	hot, err := db.prepareAll(ctx, sqlAppendHistory)
	if err != nil {
		return 0, wrap(err, "rewind chain "+name)
	}
	removed := 0
	namespaces := map[string]bool{}
	err = db.inTx(ctx, fmt.Sprintf("rewind chain %s to block %d", name, ancestor), func(tx *sqlx.Tx) error {
		result, err := tx.ExecContext(ctx, `
			UPDATE chains SET epoch = $2, next_block = least(next_block, $3), pin_next = CASE WHEN pin_live THEN pin_next
				ELSE least(pin_next, greatest(pin_block, $3)) END
			WHERE name = $1 AND epoch <= $2`, name, lease.Epoch, ancestor+1)
		if err != nil {
			return fmt.Errorf("set the position back: %w", err)
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrFenced, err)
		}
		for _, query := range []string{
			`DELETE FROM chain_blocks WHERE chain = $1 AND number >= $2`,
			`DELETE FROM pins WHERE chain = $1 AND block_number >= $2`,
			`UPDATE listeners SET checkpoint = greatest(first_block, $2) WHERE chain = $1 AND NOT live AND checkpoint > $2`,
		} {
			if _, err := tx.ExecContext(ctx, query, name, ancestor+1); err != nil {
				return fmt.Errorf("forget the replaced blocks: %w", err)
			}
		}
		for {
			n, err := hot.removeRecords(ctx, tx, name, ancestor, namespaces)
			if err != nil {
				return err
			}
			removed += n
			if n < rowsPerStatement {
				return nil
			}
		}
	})
	if err != nil {
		return 0, err
	}
	for namespace := range namespaces {
		db.Notify(TopicHistory(namespace))
	}
	return removed, nil
}

// removeRecords marks up to rowsPerStatement records after the ancestor as removed, and tells the history.
func (hot statements) removeRecords(ctx context.Context, tx *sqlx.Tx, chain string, ancestor int64, namespaces map[string]bool) (int, error) {
	var records []BlockchainEvent
	err := tx.SelectContext(ctx, &records, `
		SELECT `+blockchainEventColumns+`
		FROM listeners l JOIN blockchain_events b ON b.listener = l.id AND b.block_number > $2 AND NOT b.removed
			LEFT JOIN events e ON e.namespace = b.namespace AND e.sequence = b.sequence
		WHERE l.chain = $1 ORDER BY b.block_number DESC, b.log_index DESC, b.sequence DESC LIMIT $3`, chain, ancestor, rowsPerStatement)
	if err != nil {
		return 0, fmt.Errorf("look for records of replaced blocks: %w", err)
	}
	if len(records) == 0 {
		return 0, nil
	}
	ids := make([]string, len(records))
	history := make([]Event, len(records))
	now := Now()
	for i := range records {
		b := &records[i]
		namespaces[b.Namespace] = true
		ids[i] = b.ID.String()
		history[i] = removedEvent(b)
		history[i].Created = now
	}
	if _, err := tx.ExecContext(ctx, `UPDATE blockchain_events SET removed = true WHERE id = ANY (CAST($1 AS uuid[]))`, pq.Array(ids)); err != nil {
		return 0, fmt.Errorf("mark removed records: %w", err)
	}
	return len(records), hot.appendHistory(ctx, tx, history)
}

func removedEvent(b *BlockchainEvent) Event {
	id := uuid.UUID(b.Listener)
	if b.Body == "" { // its event has been let go
		return Event{Namespace: b.Namespace, ID: NewID(), Type: EventBlockchainRemoved, Reference: b.ID, Listener: &id, Name: &b.Name}
	}
	return Event{
		Namespace: b.Namespace, ID: NewID(), Type: EventBlockchainRemoved, Reference: b.ID, Topic: b.Topic, Listener: &id, Name: &b.Name,
		BodyKey: BodyBlockchainEvent, Body: b.Body,
	}
}
