package chain

import (
	"context"
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

// Many callers at once, with spoilt and repeated operations among them, some of which leave before they are answered: what was accepted is mined once, with nonces
// without gaps, and nothing else is.
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
				case caller == 0 || caller == 1 && err != nil:
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
	if want := (callers-2)*(each-5) + 5; len(all) < want || len(all) > want+each {
		t.Errorf("%d operations, want %d, and those of one caller who did not wait", len(all), want)
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
