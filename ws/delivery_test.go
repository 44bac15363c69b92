package ws_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

func TestFrameIsTheEventOfTheSpecification(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	sub := n.subscribe("sub", "", `{"firstEvent":"oldest"}`)
	e := n.append(1)[0]
	c := n.dial("/ws?namespace=default&name=sub")
	var got map[string]any
	if err := json.Unmarshal([]byte(c.next().raw), &got); err != nil {
		t.Fatal(err)
	}
	subscription, _ := got["subscription"].(map[string]any)
	event, _ := got["blockchainevent"].(map[string]any)
	if got["id"] != e.ID.String() || got["type"] != "blockchain_event_received" || got["sequence"] != 1.0 || got["namespace"] != "default" ||
		got["reference"] != e.Reference.String() || subscription["id"] != sub.ID.String() || subscription["name"] != "sub" ||
		event["name"] != "Changed" || event["sequence"] != 1.0 || got["topic"] != "topic" || got["created"] == "" {
		t.Errorf("got %v", got)
	}
}

func TestWindowSlidesWithAcknowledgements(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":3}`)
	n.append(8)
	c := n.dial("/ws")
	c.start("sub")
	got := c.expect(1, 2, 3)
	c.expectNothing()
	c.ack(got[0])
	got = append(got, c.expect(4)...)
	c.expectNothing()
	c.ack(got[2]) // out of order: 2 and 4 stay in flight
	got = append(got, c.expect(5)...)
	eventually(t, "the position is 1", func() bool { return n.position("sub") == 1 })
	c.ack(got[1])
	got = append(got, c.expect(6)...)
	eventually(t, "the position is 3", func() bool { return n.position("sub") == 3 })

	c.ack(got[0]) // duplicate
	c.expectError("not in flight")
	c.send(`{"type":"ack","id":"no id at all"}`)
	c.expectError("not in flight")
	c.send(`{"type":"ack"}`) // the oldest: 4
	c.expect(7)
	eventually(t, "the position is 4", func() bool { return n.position("sub") == 4 })
}

func TestUnacknowledgedEventsComeAgain(t *testing.T) {
	url := pgtest.New(t)
	n := newNode(t, url)
	n.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":10}`)
	n.append(5)
	c := n.dial("/ws?namespace=default&name=sub")
	first := c.expect(upTo(5)...)
	c.ack(first[0])
	c.ack(first[2]) // beyond the gap: it must not come again, here or anywhere
	eventually(t, "both are kept", func() bool {
		s, err := n.db.Subscription(context.Background(), "default", "sub")
		return err == nil && s.Position == 1 && slices.Equal(s.Beyond, []int64{3, 3})
	})
	c.close()

	c = n.dial("/ws?namespace=default&name=sub")
	again := c.expect(2, 4, 5)
	if again[0].ID != first[1].ID {
		t.Errorf("event 2 had id %s, now %s", first[1].ID, again[0].ID)
	}
	c.close()

	// The same after a restart.
	n.stop()
	n = newNode(t, url)
	c = n.dial("/ws?namespace=default&name=sub")
	for _, f := range c.expect(2, 4, 5) {
		c.ack(f)
	}
	eventually(t, "the position is 5", func() bool { return n.position("sub") == 5 })
	n.append(1)
	c.expect(6)
}

func TestOneCopyWithSeveralConnections(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":2}`)
	n.append(5)
	a := n.dial("/ws?namespace=default&name=sub")
	got := a.expect(1, 2)
	b := n.dial("/ws")
	b.start("sub")
	a.ack(got[0])
	a.expect(3)
	b.send(`{"type":"ack","id":%q}`, got[1].ID) // not in flight there
	b.expectError("not in flight")
	b.expectNothing()
	a.close()
	b.expect(2, 3)
}

func TestStandbyOnAnotherReplicaTakesOver(t *testing.T) {
	url := pgtest.New(t)
	first, second := newNode(t, url), newNode(t, url)
	first.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":10}`)
	first.append(4)
	a := first.dial("/ws?namespace=default&name=sub")
	got := a.expect(upTo(4)...)
	b := second.dial("/ws?namespace=default&name=sub")
	a.ack(got[0])
	a.ack(got[1])
	b.expectNothing()
	a.close()
	for _, f := range b.expect(3, 4) {
		b.ack(f)
	}
	second.append(1)
	b.expect(5)
	c := first.dial("/ws?namespace=default&name=sub")
	c.expectNothing()
	second.stop()
	c.expect(5)
}

