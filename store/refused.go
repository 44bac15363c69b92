package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// RefusedTx is a transaction that was signed in the place of another one, and that the node does not take.
type RefusedTx struct {
	Operation uuid.UUID
	Nonce     uint64
	Hash      common.Hash
	Why       string // in the node's words

	Back *EarlierTx // nil: it goes on being sent
}

// EarlierTx is what is sent from now on instead: one of the transactions that were signed before.
type EarlierTx struct {
	Raw     []byte
	Hash    common.Hash
	Options TxOptions // with the wishes for fees that it was made with
}

// NoteRefusal notes in the operation's attempts that a transaction was refused, and goes back to an earlier one. What has ended, or has another nonce, stays.
func (db *DB) NoteRefusal(ctx context.Context, lease Lease, r RefusedTx) error {
	return db.inTx(ctx, "note a refusal", func(tx *sqlx.Tx) error {
		if err := checkLease(ctx, tx, lease); err != nil {
			return err
		}
		var texts pq.StringArray
		err := tx.GetContext(ctx, &texts, `SELECT attempts FROM outbox WHERE operation = $1 AND nonce = $2 FOR UPDATE`, r.Operation, int64(r.Nonce))
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the outbox: %w", err)
		}
		attempts, err := decodeAttempts(texts)
		if err != nil {
			return err
		}
		for i := range attempts {
			if attempts[i].Hash == r.Hash {
				attempts[i].Refused = r.Why
				texts[i] = attempts[i].encode()
			}
		}
		var raw, hash []byte
		var options *string
		if r.Back != nil {
			raw, hash = r.Back.Raw, r.Back.Hash[:]
			if options, err = optionsText(&r.Back.Options); err != nil {
				return err
			}
		}
		_, err = tx.ExecContext(ctx, `
			UPDATE outbox SET attempts = $2, raw = COALESCE(CAST($3 AS bytea), raw), tx_hash = COALESCE(CAST($4 AS bytea), tx_hash),
				options = COALESCE(CAST($5 AS text), options)
			WHERE operation = $1`, r.Operation, texts, raw, hash, options)
		if err != nil {
			return fmt.Errorf("update the outbox: %w", err)
		}
		return nil
	})
}
