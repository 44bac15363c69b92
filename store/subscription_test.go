package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

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

func TestMoveSubscriptionIsFenced(t *testing.T) {
	db, ctx := openHistory(t), context.Background()
	s := newSubscription("sub")
	if err := db.CreateSubscription(ctx, s, subscriptionAt(0)); err != nil {
		t.Fatal(err)
	}
	if err := db.MoveSubscription(ctx, s.ID, 3, 10, []int64{12, 14}); err != nil {
		t.Fatal(err)
	}
	claimed, err := db.ClaimSubscription(ctx, s.ID, 4)
	if err != nil || claimed.Position != 10 || len(claimed.Beyond) != 2 || claimed.Beyond[1] != 14 {
		t.Fatalf("claimed %+v, %v", claimed, err)
	}
	if err := db.MoveSubscription(ctx, s.ID, 3, 11, nil); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a former owner moved it: %v", err)
	}
	if err := db.MoveSubscription(ctx, s.ID, 4, 12, nil); err != nil {
		t.Errorf("the owner could not move it: %v", err)
	}
	if _, err := db.ClaimSubscription(ctx, s.ID, 3); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a former owner claimed it: %v", err)
	}
	if err := db.DeleteSubscription(ctx, "default", "sub"); err != nil {
		t.Fatal(err)
	}
	if err := db.MoveSubscription(ctx, s.ID, 4, 13, nil); pactwire.KindOf(err) != pactwire.KindNotFound {
		t.Errorf("moved what was deleted: %v", err)
	}
}
