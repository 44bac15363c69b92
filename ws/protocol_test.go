package ws_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/internal/pgtest"
)

func TestBadQueriesAreAnsweredBeforeTheUpgrade(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", "", "")
	for _, c := range []struct {
		query  string
		status int
		says   string
	}{
		{"/ws?namespace=nowhere", 404, "nowhere"},
		{"/ws?namespace=nowhere&name=sub", 404, "nowhere"},
		{"/ws?namespace=default&name=unknown", 404, "unknown"},
		{"/ws?namespace=other&name=sub", 404, "sub"},
		{"/ws?name=sub", 400, "namespace"},
		{"/ws?ephemeral", 400, "namespace"},
		{"/ws?namespace=default&ephemeral&filter.events=(", 400, "filter.events"},
		{"/ws?namespace=default&ephemeral&filter.message.tag=" + strings.Repeat("a", 1001), 400, "filter.message.tag"},
		{"/ws?namespace=default&ephemeral&filter.event=a", 400, "filter.event"},
		{"/ws?namespace=default&ephemeral&filter.events=a&filter.events=b", 400, "filter.events"},
		{"/ws?namespace=default&ephemeral&readahead=65536", 400, "readAhead"},
		{"/ws?namespace=default&ephemeral&readahead=-1", 400, "readAhead"},
		{"/ws?namespace=default&ephemeral&firstevent=soon", 400, "firstEvent"},
		{"/ws?namespace=default&name=sub&filter.events=a", 400, "filter"},
		{"/ws?namespace=default&name=sub&firstevent=oldest", 400, "options"},
		{"/api/v1/namespaces/nowhere/ws", 404, "nowhere"},
		{"/api/v1/namespaces/default/ws?namespace=other", 400, "namespace"},
	} {
		_, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(n.http.URL, "http")+c.query, nil)
		if err == nil {
			t.Errorf("%s was accepted", c.query)
			continue
		}
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != c.status || !strings.Contains(string(body), c.says) {
			t.Errorf("%s: %d %s, want %d and %q", c.query, response.StatusCode, body, c.status, c.says)
		}
	}
	response, err := http.Get(n.http.URL + "/ws?namespace=default") //nolint:noctx // a plain request
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if response.StatusCode != 400 {
		t.Errorf("a plain GET: %d", response.StatusCode)
	}
}

func TestBadFramesCloseTheConnection(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("sub", "", "")
	for _, c := range []struct {
		query, frame, says string
		code               int
	}{
		{"/ws", `not json`, "JSON", websocket.CloseUnsupportedData},
		{"/ws", `[1]`, "JSON", websocket.CloseUnsupportedData},
		{"/ws", `{"type":"ack","id":7}`, "JSON", websocket.CloseUnsupportedData},
		{"/ws", `{"type":"stop"}`, "stop", websocket.ClosePolicyViolation},
		{"/ws", `{}`, "not known", websocket.ClosePolicyViolation},
		{"/ws", `{"type":"start","name":"sub"}`, "namespace", websocket.ClosePolicyViolation},
		{"/ws", `{"type":"start","namespace":"default"}`, "name", websocket.ClosePolicyViolation},
		{"/ws", `{"type":"start","namespace":"default","name":"unknown"}`, "unknown", websocket.ClosePolicyViolation},
		{"/ws", `{"type":"start","namespace":"nowhere","name":"sub"}`, "nowhere", websocket.ClosePolicyViolation},
		{"/ws", `{"type":"start","namespace":"default","ephemeral":true,"filter":{"events":"["}}`, "filter.events", websocket.ClosePolicyViolation},
		{"/ws", `{"type":"start","namespace":"default","ephemeral":true,"filter":{"evnts":"a"}}`, "evnts", websocket.ClosePolicyViolation},
		{"/ws", `{"type":"start","namespace":"default","ephemeral":true,"options":{"url":"http://x"}}`, "webhooks", websocket.ClosePolicyViolation},
		{"/ws?namespace=default&name=sub", `{"type":"start","namespace":"default","name":"sub"}`, "already started", websocket.ClosePolicyViolation},
		{"/api/v1/namespaces/default/ws", `{"type":"start","namespace":"other","ephemeral":true}`, "namespace", websocket.ClosePolicyViolation},
	} {
		client := n.dial(c.query)
		client.send("%s", c.frame)
		f := client.next()
		if f.Type != "protocol_error" || !strings.Contains(f.Error, c.says) {
			t.Errorf("%s: got %+v, want an error with %q", c.frame, f, c.says)
		}
		if f := client.next(); !websocket.IsCloseError(f.closed, c.code) {
			t.Errorf("%s: got %+v, want the connection to close with %d", c.frame, f, c.code)
		}
	}
	// The connection knows its namespace by its address or its query.
	for _, query := range []string{"/api/v1/namespaces/default/ws", "/ws?namespace=default"} {
		client := n.dial(query)
		client.send(`{"type":"start","name":"sub"}`)
		eventually(t, "it has started", func() bool { n.append(1); return len(client.frames) > 0 })
		client.close()
	}
	tooLong := n.dial("/ws")
	tooLong.send(`{"type":"%s"}`, strings.Repeat("x", 64<<10))
	tooLong.expectClose(websocket.CloseMessageTooBig)
}

