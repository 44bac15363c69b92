package store_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// Many wait for the ends of operations, in the process that ends them and in another one, some of them before the operation is there and some after its end: each
// hears of its own, with all that the database tells of it.
func TestWhoeverAwaitsAnOperationHearsOfItsEnd(t *testing.T) {
	const operations = 20
	url := pgtest.New(t)
	ctx, stop := context.WithCancel(t.Context())
	var running errgroup.Group
	replicas := make([]*store.DB, 2)
	for i := range replicas {
		db, err := store.Open(ctx, store.Config{URL: url}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() error { return db.Run(ctx) })
		t.Cleanup(func() { _ = db.Close() })
		replicas[i] = db
	}
	defer func() { stop(); _ = running.Wait() }()
	owner := replicas[0]
	if _, err := owner.EnsureChain(ctx, "dev", big.NewInt(31337), common.Hash{1}); err != nil {
		t.Fatal(err)
	}
	if err := owner.EnsureNamespace(ctx, "default", "dev"); err != nil {
		t.Fatal(err)
	}

	var waiting errgroup.Group
	heard := func(db *store.DB, id uuid.UUID, op store.Operation, err error) error {
		if err != nil {
			return err
		}
		stored, err := db.Operation(ctx, "default", id)
		if err != nil || !reflect.DeepEqual(op, stored) {
			return fmt.Errorf("heard %+v, stored is %+v, %w", op, stored, err)
		}
		return nil
	}
	ids := make([]uuid.UUID, operations)
	for i := range ids {
		ids[i] = store.NewID()
		for _, db := range replicas {
			early := db.Await(ids[i])
			waiting.Go(func() error {
				defer early.Close()
				op, err := early.Outcome(ctx)
				return heard(db, ids[i], op, err)
			})
		}
		n := newOperation(int64(i))
		n.ID = ids[i]
		if _, _, err := owner.CreateOperation(ctx, n); err != nil {
			t.Fatal(err)
		}
	}
	claimed(t, owner, func(ctx context.Context, lease store.Lease) {
		for i, id := range ids {
			hash := common.Hash{byte(i + 1)}
			signed := []store.Signed{{Operation: id, Nonce: uint64(i), Raw: []byte{1}, Hash: hash, Attempt: store.Attempt{Hash: hash, Reason: store.AttemptSubmit}}}
			if err := owner.AssignOutbox(ctx, lease, "dev", operationKey, uint64(i)+1, signed); err != nil {
				t.Fatal(err)
			}
			outcome := store.Outcome{Operation: id, Status: store.OpSucceeded, TxHash: &hash, Output: &store.OperationOutput{TransactionHash: hash.Hex()}}
			if err := owner.FinishOperations(ctx, lease, []store.Outcome{outcome}); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, db := range replicas {
		op, err := db.AwaitOperation(ctx, ids[0])
		if err := heard(db, ids[0], op, err); err != nil {
			t.Error(err)
		}
	}
	if err := waiting.Wait(); err != nil {
		t.Error(err)
	}
}
