package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// ErrMoved means that a chain's position is not where the reader believed it to be. The reader must read its state anew.
var ErrMoved = errors.New("the chain's position is another one")

// ChainBlock is the hash of one recorded block, kept to recognise a reorganisation by.
type ChainBlock struct {
	Number int64  `db:"number"`
	Hash   []byte `db:"hash"`
	Parent []byte `db:"parent"`
}

// BlockBatch is what the blocks From to To (inclusive) held, in chain order. With CatchUp nil it moves the live part: the chain's NextBlock goes from From to To+1.
type BlockBatch struct {
	Chain    string
	Lease    Lease
	From, To int64
	Blocks   []ChainBlock // live part: hashes to remember
	Keep     int64        // live part: how many of the last blocks to remember
	Demote   bool         // live part: the blocks were not read; whoever is live has to read them by itself
	CatchUp  *CatchUp
	Events   []BlockchainEvent // ID, Sequence and Created are given here
	Pins     []Pin
}

// CatchUp says who reads a range of the past by itself, below the chain's NextBlock. Whoever arrives at NextBlock with it becomes live.
type CatchUp struct {
	Listeners []uuid.UUID
	Pins      []byte // the pin contract that was read; nil when none was
}

// rowsPerStatement bounds the size of one statement's arguments.
const rowsPerStatement = 1000

// ClaimChain fences off every reader with an older lease, and returns what the new one starts from: the chain and the blocks that are remembered, in ascending order.
func (db *DB) ClaimChain(ctx context.Context, name string, lease Lease) (Chain, []ChainBlock, error) {
	var c Chain
	var blocks []ChainBlock
	err := db.inTx(ctx, "claim chain "+name, func(tx *sqlx.Tx) error {
		result, err := tx.ExecContext(ctx, `UPDATE chains SET epoch = $2 WHERE name = $1 AND epoch <= $2`, name, lease.Epoch)
		if err != nil {
			return fmt.Errorf("write the epoch: %w", err)
		}
		if err := tx.GetContext(ctx, &c, sqlChain, name); err != nil {
			return missing(err, "chain", name, "read the chain")
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(ErrFenced, err)
		}
		err = tx.SelectContext(ctx, &blocks, `SELECT number, hash, parent FROM chain_blocks WHERE chain = $1 ORDER BY number`, name)
		if err != nil {
			return fmt.Errorf("read the remembered blocks: %w", err)
		}
		return nil
	})
	return c, blocks, err
}

// RecordBlocks records what a range of blocks held, with the history entries and the checkpoint, in one transaction: all of it or nothing. Each log is
// recorded once per listener, whatever ranges overlap. It returns ErrFenced when another reader has taken over, and ErrMoved when the live part does not
// stand at From.
func (db *DB) RecordBlocks(ctx context.Context, b BlockBatch) error {
	hot, err := db.prepareAll(ctx, sqlMoveLive, sqlMoveCatchUp, sqlRememberBlocks, sqlRecorded, sqlAdvanceListeners, sqlAppendHistory, sqlInsertBlockchainEvents)
	if err != nil {
		return wrap(err, "record blocks")
	}
	var namespaces map[string]bool
	err = db.inTx(ctx, fmt.Sprintf("record blocks %d to %d of chain %s", b.From, b.To, b.Chain), func(tx *sqlx.Tx) error {
		next, err := hot.move(ctx, tx, b)
		if err != nil {
			return err
		}
		events, err := hot.unrecorded(ctx, tx, b)
		if err != nil {
			return err
		}
		if events, err = hot.advanceListeners(ctx, tx, b, next, events); err != nil {
			return err
		}
		if err := insertPins(ctx, tx, b); err != nil {
			return err
		}
		namespaces, err = hot.insertEvents(ctx, tx, events)
		return err
	})
	if err != nil {
		return err
	}
	topics := make([]string, 0, len(namespaces)+1)
	for namespace := range namespaces {
		topics = append(topics, TopicHistory(namespace))
	}
	if len(b.Pins) > 0 {
		topics = append(topics, TopicPins(b.Chain))
	}
	if len(topics) > 0 {
		db.Notify(topics...)
	}
	return nil
}

