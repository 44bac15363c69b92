package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
)

// ClaimSigner makes the lease's owner the one that gives the key's nonces, and returns the lowest nonce that was never given.
func (db *DB) ClaimSigner(ctx context.Context, lease Lease, chain string, key common.Address) (next uint64, err error) {
	doing := fmt.Sprintf("claim signer %s on chain %s", key, chain)
	var n int64
	err = db.db.GetContext(ctx, &n, `
		INSERT INTO signers (chain, address, next_nonce, epoch) VALUES ($1, $2, 0, $3)
		ON CONFLICT (chain, address) DO UPDATE SET epoch = excluded.epoch WHERE signers.epoch <= excluded.epoch
		RETURNING next_nonce`, chain, key.Bytes(), lease.Epoch)
	if errors.Is(err, sql.ErrNoRows) {
		err = ErrFenced
	}
	return uint64(n), wrap(err, doing)
}
