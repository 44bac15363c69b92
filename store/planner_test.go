package store_test

import (
	"context"
	"database/sql"
	"math/big"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// TestStatementsGoByIndexes makes and ends operations on a new database: what that reads must not grow with what is there.
func TestStatementsGoByIndexes(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := openHistoryAt(t, store.Config{URL: url, MaxConns: 4})
	const operations = 300
	claimed(t, db, func(ctx context.Context, lease store.Lease) {
		for i := range operations {
			op, _, err := db.CreateOperation(ctx, newOperation(int64(i)))
			if err != nil {
				t.Fatal(err)
			}
			signed := []store.Signed{{Operation: op.ID, Nonce: uint64(i), Raw: []byte{9}, Hash: common.BigToHash(big.NewInt(int64(i)))}}
			if err := db.AssignOutbox(ctx, lease, "dev", operationKey, uint64(i)+1, signed); err != nil {
				t.Fatal(err)
			}
			if err := db.FinishOperations(ctx, lease, []store.Outcome{{Operation: op.ID, Status: store.OpSucceeded, TxHash: &signed[0].Hash}}); err != nil {
				t.Fatal(err)
			}
		}
	})
	if err := db.Close(); err != nil { // connections tell what they have read when they end
		t.Fatal(err)
	}
	raw, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	statistics := func() (read, found int64) {
		const query = `SELECT sum(seq_tup_read), sum(idx_tup_fetch) FROM pg_stat_user_tables WHERE relname IN ('operations', 'outbox')`
		if err := raw.QueryRowContext(t.Context(), query).Scan(&read, &found); err != nil {
			t.Fatal(err)
		}
		return read, found
	}
	read, found := statistics()
	for deadline := time.Now().Add(20 * time.Second); read+found < 2*operations; read, found = statistics() { // the last connection is about to end
		if time.Now().After(deadline) {
			t.Fatalf("only %d rows were read", read+found)
		}
	}
	if read > 10*operations {
		t.Errorf("%d rows were read to find %d", read, found)
	}
}
