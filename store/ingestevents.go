package store

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// sqlRecordEvents moves the listeners and records what they have heard, without what is recorded already and what listeners have heard that are gone. It sees
// what any other reader has recorded: the statement before it took the chain's row lock. The events' history is appended to here and not by appendHistory
// because most of an entry is what stands in the record or with the listener, and need not be sent twice. As there, the row locks of the namespaces are
// taken last and in the order of their names.
const sqlRecordEvents = `
	WITH listener AS (
		SELECT * FROM unnest(CAST($1 AS uuid[]), CAST($2 AS text[])) WITH ORDINALITY AS l (id, name, number)
	), recorded AS (
		SELECT listener, block_number, log_index, block_hash FROM blockchain_events
		WHERE listener = ANY (CAST($1 AS uuid[])) AND block_number BETWEEN $3 AND $4 AND NOT removed
	), given AS (
		SELECT l.id AS listener, l.name, g.*
		FROM unnest(CAST($8 AS bigint[]), CAST($9 AS uuid[]), CAST($10 AS uuid[]), CAST($11 AS text[]), CAST($12 AS bytea[]), CAST($13 AS bigint[]),
			CAST($14 AS bytea[]), CAST($15 AS bigint[]), CAST($16 AS bigint[]))
			WITH ORDINALITY AS g (heard_by, record, entry, protocol_id, tx_hash, block_number, block_hash, log_index, timestamp, place)
			JOIN listener l ON l.number = g.heard_by
		WHERE (l.id, g.block_number, g.log_index, g.block_hash) NOT IN (SELECT listener, block_number, log_index, block_hash FROM recorded)
	), moved AS (
		UPDATE listeners l SET events = l.events + n.events,
			checkpoint = CASE WHEN $5 AND NOT l.live THEN greatest(l.checkpoint, $4 + 1) ELSE l.checkpoint END,
			live = l.live OR $5 AND greatest(l.checkpoint, $4 + 1) >= $6
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
		SELECT f.*, h.before + f.number AS sequence FROM fresh f JOIN history h ON h.name = f.namespace
	), appended AS (
		INSERT INTO events (namespace, sequence, id, type, reference, topic, created, listener, name, body_key, body)
		SELECT n.namespace, n.sequence, n.entry, '` + EventBlockchainReceived + `', n.record, n.topic, $7, n.listener, n.name, '` + BodyBlockchainEvent + `', b.body
		FROM numbered n JOIN unnest(CAST($17 AS text[])) WITH ORDINALITY AS b (body, place) ON b.place = n.place
	), inserted AS (
		INSERT INTO blockchain_events (id, namespace, sequence, listener, name, protocol_id, tx_hash, block_number, block_hash, log_index, timestamp)
		SELECT record, namespace, sequence, listener, name, protocol_id, tx_hash, block_number, block_hash, log_index, to_timestamp(timestamp) FROM numbered
	)
	SELECT g.namespace, h.before FROM grown g LEFT JOIN history h ON h.name = g.namespace`

// recordEvents moves the checkpoints of those who catch up, and records the events. It returns the namespaces whose histories have grown.
func (hot statements) recordEvents(ctx context.Context, tx *sqlx.Tx, b BlockBatch, next int64) (map[string]bool, error) {
	namespaces := map[string]bool{}
	now := Now()
	for rest, first := b.Events, true; first || len(rest) > 0; first = false {
		n := min(len(rest), rowsPerStatement)
		c := newRecordColumns(n)
		if first && b.CatchUp != nil {
			for _, id := range b.CatchUp.Listeners {
				c.listenerNumber(id, "")
			}
		}
		for i := range rest[:n] {
			c.add(&rest[i])
		}
		rest = rest[n:]
		if len(c.listeners) == 0 {
			break
		}
		if err := hot.recordColumns(ctx, tx, b, next, now, c, namespaces); err != nil {
			return nil, err
		}
	}
	return namespaces, nil
}

func (hot statements) recordColumns(
	ctx context.Context, tx *sqlx.Tx, b BlockBatch, next int64, now time.Time, c *recordColumns, namespaces map[string]bool,
) error {
	var histories []struct {
		Namespace string        `db:"namespace"`
		Before    sql.NullInt64 `db:"before"`
	}
	err := hot.in(ctx, tx, sqlRecordEvents).SelectContext(ctx, &histories, pq.Array(c.listeners), pq.Array(c.names), b.From, b.To, b.CatchUp != nil, next, now,
		pq.Array(c.heardBy), pq.Array(c.record), pq.Array(c.entry), pq.Array(c.protocolID), pq.Array(c.txHash), pq.Array(c.block), pq.Array(c.blockHash),
		pq.Array(c.log), pq.Array(c.timestamp), pq.Array(c.body))
	if err != nil {
		return fmt.Errorf("record %d events: %w", len(c.body), err)
	}
	for _, h := range histories {
		if !h.Before.Valid {
			return fmt.Errorf("record events: there is no namespace %s", h.Namespace)
		}
		namespaces[h.Namespace] = true
	}
	return nil
}

// recordColumns holds blockchain events column by column, as unnest takes them. What is the same in all events of a listener is there once.
type recordColumns struct {
	numbers          map[uuid.UUID]int64 // of the listeners, from 1
	listeners, names []string

	record, entry, protocolID, body []string
	heardBy, block, log, timestamp  []int64
	txHash, blockHash               [][]byte
}

func newRecordColumns(n int) *recordColumns {
	text := func() []string { return make([]string, 0, n) }
	numbers := func() []int64 { return make([]int64, 0, n) }
	return &recordColumns{
		numbers: map[uuid.UUID]int64{}, record: text(), entry: text(), protocolID: text(), body: text(),
		heardBy: numbers(), block: numbers(), log: numbers(), timestamp: numbers(), txHash: make([][]byte, 0, n), blockHash: make([][]byte, 0, n),
	}
}

// listenerNumber gives each listener its place among the listeners. name is that of its event.
func (c *recordColumns) listenerNumber(id uuid.UUID, name string) int64 {
	n, known := c.numbers[id]
	if !known {
		n = int64(len(c.listeners) + 1)
		c.numbers[id] = n
		c.listeners, c.names = append(c.listeners, id.String()), append(c.names, name)
	}
	if name != "" {
		c.names[n-1] = name
	}
	return n
}

func (c *recordColumns) add(e *BlockchainEvent) {
	c.heardBy = append(c.heardBy, c.listenerNumber(e.Listener, e.Name))
	c.record = append(c.record, e.ID.String())
	c.entry = append(c.entry, NewID().String())
	c.protocolID = append(c.protocolID, e.ProtocolID)
	c.txHash = append(c.txHash, e.TxHash)
	c.block = append(c.block, e.BlockNumber)
	c.blockHash = append(c.blockHash, e.BlockHash)
	c.log = append(c.log, e.LogIndex)
	c.timestamp = append(c.timestamp, e.Timestamp.Unix())
	c.body = append(c.body, e.Body)
}
