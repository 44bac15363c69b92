package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

var operationKey = common.Address{7}

func newOperation(value int64) store.NewOperation {
	to := common.Address{8}
	return store.NewOperation{
		Namespace: "default", Type: store.OpInvoke, Chain: "dev", Key: operationKey, To: &to, Data: []byte{1, 2}, Value: big.NewInt(value), Gas: 100,
		Input: json.RawMessage(`{"input":{"x":"1"}}`),
	}
}

// claimed runs fn as the owner of the key.
func claimed(t *testing.T, db *store.DB, fn func(context.Context, store.Lease)) {
	t.Helper()
	err := db.WithLease(context.Background(), "submitter/dev/test", func(ctx context.Context, lease store.Lease) error {
		if _, err := db.ClaimSigner(ctx, lease, "dev", operationKey); err != nil {
			return err
		}
		fn(ctx, lease)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestOperationFromAcceptanceToOutcome(t *testing.T) {
	db := openHistory(t)
	ctx := context.Background()
	op, existed, err := db.CreateOperation(ctx, newOperation(5))
	if err != nil || existed || op.Status != store.OpInitialized {
		t.Fatalf("%+v, %v, %v", op, existed, err)
	}
	read, err := db.Operation(ctx, "default", op.ID)
	if err != nil || read.Transaction != op.Transaction || string(read.Input) != `{"input":{"x":"1"}}` || !read.Created.Equal(op.Created) {
		t.Fatalf("%+v, %v", read, err)
	}
	if _, err := db.Operation(ctx, "other", op.ID); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Fatalf("in another namespace: %v", err)
	}
	claimed(t, db, func(ctx context.Context, lease store.Lease) {
		calls, err := db.UnassignedOutbox(ctx, "dev", operationKey, 10)
		if err != nil || len(calls) != 1 || calls[0].Gas != 100_150 || calls[0].Value.Int64() != 5 || *calls[0].To != (common.Address{8}) {
			t.Fatalf("%+v, %v", calls, err)
		}
		filler := store.NewID()
		err = db.AssignOutbox(ctx, lease, "dev", operationKey, 12, []store.Signed{
			{Operation: op.ID, Nonce: 10, Raw: []byte{9}, Hash: common.Hash{1}}, {Operation: filler, Filler: true, Nonce: 11, Gas: 21_000, Raw: []byte{8}, Hash: common.Hash{2}},
		})
		if err != nil {
			t.Fatal(err)
		}
		replacement := store.Signed{Operation: op.ID, Nonce: 10, Raw: []byte{7}, Hash: common.Hash{3}, Attempt: store.Attempt{Hash: common.Hash{3}, Asked: true}}
		if err := db.ReplaceSigned(ctx, lease, []store.Replacement{{Signed: replacement}}); err != nil {
			t.Fatal(err)
		}
		signed, err := db.SignedOutbox(ctx, "dev", operationKey)
		if err != nil || len(signed) != 2 || signed[0].Nonce != 10 || signed[0].Raw[0] != 7 || len(signed[0].Hashes) != 2 || !signed[1].Filler {
			t.Fatalf("%+v, %v", signed, err)
		}
		pending, err := db.Operation(ctx, "default", op.ID)
		if err != nil || pending.Status != store.OpPending || *pending.Nonce != 10 || *pending.TransactionHash != (common.Hash{3}) {
			t.Fatalf("%+v, %v", pending, err)
		}
		// What is refused is noted, and may be gone back from.
		refused := store.RefusedTx{Operation: op.ID, Nonce: 10, Hash: common.Hash{3}, Why: "\"no\" <to>\x00 it"}
		if err := db.NoteRefusal(ctx, lease, refused); err != nil {
			t.Fatal(err)
		}
		signed, err = db.SignedOutbox(ctx, "dev", operationKey)
		if err != nil || signed[0].Hash != (common.Hash{3}) || signed[0].Attempts[1].Refused != refused.Why || !signed[0].Attempts[1].Asked ||
			signed[0].Attempts[0].Refused != "" || signed[0].Attempts[0].Asked {
			t.Fatalf("%+v, %v", signed, err)
		}
		refused.Back = &store.EarlierTx{Raw: []byte{9}, Hash: common.Hash{1}, Options: store.TxOptions{GasPrice: big.NewInt(4)}}
		if err := db.NoteRefusal(ctx, lease, refused); err != nil {
			t.Fatal(err)
		}
		signed, err = db.SignedOutbox(ctx, "dev", operationKey)
		if err != nil || signed[0].Raw[0] != 9 || signed[0].Hash != (common.Hash{1}) || len(signed[0].Hashes) != 2 || !signed[0].Explicit {
			t.Fatalf("%+v, %v", signed, err)
		}
		former := lease
		former.Epoch--
		if err := db.NoteRefusal(ctx, former, refused); !errors.Is(err, store.ErrFenced) {
			t.Fatalf("under a lease that was lost: %v", err)
		}
		hash := common.Hash{1}
		outcome := store.Outcome{
			Operation: op.ID, Status: store.OpFailed, TxHash: &hash, Error: "no\x00 \xff", Output: &store.OperationOutput{TransactionHash: hash.Hex(), BlockNumber: "3"},
			Revert: &pactwire.Revert{Name: "Denied", Reason: "a\x00\xff"},
		}
		ends := []store.Outcome{outcome, {Operation: filler, Status: store.OpSucceeded}}
		if err := db.FinishOperations(ctx, lease, ends); err != nil {
			t.Fatal(err)
		}
		// A terminal state never changes.
		outcome.Status, outcome.Revert = store.OpSucceeded, nil
		if err := db.FinishOperations(ctx, lease, []store.Outcome{outcome}); err != nil {
			t.Fatal(err)
		}
		if next, err := db.ClaimSigner(ctx, lease, "dev", operationKey); err != nil || next != 12 {
			t.Fatalf("next nonce %d, %v", next, err)
		}
	})
	done, err := db.Operation(ctx, "default", op.ID)
	if err != nil || done.Status != store.OpFailed || done.Revert.Name != "Denied" || len(done.Attempts) != 2 || *done.TransactionHash != (common.Hash{1}) ||
		!strings.HasPrefix(done.Error, "no") {
		t.Fatalf("%+v, %v", done, err)
	}
	if out, ok := done.Mined(); !ok || out.BlockNumber != "3" {
		t.Fatalf("%s", done.Output)
	}
	page, err := db.EventsAfter(ctx, store.EventQuery{Namespace: "default", Limit: 10, Bytes: 1 << 20})
	if err != nil || len(page.Events) != 1 || page.Events[0].Type != store.EventInvokeFailed || !json.Valid([]byte(page.Events[0].Body)) {
		t.Fatalf("%+v, %v", page.Events, err)
	}
	all, err := db.TransactionOperations(ctx, "default", op.Transaction)
	if err != nil || len(all) != 1 || all[0].ID != op.ID {
		t.Fatalf("%+v, %v", all, err)
	}
}

// The statement that ends operations writes the bodies of their events by itself. They must say what the API says of the operations, in the order of the outcomes,
// each in its namespace's history.
func TestEventsTellTheEndsOfOperations(t *testing.T) {
	db := openHistory(t)
	const text = "quotes \" and \\, <tags>, \u2028, 漢字, \x01"
	var outcomes []store.Outcome
	namespaces := map[string][]uuid.UUID{}
	for i := range 12 {
		n := newOperation(int64(i))
		n.Namespace = []string{"default", "other"}[i%2]
		input, err := json.Marshal(map[string]string{"text": text})
		if err != nil {
			t.Fatal(err)
		}
		n.Input = input
		if i == 5 {
			n.Type = store.OpDeploy // its end is no event
		}
		op, _, err := db.CreateOperation(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		hash := common.Hash{byte(i + 1)}
		outcome := store.Outcome{Operation: op.ID, Status: store.OpSucceeded, TxHash: &hash, Output: &store.OperationOutput{TransactionHash: hash.Hex(), BlockNumber: "3"}}
		switch i % 3 {
		case 1:
			outcome.Status, outcome.Error, outcome.Revert = store.OpFailed, text, &pactwire.Revert{Name: "Denied", Reason: text, Data: "0x"}
		case 2:
			outcome = store.Outcome{Operation: op.ID, Status: store.OpFailed, Error: text}
		}
		outcomes = append(outcomes, outcome)
		if n.Type == store.OpInvoke {
			namespaces[n.Namespace] = append(namespaces[n.Namespace], op.ID)
		}
	}
	claimed(t, db, func(ctx context.Context, lease store.Lease) {
		if err := db.FinishOperations(ctx, lease, outcomes); err != nil {
			t.Fatal(err)
		}
	})
	for namespace, ids := range namespaces {
		page, err := db.EventsAfter(t.Context(), store.EventQuery{Namespace: namespace, Limit: 100, Bytes: 1 << 20})
		if err != nil || len(page.Events) != len(ids) {
			t.Fatalf("%d events in %s, %v", len(page.Events), namespace, err)
		}
		for i, event := range page.Events {
			op, err := db.Operation(t.Context(), namespace, ids[i])
			if err != nil {
				t.Fatal(err)
			}
			want, err := json.Marshal(op)
			if err != nil {
				t.Fatal(err)
			}
			var said, meant any
			if err := errors.Join(json.Unmarshal([]byte(event.Body), &said), json.Unmarshal(want, &meant)); err != nil {
				t.Fatalf("%s: %v", event.Body, err)
			}
			for _, name := range []string{"created", "updated"} { // trailing zeros do not matter
				a, errA := time.Parse(time.RFC3339Nano, said.(map[string]any)[name].(string))
				b, errB := time.Parse(time.RFC3339Nano, meant.(map[string]any)[name].(string))
				if errA != nil || errB != nil || !a.Equal(b) {
					t.Errorf("%s: %v, %v", name, said, meant)
				}
				delete(said.(map[string]any), name)
				delete(meant.(map[string]any), name)
			}
			kind := map[string]string{store.OpSucceeded: store.EventInvokeSucceeded, store.OpFailed: store.EventInvokeFailed}[op.Status]
			if !reflect.DeepEqual(said, meant) || event.Type != kind || event.Reference != op.ID || *event.Transaction != op.Transaction ||
				*event.TxType != store.TxInvoke || event.BodyKey != store.BodyOperation || event.Sequence != int64(i+1) {
				t.Errorf("%+v\nwant a body like %s", event, want)
			}
		}
	}
}

func TestFormerOwnerOfAKeyIsFenced(t *testing.T) {
	db := openHistory(t)
	op, _, err := db.CreateOperation(context.Background(), newOperation(0))
	if err != nil {
		t.Fatal(err)
	}
	var former store.Lease
	claimed(t, db, func(_ context.Context, lease store.Lease) { former = lease })
	claimed(t, db, func(ctx context.Context, _ store.Lease) {
		signed := []store.Signed{{Operation: op.ID, Nonce: 1, Raw: []byte{1}, Hash: common.Hash{1}}}
		if _, err := db.ClaimSigner(ctx, former, "dev", operationKey); !errors.Is(err, store.ErrFenced) {
			t.Errorf("claim: %v", err)
		}
		if err := db.AssignOutbox(ctx, former, "dev", operationKey, 5, signed); !errors.Is(err, store.ErrFenced) {
			t.Errorf("assign: %v", err)
		}
		if err := db.ReplaceSigned(ctx, former, []store.Replacement{{Signed: signed[0]}}); !errors.Is(err, store.ErrFenced) {
			t.Errorf("replace: %v", err)
		}
		if err := db.LowerNonces(ctx, former, signed); !errors.Is(err, store.ErrFenced) {
			t.Errorf("lower: %v", err)
		}
		if err := db.UnassignOutbox(ctx, former, []uuid.UUID{op.ID}); !errors.Is(err, store.ErrFenced) {
			t.Errorf("unassign: %v", err)
		}
		if err := db.FinishOperations(ctx, former, []store.Outcome{{Operation: op.ID, Status: store.OpFailed}}); !errors.Is(err, store.ErrFenced) {
			t.Errorf("finish: %v", err)
		}
	})
	read, err := db.Operation(context.Background(), "default", op.ID)
	if err != nil || read.Status != store.OpInitialized || read.Nonce != nil {
		t.Fatalf("%+v, %v", read, err)
	}
}

func TestIdempotencyKeyUnderARace(t *testing.T) {
	db := openHistory(t)
	ctx := context.Background()
	var group errgroup.Group
	ids := make([]uuid.UUID, 32)
	fresh := make([]bool, len(ids))
	for i := range ids {
		group.Go(func() error {
			n := newOperation(1)
			n.IdempotencyKey, n.BodyHash = "k", []byte{1}
			op, existed, err := db.CreateOperation(ctx, n)
			ids[i], fresh[i] = op.ID, !existed
			return err
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	made := 0
	for i := range ids {
		if fresh[i] {
			made++
		}
		if ids[i] != ids[0] {
			t.Fatalf("%s and %s for one key", ids[i], ids[0])
		}
	}
	if made != 1 {
		t.Fatalf("%d were made", made)
	}
	n := newOperation(2)
	n.IdempotencyKey, n.BodyHash = "k", []byte{2}
	_, _, err := db.CreateOperation(ctx, n)
	var conflict *pactwire.Error
	if !errors.As(err, &conflict) || conflict.Kind != pactwire.KindConflict || conflict.Code != "idempotency_conflict" {
		t.Fatalf("another body: %v", err)
	}
	op, err := db.OperationByIdempotencyKey(ctx, "default", "k")
	if err != nil || op.ID != ids[0] {
		t.Fatalf("%s, %v", op.ID, err)
	}
	if _, err := db.OperationByIdempotencyKey(ctx, "default", "none"); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Fatal(err)
	}
}

func TestGasLimitHasAReserve(t *testing.T) {
	for gas, want := range map[uint64]uint64{
		0: 100_000, 26_000: 139_000, 2_000_000: 2_500_000, 16_700_000: 16_777_216, 16_777_216: 16_777_216, 20_000_000: 20_500_000,
	} {
		n := store.NewOperation{Gas: gas}
		if got := n.GasLimit(); got != want {
			t.Errorf("%d: %d, want %d", gas, got, want)
		}
		if n.Options.Gas = &gas; n.GasLimit() != gas {
			t.Errorf("%d was asked for", gas)
		}
	}
}
