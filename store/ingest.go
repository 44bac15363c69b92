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
	hot, err := db.prepareAll(ctx, sqlMoveLive, sqlMoveCatchUp, sqlRecordEvents)
	if err != nil {
		return wrap(err, "record blocks")
	}
	var namespaces map[string]bool
	err = db.inTx(ctx, fmt.Sprintf("record blocks %d to %d of chain %s", b.From, b.To, b.Chain), func(tx *sqlx.Tx) error {
		next, err := hot.move(ctx, tx, b)
		if err != nil {
			return err
		}
		if err := insertPins(ctx, tx, b); err != nil {
			return err
		}
		namespaces, err = hot.recordEvents(ctx, tx, b, next)
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
		WITH moved AS (
			UPDATE chains SET next_block = $4, epoch = $2, pin_live = pin_live AND NOT $5,
				pin_next = CASE WHEN pin_live AND $5 THEN greatest(pin_block, next_block) ELSE pin_next END
			WHERE name = $1 AND epoch <= $2 AND next_block = $3 RETURNING name, next_block
		), forgotten AS (
			DELETE FROM chain_blocks b USING moved m WHERE b.chain = m.name AND b.number < $6
		), remembered AS (
			INSERT INTO chain_blocks (chain, number, hash, parent)
			SELECT m.name, b.number, b.hash, b.parent
			FROM moved m, unnest(CAST($7 AS bigint[]), CAST($8 AS bytea[]), CAST($9 AS bytea[])) AS b (number, hash, parent)
			WHERE b.number >= $6
			ON CONFLICT (chain, number) DO UPDATE SET hash = excluded.hash, parent = excluded.parent
		)
		SELECT next_block FROM moved`
	sqlMoveCatchUp = `
		UPDATE chains SET epoch = $2, pin_next = CASE WHEN pin_contract = $4 AND NOT pin_live THEN greatest(pin_next, $3) ELSE pin_next END,
			pin_live = pin_live OR coalesce(pin_contract = $4, false) AND greatest(pin_next, $3) >= next_block
		WHERE name = $1 AND epoch <= $2 RETURNING next_block`
	sqlDemoteListeners = `UPDATE listeners SET live = false, checkpoint = greatest(first_block, $2) WHERE chain = $1 AND live`
)

// move moves the position and takes the chain's row lock, which serialises all readers. It returns the chain's NextBlock.
func (hot statements) move(ctx context.Context, tx *sqlx.Tx, b BlockBatch) (int64, error) {
	query, args := sqlMoveLive, b.moveLive()
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
	if b.CatchUp != nil && b.To >= next {
		return 0, ErrMoved // the past ends where the live part begins
	}
	if b.Demote {
		if _, err := tx.ExecContext(ctx, sqlDemoteListeners, b.Chain, b.From); err != nil {
			return 0, fmt.Errorf("set the listeners back: %w", err)
		}
	}
	return next, nil
}

// moveLive are the arguments of sqlMoveLive.
func (b *BlockBatch) moveLive() []any {
	numbers, hashes, parents := make([]int64, len(b.Blocks)), make([][]byte, len(b.Blocks)), make([][]byte, len(b.Blocks))
	for i, block := range b.Blocks {
		numbers[i], hashes[i], parents[i] = block.Number, block.Hash, block.Parent
	}
	return []any{
		b.Chain, b.Lease.Epoch, b.From, b.To + 1, b.Demote, b.To + 1 - b.Keep, pq.Array(numbers), pq.Array(hashes), pq.Array(parents),
	}
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
