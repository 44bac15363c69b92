package ws_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/gorilla/websocket"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/frametest"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
	"github.com/pactwire/pactwire/ws"
)

func TestMain(m *testing.M) {
	// Each check of the model starts databases and connections: a few long ones find as much as many short ones. -rapid.checks asks for more.
	_ = flag.Set("rapid.checks", "8")
	_ = flag.Set("rapid.steps", "60")
	pgtest.Main(m)
}

func logger() *slog.Logger {
	if os.Getenv("PACTWIRE_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}
	return slog.New(slog.DiscardHandler)
}

// node is one replica of the service, as far as delivery goes.
type node struct {
	t       testing.TB
	db      *store.DB
	manager *delivery.Manager
	server  *ws.Server
	http    *httptest.Server
	stop    func()
}

// newNode starts a replica on the database. It stops with the test, or before by stop.
func newNode(t testing.TB, url string) *node {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	db, err := store.Open(ctx, store.Config{URL: url, LeaseTTL: 2 * time.Second}, logger())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.EnsureChain(ctx, "dev", big.NewInt(31337), common.Hash{1}); err != nil {
		t.Fatal(err)
	}
	for _, namespace := range []string{"default", "other"} {
		if err := db.EnsureNamespace(ctx, namespace, "dev"); err != nil {
			t.Fatal(err)
		}
	}
	n := &node{t: t, db: db, manager: delivery.New(delivery.Config{}, db, logger())}
	n.server = ws.New(ws.Config{WriteError: writeError, Origins: []string{"https://app.example"}}, n.manager, logger())
	mux := http.NewServeMux()
	mux.Handle("/ws", n.server.Handler())
	mux.HandleFunc("/api/v1/namespaces/{ns}/ws", func(w http.ResponseWriter, r *http.Request) { n.server.ServeNamespace(w, r, r.PathValue("ns")) })
	n.http = httptest.NewServer(mux)
	ended := make(chan struct{}, 2)
	for _, run := range []func(context.Context) error{db.Run, n.manager.Run} {
		go func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
			ended <- struct{}{}
		}()
	}
	stopped := false
	n.stop = func() {
		if stopped {
			return
		}
		stopped = true
		timeout, done := context.WithTimeout(context.Background(), 10*time.Second)
		defer done()
		if err := n.server.Stop(timeout); err != nil {
			t.Error(err)
		}
		cancel()
		<-ended
		<-ended
		n.http.Close()
		_ = db.Close()
	}
	t.Cleanup(n.stop)
	return n
}

func writeError(w http.ResponseWriter, _ *http.Request, err error) {
	status := map[pactwire.Kind]int{pactwire.KindInvalid: 400, pactwire.KindNotFound: 404, pactwire.KindForbidden: 403, pactwire.KindUnavailable: 503}[pactwire.KindOf(err)]
	if status == 0 {
		status = 500
	}
	http.Error(w, err.Error(), status)
}

// append adds n events to the history of the namespace default; their bodies count on.
func (n *node) append(count int) []store.Event {
	n.t.Helper()
	events := make([]store.Event, count)
	for i := range events {
		name := "Changed"
		events[i] = store.Event{
			Namespace: "default", Type: store.EventBlockchainReceived, Reference: store.NewID(), Topic: "topic", Name: &name,
			BodyKey: store.BodyBlockchainEvent, Body: `{"name":"Changed","output":{"x":"1"}}`,
		}
	}
	return n.appendEvents(events)
}

func (n *node) appendEvents(events []store.Event) []store.Event {
	n.t.Helper()
	if err := n.db.AppendEvents(context.Background(), events); err != nil {
		n.t.Fatal(err)
	}
	return events
}

// subscribe makes a durable subscription; options are JSON.
func (n *node) subscribe(name, filter, options string) store.Subscription {
	n.t.Helper()
	s, err := n.manager.Create(context.Background(), delivery.SubscriptionRequest{
		Namespace: "default", Name: name, Filter: json.RawMessage(filter), Options: json.RawMessage(options),
	})
	if err != nil {
		n.t.Fatal(err)
	}
	return s
}

