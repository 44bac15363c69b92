package store_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// openSubscriptions returns a database with 23 subscriptions in the namespace default, two of three with the same transport, and one elsewhere.
func openSubscriptions(t *testing.T) *store.DB {
	t.Helper()
	db := openHistory(t)
	first := func(int64) (json.RawMessage, int64) { return json.RawMessage(`{}`), -1 }
	for i := range 24 {
		// Names are made in another order than the alphabet's.
		s := store.Subscription{
			Namespace: "default", Name: fmt.Sprintf("s%02d", (i*7)%23), Transport: []string{"websockets", "webhooks", "websockets"}[i%3], Filter: json.RawMessage(`{}`),
		}
		if i == 23 {
			s.Namespace = "other"
		}
		if err := db.CreateSubscription(context.Background(), &s, first); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

func subscriptionNames(items []store.Subscription) []string {
	out := make([]string, len(items))
	for i, s := range items {
		out[i] = s.Name
	}
	return out
}

// readAll follows the cursors from the first page to the last.
func readAll(t *testing.T, db *store.DB, p store.Page) []string {
	t.Helper()
	var all []string
	for range 100 {
		items, info, err := db.ListSubscriptions(context.Background(), "default", p)
		if err != nil {
			t.Fatal(err)
		}
		if len(items) > p.Limit || len(items) < p.Limit && info.Next != "" {
			t.Fatalf("a page of %d with limit %d, and next %q", len(items), p.Limit, info.Next)
		}
		all = append(all, subscriptionNames(items)...)
		if info.Next == "" {
			return all
		}
		p.After = info.Next
	}
	t.Fatal("the pages do not end")
	return nil
}

func TestPagesGiveEachItemOnceInOrder(t *testing.T) {
	db := openSubscriptions(t)
	up, down := false, true
	for _, sort := range []string{"", "id", "name", "transport", "created"} {
		for _, descending := range []*bool{nil, &up, &down} {
			whole, info, err := db.ListSubscriptions(context.Background(), "default", store.Page{Limit: 250, Sort: sort, Descending: descending})
			if err != nil {
				t.Fatal(err)
			}
			want := subscriptionNames(whole)
			if info.Next != "" || len(want) != 23 {
				t.Fatalf("sort %q: %d items and next %q", sort, len(want), info.Next)
			}
			ordered := func(a, b store.Subscription) int {
				switch sort {
				case "name":
					return strings.Compare(a.Name, b.Name)
				case "transport":
					return strings.Compare(a.Transport, b.Transport)
				case "created":
					return a.Created.Compare(b.Created)
				}
				return strings.Compare(a.ID.String(), b.ID.String())
			}
			if falling := descending == &down || descending == nil && sort == ""; falling {
				slices.Reverse(whole)
			}
			if !slices.IsSortedFunc(whole, ordered) {
				t.Errorf("sort %q, descending %v: not in order: %v", sort, descending, want)
			}
			// 22, 23 and 24 are where the last page and the list end just before, together and just after.
			for _, limit := range []int{1, 2, 5, 22, 23, 24} {
				if got := readAll(t, db, store.Page{Limit: limit, Sort: sort, Descending: descending}); !slices.Equal(got, want) {
					t.Errorf("sort %q, limit %d: %v, want %v", sort, limit, got, want)
				}
			}
		}
	}
}

func TestPageStaysInPlaceWhileItemsComeAndGo(t *testing.T) {
	db, ctx := openSubscriptions(t), context.Background()
	page := store.Page{Limit: 10, Sort: "name"}
	items, info, err := db.ListSubscriptions(ctx, "default", page)
	if err != nil {
		t.Fatal(err)
	}
	// The row that the cursor was made from goes, and one before it comes: the next page must begin where it would have.
	if err := db.DeleteSubscription(ctx, "default", items[9].Name); err != nil {
		t.Fatal(err)
	}
	early := store.Subscription{Namespace: "default", Name: "a", Transport: "websockets", Filter: json.RawMessage(`{}`)}
	if err := db.CreateSubscription(ctx, &early, func(int64) (json.RawMessage, int64) { return json.RawMessage(`{}`), -1 }); err != nil {
		t.Fatal(err)
	}
	page.After = info.Next
	items, _, err = db.ListSubscriptions(ctx, "default", page)
	if err != nil || len(items) != 10 || items[0].Name != "s10" {
		t.Fatalf("the next page is %v, %v", subscriptionNames(items), err)
	}
}

func TestPageCountsFiltersAndSkips(t *testing.T) {
	db, ctx := openSubscriptions(t), context.Background()
	items, info, err := db.ListSubscriptions(ctx, "default", store.Page{Limit: 5, Count: true})
	if err != nil || info.Total != 23 || len(items) != 5 {
		t.Errorf("counted %d, %d items, %v", info.Total, len(items), err)
	}
	items, info, err = db.ListSubscriptions(ctx, "default", store.Page{Limit: 5, Count: true, Filters: map[string]string{"transport": "webhooks"}, After: info.Next})
	if err != nil || info.Total != 8 {
		t.Errorf("counted %d of one transport, %v: a count is of the whole collection, wherever the page stands", info.Total, err)
	}
	for _, s := range items {
		if s.Transport != "webhooks" {
			t.Errorf("%s is not of that transport", s.Name)
		}
	}
	items, _, err = db.ListSubscriptions(ctx, "default", store.Page{Limit: 3, Skip: 21, Sort: "name"})
	if names := subscriptionNames(items); err != nil || !slices.Equal(names, []string{"s21", "s22"}) {
		t.Errorf("skipped to %v, %v", names, err)
	}
	items, _, err = db.ListSubscriptions(ctx, "default", store.Page{})
	if err != nil || len(items) != 23 {
		t.Errorf("%d items by default, %v", len(items), err)
	}
	if items, info, err = db.ListSubscriptions(ctx, "nowhere", store.Page{Count: true}); err != nil || items == nil || len(items) != 0 || info.Total != 0 || info.Next != "" {
		t.Errorf("an empty collection: %v, %+v, %v", items, info, err)
	}
}

func TestPageRefusesWhatItCannotRead(t *testing.T) {
	db, ctx := openSubscriptions(t), context.Background()
	_, byName, err := db.ListSubscriptions(ctx, "default", store.Page{Limit: 1, Sort: "name"})
	if err != nil {
		t.Fatal(err)
	}
	for name, p := range map[string]store.Page{
		"unknown sort":           {Sort: "colour"},
		"sort by SQL":            {Sort: "name; DROP TABLE subscriptions"},
		"unknown filter":         {Filters: map[string]string{"colour": "red"}},
		"filter of another type": {Filters: map[string]string{"id": "nonsense"}},
		"time that is none":      {Filters: map[string]string{"created": "yesterday-ish"}},
		"filter with NUL":        {Filters: map[string]string{"name": "a\x00"}},
		"filter with no UTF-8":   {Filters: map[string]string{"name": "a\xff"}},
		"cursor of another sort": {After: byName.Next},
		"cursor that is none":    {After: "nonsense"},
		"cursor of nothing":      {After: base64.RawURLEncoding.EncodeToString([]byte(`{}`))},
		"cursor made up":         {Sort: "created", After: madeUp("created", "never", "x")},
		"cursor with NUL":        {Sort: "name", After: madeUp("name", "\x00", store.NewID().String())},
	} {
		_, _, err := db.ListSubscriptions(ctx, "default", p)
		var known *pactwire.Error
		if !errors.As(err, &known) || known.Kind != pactwire.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func madeUp(sort, value, key string) string {
	text, _ := json.Marshal(map[string]string{"s": sort, "v": value, "k": key})
	return base64.RawURLEncoding.EncodeToString(text)
}

// TestEveryCollectionSortsAndPagesByEveryField lets the database read the statements of all collections.
func TestEveryCollectionSortsAndPagesByEveryField(t *testing.T) {
	db, ctx := openHistory(t), context.Background()
	const id, text, moment, number = "018f0000-0000-7000-8000-000000000000", "x", "2026-01-02 03:04:05.000006+00", "7"
	collections := map[string]struct {
		list   func(store.Page) error
		key    string
		fields map[string]string
	}{
		"interfaces": {
			func(p store.Page) error { _, _, err := db.ListInterfaces(ctx, "default", p); return err }, id,
			map[string]string{"id": id, "name": text, "version": text, "message": id, "state": text, "created": moment},
		},
		"APIs": {
			func(p store.Page) error { _, _, err := db.ListAPIs(ctx, "default", p); return err }, id,
			map[string]string{"id": id, "name": text, "interface": id, "message": id, "state": text, "created": moment},
		},
		"listeners": {
			func(p store.Page) error { _, _, err := db.ListListeners(ctx, "default", p); return err }, id,
			map[string]string{"id": id, "name": text, "topic": text, "signature": text, "protocolId": text, "created": moment},
		},
		"events": {
			func(p store.Page) error { _, _, err := db.ListEvents(ctx, "default", p); return err }, number,
			map[string]string{"id": id, "sequence": number, "type": text, "reference": id, "topic": text, "created": moment},
		},
		"blockchain events": {
			func(p store.Page) error { _, _, err := db.ListBlockchainEvents(ctx, "default", p); return err }, number,
			map[string]string{"id": id, "name": text, "listener": id, "protocolId": text, "timestamp": moment, "sequence": number},
		},
		"messages": {
			func(p store.Page) error { _, _, err := db.ListMessages(ctx, "default", p); return err }, id,
			map[string]string{"id": id, "state": text, "author": text, "tag": text, "type": text, "created": moment},
		},
		"operations": {
			func(p store.Page) error { _, _, err := db.ListOperations(ctx, "default", p); return err }, id,
			map[string]string{"id": id, "tx": id, "type": text, "status": text, "created": moment, "updated": moment},
		},
	}
	for name, c := range collections {
		for field, value := range c.fields {
			for _, p := range []store.Page{
				{Sort: field, Count: true},
				{Sort: field, After: madeUp(field, value, c.key)},
				{Filters: map[string]string{field: value}, Count: true},
				{After: madeUp("", c.key, c.key)},
			} {
				if err := c.list(p); err != nil {
					t.Errorf("%s by %s: %v", name, field, err)
				}
			}
		}
	}
}
