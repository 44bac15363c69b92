package store

import (
	"bytes"
	"context"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/jmoiron/sqlx"

	pactwire "github.com/pactwire/pactwire"
)

// Chain is what is kept of one configured chain.
type Chain struct {
	Name        string `db:"name"`
	ChainID     string `db:"chain_id"` // decimal
	GenesisHash []byte `db:"genesis_hash"`
	PinContract []byte `db:"pin_contract"` // nil until it is deployed or configured
	PinBlock    int64  `db:"pin_block"`    // the first block that can hold pins
	PinNext     int64  `db:"pin_next"`     // the first block whose pins are not recorded yet; counts only while PinLive is false
	PinLive     bool   `db:"pin_live"`     // pins move with NextBlock
	NextBlock   int64  `db:"next_block"`   // the first block that the live reader has not recorded yet
	Epoch       int64  `db:"epoch"`
}

// EnsureChain makes the chain known. A database that already holds the records of another chain under the same name is refused: its checkpoints, nonces and
// events would all be wrong.
func (db *DB) EnsureChain(ctx context.Context, name string, chainID *big.Int, genesis common.Hash) (Chain, error) {
	var c Chain
	err := db.inTx(ctx, "register chain "+name, func(tx *sqlx.Tx) error {
		_, err := tx.ExecContext(ctx, `
			INSERT INTO chains (name, chain_id, genesis_hash) VALUES ($1, CAST($2 AS numeric), $3) ON CONFLICT (name) DO NOTHING`,
			name, chainID.String(), genesis.Bytes())
		if err != nil {
			return fmt.Errorf("insert the chain: %w", err)
		}
		if err := tx.GetContext(ctx, &c, sqlChain, name); err != nil {
			return fmt.Errorf("read the chain: %w", err)
		}
		return nil
	})
	if err != nil {
		return Chain{}, err
	}
	if c.ChainID != chainID.String() || !bytes.Equal(c.GenesisHash, genesis.Bytes()) {
		return Chain{}, pactwire.Conflict("chain_mismatch",
			"The database holds the records of chain %s with id %s and genesis block 0x%x, but the node serves chain id %s with genesis block %s. "+
				"Use the database that belongs to this chain, or give the chain another name.", name, c.ChainID, c.GenesisHash, chainID, genesis)
	}
	return c, nil
}

const sqlChain = `
	SELECT name, CAST(chain_id AS text) AS chain_id, genesis_hash, pin_contract, pin_block, pin_next, pin_live, next_block, epoch
	FROM chains WHERE name = $1`

// Chain returns one chain.
func (db *DB) Chain(ctx context.Context, name string) (Chain, error) {
	var c Chain
	err := db.db.GetContext(ctx, &c, sqlChain, name)
	return c, missing(err, "chain", name, "read chain "+name)
}

// SetPinContract records which contract pins batches on the chain, and the first block that can hold its pins. The reader reads another contract's pins,
// or those from another block on, from that block on; for the known contract it goes on where it was.
func (db *DB) SetPinContract(ctx context.Context, name string, address common.Address, block int64) error {
	_, err := db.db.ExecContext(ctx, `
		UPDATE chains SET pin_contract = $2, pin_block = $3, pin_next = $3, pin_live = false
		WHERE name = $1 AND (pin_contract IS DISTINCT FROM $2 OR pin_block <> $3)`, name, address.Bytes(), block)
	if err == nil {
		db.Notify(TopicListeners(name)) // the reader has one more contract to hear
	}
	return wrap(err, "record the pin contract of chain "+name)
}
