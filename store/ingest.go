package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
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
	Events   []BlockchainEvent // Sequence is given here; namespace and topic are those of the listener
	Pins     []Pin
}

// CatchUp says who reads a range of the past by itself, below the chain's NextBlock. Whoever arrives at NextBlock with it becomes live.
type CatchUp struct {
	Listeners []uuid.UUID
	Pins      []byte // the pin contract that was read; nil when none was
}

// rowsPerStatement bounds the size of one statement's arguments.
const rowsPerStatement = 2000

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
	doing := fmt.Sprintf("record blocks %d to %d of chain %s", b.From, b.To, b.Chain)
	hot, err := db.prepareAll(ctx, sqlRecordLive, sqlMoveCatchUp, sqlRecordEvents)
	if err != nil {
		return wrap(err, doing)
	}
	r := &recording{statements: hot, BlockBatch: b, now: Now(), namespaces: map[string]bool{}}
	inSteps := !r.plain()
	if !inSteps {
		_, err = r.recordLive(ctx, hot[sqlRecordLive], db.db, b.Events)
		inSteps = violates(err, "blockchain_events_once") // a statement does not see what was recorded while it waited for the chain's row
	}
	if inSteps {
		err = db.inTx(ctx, doing, func(tx *sqlx.Tx) error { return r.inSteps(ctx, tx) })
	}
	if err != nil {
		return wrap(err, doing)
	}
	topics := make([]string, 0, len(r.namespaces)+1)
	for namespace := range r.namespaces {
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

// recording is a batch on its way into the database.
type recording struct {
	statements
	BlockBatch
	now        time.Time
	namespaces map[string]bool // whose histories have grown
}

// plain tells whether one statement does it all, as with most blocks at the head, whose events somebody waits for.
func (r *recording) plain() bool {
	return r.CatchUp == nil && !r.Demote && len(r.Pins) == 0 && len(r.Events) <= rowsPerStatement
}

// inSteps takes the chain's row lock with a statement of its own. What others have recorded is seen by those that follow.
func (r *recording) inSteps(ctx context.Context, tx *sqlx.Tx) error {
	next, err := r.move(ctx, tx)
	if err != nil {
		return err
	}
	if r.Demote {
		if _, err := tx.ExecContext(ctx, sqlDemoteListeners, r.Chain, r.From); err != nil {
			return fmt.Errorf("set the listeners back: %w", err)
		}
	}
	if err := insertPins(ctx, tx, r.BlockBatch); err != nil {
		return err
	}
	return r.recordEvents(ctx, tx, next)
}

const (
	sqlMoveCatchUp = `
		UPDATE chains SET epoch = $2, pin_next = CASE WHEN pin_contract = $4 AND NOT pin_live THEN greatest(pin_next, $3) ELSE pin_next END,
			pin_live = pin_live OR coalesce(pin_contract = $4, false) AND greatest(pin_next, $3) >= next_block
		WHERE name = $1 AND epoch <= $2 RETURNING next_block`
	sqlDemoteListeners = `UPDATE listeners SET live = false, checkpoint = greatest(first_block, $2) WHERE chain = $1 AND live`
)

// move moves the position and takes the chain's row lock, which serialises all readers. It returns the chain's NextBlock.
func (r *recording) move(ctx context.Context, tx *sqlx.Tx) (next int64, err error) {
	if r.CatchUp == nil {
		return r.recordLive(ctx, r.in(ctx, tx, sqlRecordLive), tx, nil)
	}
	err = r.in(ctx, tx, sqlMoveCatchUp).GetContext(ctx, &next, r.Chain, r.Lease.Epoch, r.To+1, r.CatchUp.Pins)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, r.whyNot(ctx, tx)
	case err != nil:
		return 0, fmt.Errorf("move the position: %w", err)
	case r.To >= next:
		return 0, ErrMoved // the past ends where the live part begins
	}
	return next, nil
}

// whyNot tells why the position was not moved.
func (r *recording) whyNot(ctx context.Context, db sqlx.QueryerContext) error {
	var epoch int64
	if err := sqlx.GetContext(ctx, db, &epoch, `SELECT epoch FROM chains WHERE name = $1`, r.Chain); err != nil {
		return fmt.Errorf("read the chain: %w", err)
	}
	if epoch > r.Lease.Epoch {
		return ErrFenced
	}
	return ErrMoved
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