func TestFirstEvent(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.append(5)
	for _, c := range []struct{ name, options, kept, next string }{
		{"default", ``, `{"firstEvent":"5","readAhead":0,"withData":false}`, "6"},
		{"newest", `{"firstEvent":"newest","readAhead":50}`, `{"firstEvent":"5","readAhead":50,"withData":false}`, "6"},
		{"oldest", `{"firstEvent":"oldest"}`, `{"firstEvent":"-1","readAhead":0,"withData":false}`, "1"},
		{"minus-one", `{"firstEvent":-1}`, `{"firstEvent":"-1","readAhead":0,"withData":false}`, "1"},
		{"marker", `{"firstEvent":"3"}`, `{"firstEvent":"3","readAhead":0,"withData":false}`, "4"},
		{"number", `{"firstEvent":3,"withData":true}`, `{"firstEvent":"3","readAhead":0,"withData":true}`, "4"},
		{"future", `{"firstEvent":"6"}`, `{"firstEvent":"6","readAhead":0,"withData":false}`, "7"},
	} {
		if s := n.subscribe(c.name, "", c.options); string(s.Options) != c.kept {
			t.Errorf("%s: options %s, want %s", c.name, s.Options, c.kept)
		}
	}
	n.append(2)
	for name, next := range map[string]int64{"default": 6, "newest": 6, "oldest": 1, "minus-one": 1, "marker": 4, "number": 4, "future": 7} {
		n.dial("/ws?namespace=default&name=" + name).expect(next)
	}
}