func TestForeignPagesAreRefused(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	url := "ws" + strings.TrimPrefix(n.http.URL, "http") + "/ws?namespace=default"
	for origin, want := range map[string]bool{
		"": true, "https://app.example": true, "http://localhost:3000": true, "http://127.0.0.2": true, n.http.URL: true,
		"https://evil.example": false, "https://app.example.evil.example": false, "null": false, "http://app.example": false,
	} {
		header := http.Header{}
		if origin != "" {
			header.Set("Origin", origin)
		}
		socket, response, err := websocket.DefaultDialer.Dial(url, header)
		if want != (err == nil) {
			t.Errorf("origin %q: %v", origin, err)
		}
		if err == nil {
			_ = socket.Close()
		} else if response.StatusCode != http.StatusForbidden {
			t.Errorf("origin %q: status %d", origin, response.StatusCode)
		}
	}
}

func TestStopClosesConnectionsAndKeepsTheirAcknowledgements(t *testing.T) {
	url := pgtest.New(t)
	n := newNode(t, url)
	n.subscribe("sub", "", `{"firstEvent":"oldest","readAhead":50}`)
	n.append(50)
	c := n.dial("/ws?namespace=default&name=sub")
	for _, f := range c.expect(upTo(50)...) {
		c.ack(f)
	}
	idle := n.dial("/ws")
	status := func() int64 { return n.position("sub") }
	eventually(t, "acknowledgements arrive", func() bool { return status() > 0 })
	n.stop()
	c.expectClose(websocket.CloseGoingAway)
	idle.expectClose(websocket.CloseGoingAway)
	n = newNode(t, url)
	if p := n.position("sub"); p != 50 {
		t.Errorf("the position is %d", p)
	}
}

func TestClientPingsAreAnswered(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	c := n.dial("/ws?namespace=default")
	pong := make(chan string, 1)
	c.socket.SetPongHandler(func(data string) error { pong <- data; return nil })
	if err := c.socket.WriteControl(websocket.PingMessage, []byte("ping"), time.Now().Add(time.Second)); err != nil {
		t.Fatal(err)
	}
	select {
	case data := <-pong:
		if data != "ping" {
			t.Errorf("answered %q", data)
		}
	case <-time.After(patience):
		t.Fatal("no answer")
	}
}

// A client that reads nothing holds its own events up, and nobody else's.
func TestSlowConsumerHoldsUpOnlyItself(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe("slow", "", `{"firstEvent":"oldest","readAhead":65535}`)
	n.subscribe("quick", "", `{"firstEvent":"oldest","readAhead":50}`)
	events := n.append(1)
	body := `{"name":"` + strings.Repeat("x", 100_000) + `"}`
	for range 20 {
		for range 10 {
			e := events[0]
			e.ID, e.Body = [16]byte{}, body
			events = append(events, e)
		}
		n.appendEvents(events[1:])
		events = events[:1]
	}
	slow, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(n.http.URL, "http")+"/ws?namespace=default&name=slow", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	quick := n.dial("/ws?namespace=default&name=quick")
	for i := range int64(201) {
		quick.ack(quick.expect(i + 1)[0])
	}
	ctx := context.Background()
	status, err := n.manager.Status(ctx, must(n.db.Subscription(ctx, "default", "slow")))
	if err != nil || status.InFlight == 0 || status.InFlight == 201 {
		t.Errorf("the slow one: %+v, %v", status, err)
	}
	for i := range int64(201) { // it loses nothing by being slow
		var f frame
		if err := slow.ReadJSON(&f); err != nil || f.Sequence != i+1 {
			t.Fatalf("%+v %v", f.Sequence, err)
		}
	}
}
