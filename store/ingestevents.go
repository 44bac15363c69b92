package store

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
)

// The pieces of the statements below. In the first, chain is the chain if its position stands where it should; the blocks are remembered with it.
//
// The second moves the listeners and records what they have heard, without what is recorded already and what listeners have heard that are gone. The history is
// appended to here and not by appendHistory because most of an entry is what stands in the record or with the listener, and need not be sent twice. As there, the
// row locks of the namespaces are taken last and in the order of their names. A namespace that is not there leaves the sequence null, which the table refuses.
const (
	sqlChainMoved = `
		chain AS (
			UPDATE chains SET next_block = CAST($4 AS bigint) + 1, epoch = $19, pin_live = pin_live AND NOT $20,
				pin_next = CASE WHEN pin_live AND $20 THEN greatest(pin_block, next_block) ELSE pin_next END
			WHERE name = $18 AND epoch <= $19 AND next_block = $3 RETURNING name, next_block
		), forgotten AS (
			DELETE FROM chain_blocks b USING chain c WHERE b.chain = c.name AND b.number < $21
		), remembered AS (
			INSERT INTO chain_blocks (chain, number, hash, parent)
			SELECT c.name, b.number, b.hash, b.parent
			FROM chain c, unnest(CAST($22 AS bigint[]), CAST($23 AS bytea[]), CAST($24 AS bytea[])) AS b (number, hash, parent)
			WHERE b.number >= $21
			ON CONFLICT (chain, number) DO UPDATE SET hash = excluded.hash, parent = excluded.parent
		)`
	sqlEventsRecorded = `
		recorded AS (
			SELECT listener, block_number, log_index, block_hash FROM blockchain_events
			WHERE listener = ANY (CAST($1 AS uuid[])) AND block_number BETWEEN $3 AND CAST($4 AS bigint) AND NOT removed
		), given AS (
			SELECT l.id AS listener, l.name, g.*
			FROM unnest(CAST($8 AS bigint[]), CAST($9 AS uuid[]), CAST($10 AS uuid[]), CAST($11 AS text[]), CAST($12 AS bytea[]), CAST($13 AS bigint[]),
				CAST($14 AS bytea[]), CAST($15 AS bigint[]), CAST($16 AS bigint[]))
				WITH ORDINALITY AS g (heard_by, record, entry, protocol_id, tx_hash, block_number, block_hash, log_index, timestamp, place)
				JOIN listener l ON l.number = g.heard_by
			WHERE (l.id, g.block_number, g.log_index, g.block_hash) NOT IN (SELECT listener, block_number, log_index, block_hash FROM recorded)
		), moved AS (
			UPDATE listeners l SET events = l.events + n.events,
				checkpoint = CASE WHEN $5 AND NOT l.live THEN greatest(l.checkpoint, CAST($4 AS bigint) + 1) ELSE l.checkpoint END,
				live = l.live OR $5 AND greatest(l.checkpoint, CAST($4 AS bigint) + 1) >= $6
			FROM (SELECT l.id, count(g.listener) AS events FROM listener l LEFT JOIN given g ON g.listener = l.id GROUP BY l.id) n
			WHERE l.id = n.id RETURNING l.id, l.namespace, l.topic
		), fresh AS (
			SELECT m.namespace, m.topic, row_number() OVER (PARTITION BY m.namespace ORDER BY g.place) AS number, g.*
			FROM given g JOIN moved m ON m.id = g.listener
		), grown AS (
			SELECT namespace, count(*) AS events FROM fresh GROUP BY namespace
		), locked AS (
			SELECT n.name, g.events FROM namespaces n JOIN grown g ON g.namespace = n.name ORDER BY n.name FOR UPDATE OF n
		), history AS (
			UPDATE namespaces n SET sequence = n.sequence + l.events FROM locked l WHERE n.name = l.name RETURNING n.name, n.sequence - l.events AS before
		), numbered AS (
			SELECT f.*, h.before + f.number AS sequence FROM fresh f LEFT JOIN history h ON h.name = f.namespace
		), appended AS (
			INSERT INTO events (namespace, sequence, id, type, reference, topic, created, listener, name, body_key, body)
			SELECT n.namespace, n.sequence, n.entry, '` + EventBlockchainReceived + `', n.record, n.topic, $7, n.listener, n.name, '` + BodyBlockchainEvent + `', b.body
			FROM numbered n JOIN unnest(CAST($17 AS text[])) WITH ORDINALITY AS b (body, place) ON b.place = n.place
		), inserted AS (
			INSERT INTO blockchain_events (id, namespace, sequence, listener, name, protocol_id, tx_hash, block_number, block_hash, log_index, timestamp)
			SELECT record, namespace, sequence, listener, name, protocol_id, tx_hash, block_number, block_hash, log_index, to_timestamp(timestamp) FROM numbered
		)`
)