const (
	sqlMoveLive = `
		UPDATE chains SET next_block = $4, epoch = $2, pin_live = pin_live AND NOT $5,
			pin_next = CASE WHEN pin_live AND $5 THEN greatest(pin_block, next_block) ELSE pin_next END
		WHERE name = $1 AND epoch <= $2 AND next_block = $3 RETURNING next_block`
	sqlMoveCatchUp = `
		UPDATE chains SET epoch = $2, pin_next = CASE WHEN pin_contract = $4 AND NOT pin_live THEN greatest(pin_next, $3) ELSE pin_next END,
			pin_live = pin_live OR coalesce(pin_contract = $4, false) AND greatest(pin_next, $3) >= next_block
		WHERE name = $1 AND epoch <= $2 RETURNING next_block`
	sqlDemoteListeners = `UPDATE listeners SET live = false, checkpoint = greatest(first_block, $2) WHERE chain = $1 AND live`
	sqlRememberBlocks  = `
		WITH forgotten AS (DELETE FROM chain_blocks WHERE chain = $1 AND number < $5)
		INSERT INTO chain_blocks (chain, number, hash, parent)
		SELECT $1, number, hash, parent FROM unnest(CAST($2 AS bigint[]), CAST($3 AS bytea[]), CAST($4 AS bytea[])) AS b (number, hash, parent)
		WHERE number >= $5
		ON CONFLICT (chain, number) DO UPDATE SET hash = excluded.hash, parent = excluded.parent`
	sqlRecorded = `
		SELECT listener, block_number, log_index, block_hash FROM blockchain_events
		WHERE listener = ANY (CAST($1 AS uuid[])) AND block_number BETWEEN $2 AND $3 AND NOT removed`
	sqlAdvanceListeners = `
		UPDATE listeners l SET events = l.events + n.events,
			checkpoint = CASE WHEN $3 AND NOT l.live THEN greatest(l.checkpoint, $4) ELSE l.checkpoint END,
			live = l.live OR $3 AND greatest(l.checkpoint, $4) >= $5
		FROM unnest(CAST($1 AS uuid[]), CAST($2 AS bigint[])) AS n (id, events) WHERE l.id = n.id RETURNING l.id`
)

// move moves the position and takes the chain's row lock, which serialises all readers. It returns the chain's NextBlock.
func (hot statements) move(ctx context.Context, tx *sqlx.Tx, b BlockBatch) (int64, error) {
	query, args := sqlMoveLive, []any{b.Chain, b.Lease.Epoch, b.From, b.To + 1, b.Demote}
	if b.CatchUp != nil {
		query, args = sqlMoveCatchUp, []any{b.Chain, b.Lease.Epoch, b.To + 1, b.CatchUp.Pins}
	}
	var next int64
	err := hot.in(ctx, tx, query).GetContext(ctx, &next, args...)
	if errors.Is(err, sql.ErrNoRows) {
		var epoch int64
		if err := tx.GetContext(ctx, &epoch, `SELECT epoch FROM chains WHERE name = $1`, b.Chain); err != nil {
			return 0, fmt.Errorf("read the chain: %w", err)
		}
		if epoch > b.Lease.Epoch {
			return 0, ErrFenced
		}
		return 0, ErrMoved
	}
	if err != nil {
		return 0, fmt.Errorf("move the position: %w", err)
	}
	if b.CatchUp != nil {
		if b.To >= next {
			return 0, ErrMoved // the past ends where the live part begins
		}
		return next, nil
	}
	if b.Demote {
		if _, err := tx.ExecContext(ctx, sqlDemoteListeners, b.Chain, b.From); err != nil {
			return 0, fmt.Errorf("set the listeners back: %w", err)
		}
	}
	if len(b.Blocks) == 0 {
		return next, nil
	}
	numbers, hashes, parents := make([]int64, len(b.Blocks)), make([][]byte, len(b.Blocks)), make([][]byte, len(b.Blocks))
	for i, block := range b.Blocks {
		numbers[i], hashes[i], parents[i] = block.Number, block.Hash, block.Parent
	}
	_, err = hot.in(ctx, tx, sqlRememberBlocks).ExecContext(ctx, b.Chain, pq.Array(numbers), pq.Array(hashes), pq.Array(parents), next-b.Keep)
	if err != nil {
		return 0, fmt.Errorf("remember the blocks: %w", err)
	}
	return next, nil
}