func TestFiltersAndTheirPosition(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	listener := store.NewID()
	n.subscribe("mine", `{"events":"blockchain_event_received","blockchainevent":{"listener":"`+listener.String()+`"}}`, `{"firstEvent":"oldest"}`)
	n.subscribe("tagged", `{"message":{"tag":"^invoice$"}}`, `{"firstEvent":"oldest"}`)
	events := make([]store.Event, 3000)
	for i := range events {
		events[i] = store.Event{Namespace: "default", Type: store.EventInvokeSucceeded, Reference: store.NewID()}
	}
	tag := "invoice"
	events[1500] = store.Event{Namespace: "default", Type: store.EventBlockchainReceived, Reference: store.NewID(), Listener: &listener}
	events[1600] = store.Event{Namespace: "default", Type: store.EventMessageConfirmed, Reference: store.NewID(), Tag: &tag}
	n.appendEvents(events)

	c := n.dial("/ws")
	c.start("mine")
	c.ack(c.expect(1501)[0])
	eventually(t, "filtered events move the position, nothing being in flight", func() bool { return n.position("mine") == 3000 })
	c.start("tagged")
	c.ack(c.expect(1601)[0])
	n.appendEvents([]store.Event{{Namespace: "default", Type: store.EventMessageConfirmed, Tag: &tag}, {Namespace: "default", Type: "x", Listener: &listener}})
	c.expect(3001)
	status, err := n.manager.Status(context.Background(), must(n.db.Subscription(context.Background(), "default", "tagged")))
	if err != nil || status.InFlight != 1 || status.Consumers != 1 || status.Head != 3002 || status.Position != 3000 || status.Lag != 2 {
		t.Errorf("status %+v, %v", status, err)
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestEphemeral(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.append(3)
	c := n.dial("/ws?namespace=default&ephemeral&filter.events=blockchain_event_received")
	n.append(3)
	f := c.expect(4)[0]
	if f.Subscription.Namespace != "default" || f.Subscription.Name == "" {
		t.Errorf("subscription %+v", f.Subscription)
	}
	c.expectNothing()
	c.ack(f)
	c.expect(5)

	auto := n.dial("/ws?namespace=default&ephemeral=true&autoack&firstevent=oldest")
	auto.expect(upTo(6)...)
	off := n.dial("/ws?namespace=default&ephemeral&autoack=false&firstevent=2&readahead=2")
	off.expect(3, 4)
	off.expectNothing()

	framed := n.dial("/ws")
	framed.send(`{"type":"start","namespace":"default","ephemeral":true,"autoack":true,"filter":{"events":"removed$"},"options":{"firstEvent":"newest"}}`)
	eventually(t, "it has started", func() bool {
		n.appendEvents([]store.Event{{Namespace: "default", Type: store.EventBlockchainRemoved}})
		select {
		case f := <-framed.frames:
			return f.Type == store.EventBlockchainRemoved
		default:
			return false
		}
	})
}

func TestAutoackMovesThePosition(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", "", `{"firstEvent":"oldest"}`)
	n.append(100)
	c := n.dial("/ws?namespace=default&name=sub&autoack")
	c.expect(upTo(100)...)
	eventually(t, "the position is 100", func() bool { return n.position("sub") == 100 })
	c.close()
	n.append(1)
	n.dial("/ws?namespace=default&name=sub&autoack").expect(101)
}

func TestNackBringsTheEventAgain(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":4}`)
	n.append(6)
	c := n.dial("/ws?namespace=default&name=sub")
	got := c.expect(1, 2, 3, 4)
	c.ack(got[2])
	c.expect(5)
	c.send(`{"type":"nack","id":%q}`, got[1].ID)
	c.expect(2, 4, 5)
	c.expectNothing()
	c.ack(got[0])
	c.expect(6)
	c.send(`{"type":"nack","id":%q}`, got[0].ID)
	c.expectError("not in flight")
}

func TestDeletedWhileActive(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", "", `{"firstEvent":"oldest"}`)
	n.append(1)
	c := n.dial("/ws?namespace=default&name=sub")
	c.expect(1)
	standby := n.dial("/ws?namespace=default&name=sub")
	if err := n.db.DeleteSubscription(context.Background(), "default", "sub"); err != nil {
		t.Fatal(err)
	}
	for _, c := range []*client{c, standby} {
		c.expectError("was deleted")
		c.expectClose(websocket.ClosePolicyViolation)
	}
}

func TestChangedFilterTakesEffect(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", `{"events":"never"}`, `{"firstEvent":"oldest","readAhead":5}`)
	n.append(2)
	c := n.dial("/ws?namespace=default&name=sub")
	eventually(t, "the first two are filtered out", func() bool {
		status, err := n.manager.Status(context.Background(), must(n.db.Subscription(context.Background(), "default", "sub")))
		return err == nil && status.Position == 2
	})
	s, created, err := n.manager.Put(context.Background(), delivery.SubscriptionRequest{
		Namespace: "default", Name: "sub", Filter: json.RawMessage(`{"events":"received"}`), Options: json.RawMessage(`{"firstEvent":"oldest","readAhead":1}`),
	})
	if err != nil || created || string(s.Options) != `{"firstEvent":"-1","readAhead":1,"withData":false}` {
		t.Fatalf("%+v %v %v", s, created, err)
	}
	eventually(t, "the new filter counts", func() bool {
		n.append(1)
		select {
		case f := <-c.frames:
			return f.Sequence > 2
		default:
			return false
		}
	})
	c.expectNothing() // the window is smaller now
}

func TestSameEventInTwoSubscriptionsOfOneConnection(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("a", "", `{"firstEvent":"oldest"}`)
	n.subscribe("b", "", `{"firstEvent":"oldest"}`)
	n.append(2)
	c := n.dial("/ws")
	c.start("a")
	a := c.expect(1)[0]
	c.start("b")
	b := c.expect(1)[0]
	if a.ID != b.ID {
		t.Fatal("not the same event")
	}
	c.ack(b)
	if f := c.expect(2)[0]; f.Subscription.Name != "b" {
		t.Errorf("b was acknowledged, %s went on", f.Subscription.Name)
	}
	c.send(`{"type":"ack","id":%q,"subscription":{"namespace":"default","name":"a"}}`, a.ID)
	if f := c.expect(2)[0]; f.Subscription.Name != "a" {
		t.Errorf("a was acknowledged, %s went on", f.Subscription.Name)
	}
}

func TestWithDataPutsTheValuesIntoTheMessage(t *testing.T) {
	url := pgtest.New(t)
	n := newNode(t, url)
	n.subscribe("with", "", `{"firstEvent":"oldest","withData":true}`)
	n.subscribe("without", "", `{"firstEvent":"oldest"}`)
	raw, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	message, data := store.NewID(), store.NewID()
	// Only its data is read: the message itself need not be there.
	_, err = raw.ExecContext(context.Background(), `ALTER TABLE data DROP CONSTRAINT data_namespace_message_fkey`)
	if err != nil {
		t.Fatal(err)
	}
	_, err = raw.ExecContext(context.Background(), `INSERT INTO data (namespace, message, position, id, hash, value, created) VALUES ('default', $1, 0, $2, 'x', '{"n":1}', now())`,
		message, data)
	if err != nil {
		t.Fatal(err)
	}
	n.appendEvents([]store.Event{{
		Namespace: "default", Type: store.EventMessageConfirmed, Reference: message, BodyKey: store.BodyMessage,
		Body: `{"header":{"id":"` + message.String() + `"},"data":[{"id":"` + data.String() + `","hash":"aa"}]}`,
	}})
	for name, want := range map[string]bool{"with": true, "without": false} {
		if f := n.dial("/ws?namespace=default&name=" + name).expect(1)[0]; strings.Contains(f.raw, `"value":{"n":1}`) != want {
			t.Errorf("%s: %s", name, f.raw)
		}
	}
}