// sqlRecordLive moves the live part and records the events. It returns the position and the histories that have grown; nothing when the position did not move.
const sqlRecordLive = `
	WITH ` + sqlChainMoved + `, listener AS (
		SELECT l.* FROM chain, unnest(CAST($1 AS uuid[]), CAST($2 AS text[])) WITH ORDINALITY AS l (id, name, number)
	), ` + sqlEventsRecorded + `
	SELECT c.next_block, coalesce(h.name, '') AS namespace FROM chain c LEFT JOIN history h ON true`

// sqlRecordEvents moves the listeners and records the events. It returns the histories that have grown.
const sqlRecordEvents = `
	WITH listener AS (
		SELECT * FROM unnest(CAST($1 AS uuid[]), CAST($2 AS text[])) WITH ORDINALITY AS l (id, name, number)
	), ` + sqlEventsRecorded + `
	SELECT name FROM history`

// recordLive moves the live part and records the events. It returns the chain's NextBlock.
func (r *recording) recordLive(ctx context.Context, statement *sqlx.Stmt, db sqlx.QueryerContext, events []BlockchainEvent) (int64, error) {
	c := newRecordColumns(events)
	c.add(events)
	var numbers, hashes, parents arrayText
	for _, block := range r.Blocks {
		numbers.number(block.Number)
		hashes.bytes(block.Hash)
		parents.bytes(block.Parent)
	}
	args := append(r.arguments(c, r.To+1), r.Chain, r.Lease.Epoch, r.Demote, r.To+1-r.Keep, numbers, hashes, parents)
	var rows []struct {
		Next      int64  `db:"next_block"`
		Namespace string `db:"namespace"` // empty when no history has grown
	}
	if err := statement.SelectContext(ctx, &rows, args...); err != nil {
		return 0, fmt.Errorf("record %d events: %w", len(events), err)
	}
	if len(rows) == 0 {
		return 0, r.whyNot(ctx, db)
	}
	for _, row := range rows {
		if row.Namespace != "" {
			r.namespaces[row.Namespace] = true
		}
	}
	return rows[0].Next, nil
}

// recordEvents moves the checkpoints of those who catch up, and records the events.
func (r *recording) recordEvents(ctx context.Context, tx *sqlx.Tx, next int64) error {
	for rest, first := r.Events, true; first || len(rest) > 0; first = false {
		n := min(len(rest), rowsPerStatement)
		c := newRecordColumns(rest[:n])
		c.add(rest[:n])
		if first && r.CatchUp != nil {
			for _, id := range r.CatchUp.Listeners {
				c.hear(id, "")
			}
		}
		rest = rest[n:]
		if len(c.number) == 0 {
			break
		}
		var namespaces []string
		if err := r.in(ctx, tx, sqlRecordEvents).SelectContext(ctx, &namespaces, r.arguments(c, next)...); err != nil {
			return fmt.Errorf("record %d events: %w", n, err)
		}
		for _, namespace := range namespaces {
			r.namespaces[namespace] = true
		}
	}
	return nil
}

// arguments are those of sqlEventsRecorded. next is the chain's NextBlock.
func (r *recording) arguments(c *recordColumns, next int64) []any {
	return []any{
		c.listeners, c.names, r.From, r.To, r.CatchUp != nil, next, r.now,
		c.heardBy, c.record, c.entry, c.protocolID, c.txHash, c.block, c.blockHash, c.log, c.timestamp, c.body,
	}
}

// recordColumns holds blockchain events column by column, as unnest takes them. What is the same in all events of a listener is there once.
type recordColumns struct {
	number           map[uuid.UUID]int64 // of the listeners, from 1
	listeners, names arrayText

	heardBy, record, entry, protocolID, txHash, block, blockHash, log, timestamp, body arrayText
}

func newRecordColumns(events []BlockchainEvent) *recordColumns {
	bodies := 0
	for i := range events {
		bodies += len(events[i].Body)
	}
	return &recordColumns{number: map[uuid.UUID]int64{}, body: make(arrayText, 0, bodies+bodies/4)} // quotes are escaped
}

// hear gives each listener its number.
func (c *recordColumns) hear(listener uuid.UUID, name string) int64 {
	n := c.number[listener]
	if n == 0 {
		n = int64(len(c.number) + 1)
		c.number[listener] = n
		c.listeners.uuid(listener)
		c.names.text(name)
	}
	return n
}

func (c *recordColumns) add(events []BlockchainEvent) {
	for i := range events {
		e := &events[i]
		c.heardBy.number(c.hear(e.Listener, e.Name))
		c.record.uuid(e.ID)
		c.entry.uuid(NewID())
		c.protocolID.text(e.ProtocolID)
		c.txHash.bytes(e.TxHash)
		c.block.number(e.BlockNumber)
		c.blockHash.bytes(e.BlockHash)
		c.log.number(e.LogIndex)
		c.timestamp.number(e.Timestamp.Unix())
		c.body.text(e.Body)
	}
}
