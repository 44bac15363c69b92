package chain

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

// Many callers at once, with spoilt and repeated operations among them, one of whom has always left before: what was accepted is mined once, with nonces without
// gaps, and nothing else is, not even to fill a nonce that was planned for a repeat.
func TestAcceptedWithTheirNonces(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	b.submit(t, func(c *SubmitterConfig) { c.MaxInFlight = 20 }) // so that some have to wait in the outbox
	b.await(t, b.create(t, b.call(t, a, to, "set", big.NewInt(1))))
	const callers, each = 16, 25
	ids := make([][]uuid.UUID, callers)
	var group errgroup.Group
	for caller := range callers {
		group.Go(func() error {
			for i := range each {
				n := b.call(t, a, to, "set", big.NewInt(int64(i)))
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				switch {
				case caller == 0:
					n.Input = []byte("{\"text\":\"\x00\"}")
				case caller == 1:
					cancel()
				case i%5 == 0:
					n.IdempotencyKey, n.BodyHash = fmt.Sprint("key ", i), []byte{1}
				}
				op, _, err := b.running.Accept(ctx, n)
				switch {
				case caller == 0 && pactwire.KindOf(err) != pactwire.KindInvalid:
					return fmt.Errorf("text with NUL: %w", err)
				case caller == 1 && !errors.Is(err, context.Canceled):
					return fmt.Errorf("a caller that has left: %w", err)
				case caller <= 1:
				case err != nil:
					return err
				default:
					ids[caller] = append(ids[caller], op.ID)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(ids...)
	slices.SortFunc(all, func(x, y uuid.UUID) int { return slices.Compare(x[:], y[:]) })
	all = slices.Compact(all)
	if want := (callers-2)*(each-5) + 5; len(all) != want {
		t.Errorf("%d operations, want %d", len(all), want)
	}
	first := b.eventsAfter(t, 0)[0].Reference
	b.endsOnce(t, append(all, first), before)
}

// What an owner has stored with its nonce and not sent, because it died, its successor sends byte for byte.
func TestAcceptedAndNotSent(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	n := b.call(t, a, to, "set", big.NewInt(5))
	n.ID = store.NewID()
	s := NewSubmitter(SubmitterConfig{Chain: "dev"}, b.db, b.client, b.signer, testLog(t))
	err := b.db.WithLease(t.Context(), s.leaseName(b.key), func(ctx context.Context, lease store.Lease) error {
		k := s.newOwner(b.key, lease)
		if err := k.restore(ctx); err != nil {
			return err
		}
		waiting := k.accepting.put(ctx, n)
		k.backlog = false
		if _, err := k.assign(ctx); err != nil {
			return err
		}
		<-waiting.done
		if waiting.result != acceptStored || waiting.operation.ID != n.ID || waiting.operation.Status != store.OpPending {
			t.Errorf("%+v", waiting)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := b.db.SignedOutbox(t.Context(), "dev", b.key)
	if err != nil || len(stored) != 1 || stored[0].Nonce != before {
		t.Fatalf("%+v, %v", stored, err)
	}
	b.submit(t)
	b.chain.SetAutomine(true)
	op := b.succeeded(t, n.ID)
	if len(op.Attempts) != 1 || *op.TransactionHash != stored[0].Hashes[0] {
		t.Errorf("sent %s, stored was %s", op.TransactionHash, stored[0].Hashes[0])
	}
}

// The nonces that were planned for operations with used idempotency keys go to others of the batch: none is left open, or filled.
func TestARepeatTakesNoNonce(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0, chaintest.Manual())
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	before := b.minedNonce(t, b.key)
	keys := []string{"first", "first", "", "second", "second", "", ""} // the first one waits in the outbox, the last one comes later
	calls := make([]store.NewOperation, len(keys))
	for i, key := range keys {
		calls[i] = b.call(t, a, to, "set", big.NewInt(int64(i)))
		calls[i].ID, calls[i].IdempotencyKey, calls[i].BodyHash = store.NewID(), key, []byte{1}
	}
	if _, _, err := b.db.CreateOperation(t.Context(), calls[0]); err != nil {
		t.Fatal(err)
	}
	ids := []uuid.UUID{calls[0].ID}
	s := NewSubmitter(SubmitterConfig{Chain: "dev"}, b.db, b.client, b.signer, testLog(t))
	err := b.db.WithLease(t.Context(), s.leaseName(b.key), func(ctx context.Context, lease store.Lease) error {
		k := s.newOwner(b.key, lease)
		if err := k.restore(ctx); err != nil {
			return err
		}
		var waiting []*acceptance
		for _, n := range calls[1:6] {
			waiting = append(waiting, k.accepting.put(ctx, n))
		}
		for range 2 { // the second time nobody waits: what is open is filled
			if _, err := k.assign(ctx); err != nil {
				return err
			}
		}
		waiting = append(waiting, k.accepting.put(ctx, calls[6]))
		if _, err := k.assign(ctx); err != nil {
			return err
		}
		var repeated []string
		for _, one := range waiting {
			switch <-one.done; one.result {
			case acceptStored:
				ids = append(ids, one.operation.ID)
			case acceptRepeated:
				repeated = append(repeated, one.new.IdempotencyKey)
			default:
				t.Errorf("%+v", one)
			}
		}
		if !slices.Equal(repeated, []string{"first", "second"}) {
			t.Errorf("%q were used before", repeated)
		}
		stored, err := b.db.SignedOutbox(ctx, "dev", b.key)
		if err != nil || len(stored) != len(ids) {
			t.Errorf("%+v, %v", stored, err)
		}
		for i, row := range stored {
			flying := k.state.at(row.Nonce)
			if row.Nonce != before+uint64(i) || row.Filler || flying == nil || flying.operation != row.Operation || !slices.Equal(flying.hashes, row.Hashes) {
				return fmt.Errorf("%+v, in flight is %+v", row, flying)
			}
		}
		sending := k.sending.take(len(stored) + 1)
		if len(sending) != len(stored) {
			t.Errorf("%d of %d are to be sent", len(sending), len(stored))
		}
		for i, out := range sending {
			if tx, err := decodeTx(out.raw); err != nil || tx.Nonce() != before+uint64(i) || tx.Hash() != out.hash || out.hash != out.sent {
				return fmt.Errorf("%+v is to be sent, %w", out, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	b.submit(t)
	b.chain.SetAutomine(true)
	b.endsOnce(t, ids, before)
}

// A former owner stores nothing: its callers are answered by way of the outbox.
func TestAFormerOwnerAcceptsNothing(t *testing.T) {
	t.Parallel()
	b := newSubmitBench(t, 0)
	a := contracts.SimpleStorage()
	to := b.chain.Deploy(t, a)
	s := NewSubmitter(SubmitterConfig{Chain: "dev"}, b.db, b.client, b.signer, testLog(t))
	var former *keySubmitter
	for range 2 {
		err := b.db.WithLease(t.Context(), s.leaseName(b.key), func(ctx context.Context, lease store.Lease) error {
			k := s.newOwner(b.key, lease)
			if former == nil {
				former = k
			}
			return k.restore(ctx)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	n := b.call(t, a, to, "set", big.NewInt(5))
	n.ID = store.NewID()
	waiting := former.accepting.put(t.Context(), n)
	former.backlog = false
	if _, err := former.assign(t.Context()); err == nil {
		t.Error("a former owner goes on")
	}
	<-waiting.done
	if waiting.result != acceptElsewhere {
		t.Errorf("%+v", waiting)
	}
	if _, err := b.db.Operation(t.Context(), "default", n.ID); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("it was stored: %v", err)
	}
}