type logKey struct {
	listener   uuid.UUID
	block, log int64
	hash       [32]byte
}

// unrecorded leaves out the events whose log is recorded already for their listener.
func (hot statements) unrecorded(ctx context.Context, tx *sqlx.Tx, b BlockBatch) ([]BlockchainEvent, error) {
	if len(b.Events) == 0 {
		return nil, nil
	}
	var rows []struct {
		Listener uuid.UUID `db:"listener"`
		Block    int64     `db:"block_number"`
		Log      int64     `db:"log_index"`
		Hash     []byte    `db:"block_hash"`
	}
	ids, _ := countByListener(b.Events)
	err := hot.in(ctx, tx, sqlRecorded).SelectContext(ctx, &rows, pq.Array(ids), b.From, b.To)
	if err != nil {
		return nil, fmt.Errorf("look for records: %w", err)
	}
	if len(rows) == 0 {
		return b.Events, nil
	}
	recorded := make(map[logKey]bool, len(rows))
	for _, r := range rows {
		recorded[logKey{r.Listener, r.Block, r.Log, [32]byte(r.Hash)}] = true
	}
	events := make([]BlockchainEvent, 0, len(b.Events))
	for _, e := range b.Events {
		if !recorded[logKey{e.Listener, e.BlockNumber, e.LogIndex, [32]byte(e.BlockHash)}] {
			events = append(events, e)
		}
	}
	return events, nil
}

// advanceListeners moves the checkpoints of those who catch up, counts the events, and leaves out those of listeners that are gone.
func (hot statements) advanceListeners(ctx context.Context, tx *sqlx.Tx, b BlockBatch, next int64, events []BlockchainEvent) ([]BlockchainEvent, error) {
	ids, counts := countByListener(events)
	if b.CatchUp != nil {
		seen := make(map[string]bool, len(ids))
		for _, id := range ids {
			seen[id] = true
		}
		for _, id := range b.CatchUp.Listeners {
			if s := id.String(); !seen[s] {
				ids, counts = append(ids, s), append(counts, 0)
			}
		}
	}
	if len(ids) == 0 {
		return nil, nil
	}
	var there []uuid.UUID
	err := hot.in(ctx, tx, sqlAdvanceListeners).SelectContext(ctx, &there, pq.Array(ids), pq.Array(counts), b.CatchUp != nil, b.To+1, next)
	if err != nil {
		return nil, fmt.Errorf("move the listeners: %w", err)
	}
	if len(there) == len(ids) {
		return events, nil
	}
	alive := make(map[uuid.UUID]bool, len(there))
	for _, id := range there {
		alive[id] = true
	}
	kept := make([]BlockchainEvent, 0, len(events))
	for _, e := range events {
		if alive[e.Listener] {
			kept = append(kept, e)
		}
	}
	return kept, nil
}

func countByListener(events []BlockchainEvent) (ids []string, counts []int64) {
	at := map[uuid.UUID]int{}
	for i := range events {
		n, ok := at[events[i].Listener]
		if !ok {
			n = len(ids)
			at[events[i].Listener] = n
			ids, counts = append(ids, events[i].Listener.String()), append(counts, 0)
		}
		counts[n]++
	}
	return ids, counts
}

