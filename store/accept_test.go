package store_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// What is accepted at the same time shares a statement: each caller gets its own operation, one that the database refuses spoils no other, and of those with the
// same idempotency key one is accepted.
func TestOperationsAcceptedTogether(t *testing.T) {
	db := openHistory(t)
	const callers, each = 32, 20
	var group errgroup.Group
	for caller := range callers {
		group.Go(func() error {
			for i := range each {
				n := newOperation(int64(caller*each + i))
				n.Input = fmt.Appendf(nil, `{"caller":"%d, \"%d\" \\ {}"}`, caller, i)
				switch {
				case caller == 0:
					n.Input = []byte("{\"text\":\"\x00\"}")
				case caller == 1:
					gone, cancel := context.WithCancel(t.Context())
					cancel()
					if _, _, err := db.CreateOperation(gone, n); !errors.Is(err, context.Canceled) {
						return fmt.Errorf("a caller that has left: %w", err)
					}
					continue
				case i == 0:
					n.IdempotencyKey, n.BodyHash = "first", []byte{1}
				}
				op, existed, err := db.CreateOperation(t.Context(), n)
				if caller == 0 {
					if pactwire.KindOf(err) != pactwire.KindInvalid {
						return fmt.Errorf("text with NUL: %w", err)
					}
					continue
				}
				if err != nil {
					return err
				}
				read, err := db.Operation(t.Context(), "default", op.ID)
				if err != nil || !existed && string(read.Input) != string(n.Input) || existed && n.IdempotencyKey == "" {
					return fmt.Errorf("stored %+v for %s, %w", read, n.Input, err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	calls, err := db.UnassignedOutbox(t.Context(), "dev", operationKey, 10_000)
	if err != nil {
		t.Fatal(err)
	}
	seen := map[uuid.UUID]bool{}
	values := map[int64]bool{}
	for _, c := range calls {
		seen[c.Operation], values[c.Value.Int64()] = true, true
	}
	if want := (callers-2)*(each-1) + 1; len(seen) != want || len(values) != want {
		t.Errorf("%d operations with %d values wait, want %d", len(seen), len(values), want)
	}
}

func TestAContractCreationHasNoAddress(t *testing.T) {
	db := openHistory(t)
	creation := newOperation(0)
	creation.To = nil
	for _, n := range []store.NewOperation{creation, newOperation(0)} {
		op, _, err := db.CreateOperation(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		calls, err := db.OutboxCalls(t.Context(), []uuid.UUID{op.ID})
		if err != nil || len(calls) != 1 || (calls[0].To == nil) != (n.To == nil) {
			t.Errorf("%+v became %+v, %v", n, calls, err)
		}
	}
}

// BenchmarkCreateOperation is the acceptance of operations by many callers at once.
func BenchmarkCreateOperation(b *testing.B) {
	db := openHistory(b)
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, _, err := db.CreateOperation(context.Background(), newOperation(1)); err != nil {
				b.Error(err)
				return
			}
		}
	})
}
