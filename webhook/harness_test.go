package webhook_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
	"github.com/pactwire/pactwire/webhook"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func logger() *slog.Logger {
	if os.Getenv("PACTWIRE_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// node is one replica of the service, as far as webhooks go.
type node struct {
	t       testing.TB
	db      *store.DB
	manager *delivery.Manager
	server  *webhook.Server
	stop    func()
}

// newNode starts a replica. It stops with the test, or before by stop.
func newNode(t testing.TB, url string, change func(*webhook.Config)) *node {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	db, err := store.Open(ctx, store.Config{URL: url, LeaseTTL: 2 * time.Second}, logger())
	must(t, err)
	_, err = db.EnsureChain(ctx, "dev", big.NewInt(31337), common.Hash{1})
	must(t, err)
	must(t, db.EnsureNamespace(ctx, "default", "dev"))
	cfg := webhook.Config{Targets: webhook.Targets{AllowPrivate: true}, Namespaces: []string{"default"}}
	if change != nil {
		change(&cfg)
	}
	n := &node{t: t, db: db, manager: delivery.New(delivery.Config{CheckURL: cfg.Targets.CheckURL}, db, logger())}
	n.server = webhook.New(cfg, n.manager, logger())
	var ended sync.WaitGroup
	for _, run := range []func(context.Context) error{db.Run, n.manager.Run, n.server.Run} {
		ended.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	n.stop = sync.OnceFunc(func() {
		cancel()
		ended.Wait()
		_ = db.Close()
	})
	t.Cleanup(n.stop)
	return n
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// append adds events to the history.
func (n *node) append(count int) []store.Event {
	n.t.Helper()
	events := make([]store.Event, count)
	for i := range events {
		events[i] = store.Event{
			Namespace: "default", Type: store.EventBlockchainReceived, Reference: store.NewID(), Topic: "topic", BodyKey: store.BodyBlockchainEvent, Body: `{"name":"Changed"}`,
		}
	}
	must(n.t, n.db.AppendEvents(context.Background(), events))
	return events
}

// quick are retries for tests in which time passes.
const quick = `"retry":{"count":%d,"initialDelay":"2ms","maxDelay":"10ms"}`

func (n *node) put(name, url, options string) store.Subscription {
	n.t.Helper()
	all := fmt.Sprintf(`{"firstEvent":"oldest","url":%q`, url)
	if options != "" {
		all += "," + options
	}
	s, _, err := n.manager.Put(context.Background(), delivery.SubscriptionRequest{
		Namespace: "default", Name: name, Transport: delivery.TransportWebhooks, Options: json.RawMessage(all + "}"),
	})
	must(n.t, err)
	return s
}

func (n *node) status(name string) delivery.Status {
	n.t.Helper()
	sub, err := n.db.Subscription(context.Background(), "default", name)
	must(n.t, err)
	s, err := n.manager.Status(context.Background(), sub)
	must(n.t, err)
	return s
}

func (n *node) deadLetters(sub store.Subscription) []store.DeadLetter {
	n.t.Helper()
	oldest := false
	list, _, err := n.db.ListDeadLetters(context.Background(), sub.ID, store.Page{Limit: 250, Descending: &oldest})
	must(n.t, err)
	return list
}

// posted is a request that a receiver got.
type posted struct {
	header http.Header
	method string
	url    string
	body   []byte
	list   []int64 // sequences
}

// receiver is the far side.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	got    []posted
	answer func(w http.ResponseWriter, p posted) // nil: 200
}

func newReceiver(t testing.TB, answer func(w http.ResponseWriter, p posted)) *receiver {
	t.Helper()
	r := &receiver{answer: answer}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		body, err := io.ReadAll(q.Body)
		if err != nil {
			return
		}
		p := posted{header: q.Header.Clone(), method: q.Method, url: q.URL.String(), body: body}
		var events []delivery1
		if json.Unmarshal(body, &events) != nil {
			events = make([]delivery1, 1)
			if err := json.Unmarshal(body, &events[0]); err != nil {
				t.Errorf("a body that is no JSON: %s", body)
			}
		}
		for _, e := range events {
			p.list = append(p.list, e.Sequence)
		}
		r.mu.Lock()
		r.got = append(r.got, p)
		answer := r.answer
		r.mu.Unlock()
		if answer != nil {
			answer(w, p)
		}
	}))
	t.Cleanup(r.Close)
	return r
}

type delivery1 struct{ Sequence int64 }

func (r *receiver) set(answer func(w http.ResponseWriter, p posted)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = answer
}

func (r *receiver) requests() []posted {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

// sequences are those of all requests, in the order in which they came.
func (r *receiver) sequences() []int64 {
	var list []int64
	for _, p := range r.requests() {
		list = append(list, p.list...)
	}
	return list
}

func (r *receiver) wants(t testing.TB, want ...int64) {
	t.Helper()
	eventually(t, fmt.Sprintf("the receiver has %v", want), func() bool { return len(r.sequences()) >= len(want) })
	if got := r.sequences(); !slices.Equal(got, want) {
		t.Fatalf("the receiver got %v, want %v", got, want)
	}
}

const patience = 20 * time.Second

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

func fail(w http.ResponseWriter) { http.Error(w, "no", http.StatusInternalServerError) }