// insertPins records the logs of the pin contract, once each.
func insertPins(ctx context.Context, tx *sqlx.Tx, b BlockBatch) error {
	for _, p := range b.Pins { // few: each one is a transaction of a member that carries many messages
		_, err := tx.ExecContext(ctx, `
			INSERT INTO pins (chain, block_number, tx_index, log_index, block_hash, tx_hash, topics, data) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
			ON CONFLICT DO NOTHING`, b.Chain, p.BlockNumber, p.TxIndex, p.LogIndex, p.BlockHash, p.TxHash, p.Topics, p.Data)
		if err != nil {
			return fmt.Errorf("insert a pin: %w", err)
		}
	}
	return nil
}

const sqlInsertBlockchainEvents = `
	INSERT INTO blockchain_events (id, namespace, sequence, listener, name, protocol_id, tx_hash, block_number, block_hash, log_index, timestamp)
	SELECT id, namespace, sequence, listener, name, protocol_id, tx_hash, block_number, block_hash, log_index, to_timestamp(timestamp)
	FROM unnest(CAST($1 AS uuid[]), CAST($2 AS text[]), CAST($3 AS bigint[]), CAST($4 AS uuid[]), CAST($5 AS text[]), CAST($6 AS text[]),
		CAST($7 AS bytea[]), CAST($8 AS bigint[]), CAST($9 AS bytea[]), CAST($10 AS bigint[]), CAST($11 AS bigint[]))
		AS b (id, namespace, sequence, listener, name, protocol_id, tx_hash, block_number, block_hash, log_index, timestamp)`

// insertEvents appends the events to the history and records them under the sequences that they got there. It returns their namespaces.
//
// The history comes first, although appending to it takes the namespace's lock: the record needs the sequence. Only the insertion of the records follows.
func (hot statements) insertEvents(ctx context.Context, tx *sqlx.Tx, events []BlockchainEvent) (map[string]bool, error) {
	namespaces := map[string]bool{}
	now := Now()
	for start := 0; start < len(events); start += rowsPerStatement {
		slice := events[start:min(start+rowsPerStatement, len(events))]
		history := make([]Event, len(slice))
		for i := range slice {
			e := &slice[i]
			namespaces[e.Namespace] = true
			history[i] = Event{
				Namespace: e.Namespace, ID: NewID(), Type: EventBlockchainReceived, Reference: e.ID, Topic: e.Topic, Created: now,
				Listener: &e.Listener, Name: &e.Name, BodyKey: BodyBlockchainEvent, Body: e.Body,
			}
		}
		if err := hot.appendHistory(ctx, tx, history); err != nil {
			return nil, err
		}
		var c recordColumns
		for i := range slice {
			slice[i].Sequence = history[i].Sequence
			c.add(&slice[i])
		}
		_, err := hot.in(ctx, tx, sqlInsertBlockchainEvents).ExecContext(ctx, pq.Array(c.id), pq.Array(c.namespace), pq.Array(c.sequence),
			pq.Array(c.listener), pq.Array(c.name), pq.Array(c.protocolID), pq.Array(c.txHash), pq.Array(c.block), pq.Array(c.blockHash), pq.Array(c.log),
			pq.Array(c.timestamp))
		if err != nil {
			return nil, fmt.Errorf("insert blockchain events: %w", err)
		}
	}
	return namespaces, nil
}

// recordColumns holds blockchain events column by column, as unnest takes them.
type recordColumns struct {
	id, namespace, listener, name, protocolID []string
	sequence, block, log, timestamp           []int64
	txHash, blockHash                         [][]byte
}

func (c *recordColumns) add(e *BlockchainEvent) {
	c.id = append(c.id, e.ID.String())
	c.namespace = append(c.namespace, e.Namespace)
	c.sequence = append(c.sequence, e.Sequence)
	c.listener = append(c.listener, e.Listener.String())
	c.name = append(c.name, e.Name)
	c.protocolID = append(c.protocolID, e.ProtocolID)
	c.txHash = append(c.txHash, e.TxHash)
	c.block = append(c.block, e.BlockNumber)
	c.blockHash = append(c.blockHash, e.BlockHash)
	c.log = append(c.log, e.LogIndex)
	c.timestamp = append(c.timestamp, e.Timestamp.Unix())
}
