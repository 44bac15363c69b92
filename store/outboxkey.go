package store

import (
	"context"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// OutboxKey is what one key has to do.
type OutboxKey struct {
	Key           common.Address
	Unsent        int64 // operations that wait for a nonce
	Unmined       int64 // transactions that have one and are not finished
	OldestUnsent  *time.Time
	OldestUnmined *time.Time
}

// OutboxKeys returns the keys of the chain that have something to do, by address.
func (db *DB) OutboxKeys(ctx context.Context, chain string) ([]OutboxKey, error) {
	var rows []struct {
		Key           []byte     `db:"key"`
		Unsent        int64      `db:"unsent"`
		Unmined       int64      `db:"unmined"`
		OldestUnsent  *time.Time `db:"oldest_unsent"`
		OldestUnmined *time.Time `db:"oldest_unmined"`
	}
	err := db.db.SelectContext(ctx, &rows, `
		SELECT key, count(*) FILTER (WHERE nonce IS NULL) AS unsent, count(nonce) AS unmined, min(created) FILTER (WHERE nonce IS NULL) AS oldest_unsent,
			min(assigned) FILTER (WHERE nonce IS NOT NULL) AS oldest_unmined
		FROM outbox WHERE chain = $1 GROUP BY key ORDER BY key`, chain)
	if err != nil {
		return nil, wrap(err, "read what the keys have to do")
	}
	keys := make([]OutboxKey, len(rows))
	for i, r := range rows {
		keys[i] = OutboxKey{
			Key: common.BytesToAddress(r.Key), Unsent: r.Unsent, Unmined: r.Unmined, OldestUnsent: r.OldestUnsent, OldestUnmined: r.OldestUnmined,
		}
	}
	return keys, nil
}
