package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

func subscriptionAt(position int64) store.FirstEvent {
	return func(int64) (json.RawMessage, int64) { return json.RawMessage(`{"firstEvent":"x"}`), position }
}

func newSubscription(name string) *store.Subscription {
	return &store.Subscription{Namespace: "default", Name: name, Transport: "websockets", Filter: json.RawMessage(`{"events":"a"}`)}
}

func TestSubscriptionNewestIsTheHead(t *testing.T) {
	db, ctx := openHistory(t), context.Background()
	if err := db.AppendEvents(ctx, []store.Event{{Namespace: "default", Type: "t"}, {Namespace: "default", Type: "t"}, {Namespace: "other", Type: "t"}}); err != nil {
		t.Fatal(err)
	}
	s := newSubscription("sub")
	err := db.CreateSubscription(ctx, s, func(head int64) (json.RawMessage, int64) { return json.RawMessage(`{}`), head })
	if err != nil || s.Position != 2 {
		t.Fatalf("position %d, %v", s.Position, err)
	}
	err = db.CreateSubscription(ctx, newSubscription("sub"), subscriptionAt(0))
	var known *pactwire.Error
	if !errors.As(err, &known) || known.Code != "subscription_name_taken" {
		t.Errorf("same name again: %v", err)
	}
	unknown := newSubscription("sub")
	unknown.Namespace = "nowhere"
	if err := db.CreateSubscription(ctx, unknown, subscriptionAt(0)); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("unknown namespace: %v", err)
	}
	byName, err := db.Subscription(ctx, "default", "sub")
	if err != nil || byName.ID != s.ID || string(byName.Filter) != `{"events":"a"}` || !byName.Created.Equal(s.Created) {
		t.Errorf("by name: %+v, %v", byName, err)
	}
	if byID, err := db.Subscription(ctx, "default", s.ID.String()); err != nil || byID.Name != "sub" {
		t.Errorf("by id: %+v, %v", byID, err)
	}
	if _, err := db.Subscription(ctx, "other", "sub"); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("in another namespace: %v", err)
	}
	if err := db.DeleteSubscription(ctx, "default", "sub"); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteSubscription(ctx, "default", "sub"); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("deleted twice: %v", err)
	}
}

func TestUpsertSubscriptionKeepsThePosition(t *testing.T) {
	db, ctx := openHistory(t), context.Background()
	keep := func(json.RawMessage) json.RawMessage { return json.RawMessage(`{"firstEvent":"kept"}`) }
	s := newSubscription("sub")
	if created, err := db.UpsertSubscription(ctx, s, subscriptionAt(7), keep); err != nil || !created || s.Position != 7 || s.Updated != nil {
		t.Fatalf("first: %v %+v, %v", created, s, err)
	}
	id := s.ID
	s = newSubscription("sub")
	s.Filter = json.RawMessage(`{"events":"b"}`)
	created, err := db.UpsertSubscription(ctx, s, subscriptionAt(99), keep)
	if err != nil || created || s.ID != id || s.Position != 7 || s.Updated == nil {
		t.Fatalf("second: %v %+v, %v", created, s, err)
	}
	if string(s.Filter) != `{"events":"b"}` || string(s.Options) != `{"firstEvent":"kept"}` {
		t.Errorf("filter %s, options %s", s.Filter, s.Options)
	}
}

func move(ctx context.Context, db *store.DB, id uuid.UUID, epoch, position int64, beyond ...int64) error {
	return db.MoveSubscriptions(ctx, []store.Move{{ID: id, Epoch: epoch, Position: position, Beyond: beyond}})[0]
}

func TestMoveSubscriptionsTogether(t *testing.T) {
	db, ctx := openHistory(t), context.Background()
	moves := make([]store.Move, 5)
	for i := range moves {
		s := newSubscription(fmt.Sprint("sub", i))
		if err := db.CreateSubscription(ctx, s, subscriptionAt(0)); err != nil {
			t.Fatal(err)
		}
		moves[i] = store.Move{ID: s.ID, Epoch: 2, Position: int64(10 + i), Beyond: []int64{20, 21, 23, 23}}
	}
	if _, err := db.ClaimSubscription(ctx, moves[1].ID, 3); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteSubscription(ctx, "default", "sub3"); err != nil {
		t.Fatal(err)
	}
	failed := db.MoveSubscriptions(ctx, moves)
	for i, want := range []int64{10, 0, 12, -1, 14} {
		s, err := db.Subscription(ctx, "default", fmt.Sprint("sub", i))
		switch want {
		case -1:
			if pactwire.KindOf(failed[i]) != pactwire.KindNotFound {
				t.Errorf("%d is gone: %v", i, failed[i])
			}
		case 0:
			if !errors.Is(failed[i], store.ErrFenced) || s.Position != 0 {
				t.Errorf("%d is fenced: %v, at %d", i, failed[i], s.Position)
			}
		default:
			if err != nil || failed[i] != nil || s.Position != want || !slices.Equal(s.Beyond, []int64{20, 21, 23, 23}) {
				t.Errorf("%d: %v, %v, %+v", i, err, failed[i], s)
			}
		}
	}
}

func TestMoveSubscriptionIsFenced(t *testing.T) {
	db, ctx := openHistory(t), context.Background()
	s := newSubscription("sub")
	if err := db.CreateSubscription(ctx, s, subscriptionAt(0)); err != nil {
		t.Fatal(err)
	}
	if err := move(ctx, db, s.ID, 3, 10, 12, 14); err != nil {
		t.Fatal(err)
	}
	claimed, err := db.ClaimSubscription(ctx, s.ID, 4)
	if err != nil || claimed.Position != 10 || len(claimed.Beyond) != 2 || claimed.Beyond[1] != 14 {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	if err := move(ctx, db, s.ID, 3, 11); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a former owner moved it: %v", err)
	}
	if err := move(ctx, db, s.ID, 4, 12); err != nil {
		t.Errorf("the owner could not move it: %v", err)
	}
	if _, err := db.ClaimSubscription(ctx, s.ID, 3); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a former owner claimed it: %v", err)
	}
	if err := db.DeleteSubscription(ctx, "default", "sub"); err != nil {
		t.Fatal(err)
	}
	if err := move(ctx, db, s.ID, 4, 13); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("moved what was deleted: %v", err)
	}
}