func (n *node) position(name string) int64 {
	n.t.Helper()
	s, err := n.db.Subscription(context.Background(), "default", name)
	if err != nil {
		n.t.Fatal(err)
	}
	return s.Position
}

// failer is what a test fails by: also one of rapid's.
type failer interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// client is an application.
type client struct {
	t      failer
	socket *websocket.Conn
	frames chan frame
}

type frame struct {
	ID           string
	Sequence     int64
	Type         string
	Error        string
	Subscription delivery.Ref
	raw          string
	closed       error // the connection has ended
}

// dial connects; it closes with the test.
func (n *node) dial(query string) *client {
	n.t.Helper()
	c := n.connect(n.t, query)
	n.t.Cleanup(c.close)
	return c
}

func (n *node) connect(t failer, query string) *client {
	t.Helper()
	socket, response, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(n.http.URL, "http")+query, nil)
	if err != nil {
		t.Fatalf("dial %s: %v %v", query, err, response)
	}
	c := &client{t: t, socket: socket, frames: make(chan frame, 100_000)}
	go func() {
		for {
			_, data, err := socket.ReadMessage()
			if err != nil {
				c.frames <- frame{closed: err}
				close(c.frames)
				return
			}
			if err := frametest.Received(data); err != nil {
				n.t.Errorf("a frame that the document does not describe so: %v\n%s", err, data)
			}
			f := frame{raw: string(data)}
			if err := json.Unmarshal(data, &f); err != nil {
				f.Error = err.Error()
			}
			c.frames <- f
		}
	}()
	return c
}

// leave closes the connection in order: what was sent before has been read when it returns.
func (c *client) leave() {
	_ = c.socket.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(patience))
	for range c.frames { //nolint:revive // the reader ends
	}
	_ = c.socket.Close()
}

func (c *client) close() {
	_ = c.socket.Close()
	for range c.frames { //nolint:revive // the reader ends
	}
}

func (c *client) send(format string, args ...any) {
	c.t.Helper()
	if err := c.socket.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, format, args...)); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) start(name string) {
	c.t.Helper()
	c.send(`{"type":"start","namespace":"default","name":%q}`, name)
}

func (c *client) ack(f frame) {
	c.t.Helper()
	c.send(`{"type":"ack","id":%q,"subscription":{"id":%q,"namespace":"default","name":%q}}`, f.ID, f.Subscription.ID, f.Subscription.Name)
}

const patience = 20 * time.Second

func (c *client) next() frame {
	c.t.Helper()
	select {
	case f := <-c.frames:
		return f
	case <-time.After(patience):
		c.t.Fatal("nothing came")
	}
	return frame{}
}

// expect receives the events with these sequences, in order.
func (c *client) expect(sequences ...int64) []frame {
	c.t.Helper()
	list := make([]frame, 0, len(sequences))
	for _, want := range sequences {
		f := c.next()
		if f.Sequence != want {
			c.t.Fatalf("want event %d, got %+v", want, f)
		}
		list = append(list, f)
	}
	return list
}

// expectNothing is sure that nothing else was sent up to now: the answer to a ping comes after it.
func (c *client) expectNothing() {
	c.t.Helper()
	select {
	case f := <-c.frames:
		c.t.Fatalf("unexpected: %+v", f)
	case <-time.After(50 * time.Millisecond):
	}
}

// expectError receives a protocol_error frame.
func (c *client) expectError(contains string) {
	c.t.Helper()
	if f := c.next(); f.Type != "protocol_error" || !strings.Contains(f.Error, contains) {
		c.t.Fatalf("want a protocol_error with %q, got %+v", contains, f)
	}
}

func (c *client) expectClose(code int) {
	c.t.Helper()
	if f := c.next(); !websocket.IsCloseError(f.closed, code) {
		c.t.Fatalf("want the connection to close with %d, got %+v", code, f)
	}
}

// eventually polls until the condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); {
		if time.Now().After(deadline) {
			t.Fatalf("it never came true: %s", what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func upTo(n int64) []int64 { return between(1, n) }

func between(from, to int64) []int64 {
	var list []int64
	for i := from; i <= to; i++ {
		list = append(list, i)
	}
	return list
}
