package sse_test

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/frametest"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/sse"
	"github.com/pactwire/pactwire/store"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

const patience = 20 * time.Second

type node struct {
	t       testing.TB
	db      *store.DB
	manager *delivery.Manager
	server  *sse.Server
	http    *httptest.Server
	stop    func()
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newNode(t testing.TB, url string) *node {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := slog.New(slog.DiscardHandler)
	db, err := store.Open(ctx, store.Config{URL: url, LeaseTTL: 2 * time.Second}, log)
	must(t, err)
	_, err = db.EnsureChain(ctx, "dev", big.NewInt(31337), common.Hash{1})
	must(t, err)
	must(t, db.EnsureNamespace(ctx, "default", "dev"))
	n := &node{t: t, db: db, manager: delivery.New(delivery.Config{}, db, log)}
	n.server = sse.New(sse.Config{
		Heartbeat: 20 * time.Millisecond,
		WriteError: func(w http.ResponseWriter, _ *http.Request, err error) {
			status := map[pactwire.Kind]int{pactwire.KindInvalid: 400, pactwire.KindNotFound: 404, pactwire.KindUnavailable: 503}[pactwire.KindOf(err)]
			http.Error(w, err.Error(), max(status, 400))
		},
	}, n.manager, log)
	mux := http.NewServeMux()
	mux.HandleFunc("/{ns}/{name}/stream", func(w http.ResponseWriter, r *http.Request) {
		n.server.Serve(w, r, r.PathValue("ns"), r.PathValue("name"))
	})
	n.http = httptest.NewUnstartedServer(mux)
	n.http.Config.ReadTimeout, n.http.Config.WriteTimeout = 500*time.Millisecond, 500*time.Millisecond // streams outlive them
	n.http.Start()
	var ended sync.WaitGroup
	for _, run := range []func(context.Context) error{db.Run, n.manager.Run} {
		ended.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	n.stop = sync.OnceFunc(func() {
		n.server.Stop()
		n.http.Close()
		cancel()
		ended.Wait()
		_ = db.Close()
	})
	t.Cleanup(n.stop)
	return n
}

func (n *node) append(count int) {
	n.t.Helper()
	events := make([]store.Event, count)
	for i := range events {
		events[i] = store.Event{
			Namespace: "default", Type: store.EventBlockchainReceived, Reference: store.NewID(), BodyKey: store.BodyBlockchainEvent, Body: "{\"name\":\n\"Changed\"}",
		}
	}
	must(n.t, n.db.AppendEvents(context.Background(), events))
}

func (n *node) subscribe(options string) {
	n.t.Helper()
	_, err := n.manager.Create(context.Background(), delivery.SubscriptionRequest{Namespace: "default", Name: "sub", Options: json.RawMessage(options)})
	must(n.t, err)
}

func (n *node) positionIs(want int64) {
	n.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		sub, err := n.db.Subscription(context.Background(), "default", "sub")
		must(n.t, err)
		if sub.Position == want {
			return
		}
		if time.Now().After(deadline) {
			n.t.Fatalf("the position is %d, want %d", sub.Position, want)
		}
	}
}

// stream is a client.
type stream struct {
	t      testing.TB
	lines  *bufio.Scanner
	status int
	header http.Header
	beats  int
	close  func()
}

func (n *node) open(query, last string) *stream {
	n.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, n.http.URL+"/default/sub/stream"+query, nil)
	must(n.t, err)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	client := &http.Client{Transport: &http.Transport{}}
	response, err := client.Do(r)
	must(n.t, err)
	s := &stream{t: n.t, lines: bufio.NewScanner(response.Body), status: response.StatusCode, header: response.Header}
	s.close = sync.OnceFunc(func() {
		cancel()
		_ = response.Body.Close()
		client.CloseIdleConnections()
	})
	n.t.Cleanup(s.close)
	return s
}

// next is the sequence of the next event, 0 at the end of the stream; comments are counted.
func (s *stream) next() int64 {
	s.t.Helper()
	id := int64(0)
	for s.lines.Scan() {
		field, value, _ := strings.Cut(s.lines.Text(), ": ")
		switch field {
		case "":
			if value == "heartbeat" {
				s.beats++
			}
		case "id":
			id, _ = strconv.ParseInt(value, 10, 64)
		case "data":
			if err := frametest.Received([]byte(value)); err != nil {
				s.t.Errorf("an event that asyncapi.yaml does not describe so: %v\n%s", err, value)
			}
			var e struct{ Sequence int64 }
			if err := json.Unmarshal([]byte(value), &e); err != nil || e.Sequence != id {
				s.t.Errorf("id %d, data %s", id, value)
			}
			return id
		}
	}
	return 0
}

func (s *stream) wants(list ...int64) {
	s.t.Helper()
	for _, want := range list {
		if got := s.next(); got != want {
			s.t.Fatalf("got event %d, want %d", got, want)
		}
	}
}

func TestStreamEndsForAcknowledgementsAndGoesOnBehindThem(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe(`{"firstEvent":"oldest","batch":true}`)
	n.append(8)
	s := n.open("?readahead=3", "")
	if s.status != 200 || s.header.Get("Content-Type") != "text/event-stream" || s.header.Get("Cache-Control") != "no-store" {
		t.Fatalf("%d %v", s.status, s.header)
	}
	s.wants(1, 2, 3, 0)
	if s.lines.Err() != nil {
		t.Errorf("the stream did not end well: %v", s.lines.Err())
	}
	n.open("?readahead=3", "").wants(1, 2, 3, 0) // nothing was acknowledged
	n.open("?readahead=3", "2").wants(3, 4, 5, 0)
	n.positionIs(2)
	n.open("?readahead=3&lasteventid=5", "").wants(6, 7, 8, 0)
	n.positionIs(5)
	s = n.open("", "8")
	n.append(1)
	s.wants(9)
	n.positionIs(8)
	s.close()
	n.open("?readahead=1", "3").wants(9, 0) // what was acknowledged before stays so
}

func TestAutoackStreamLivesWithHeartbeats(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	n.subscribe(`{"firstEvent":"oldest"}`)
	s := n.open("?autoack", "")
	for i := range int64(6) {
		time.Sleep(120 * time.Millisecond) // beyond the server's limits for requests, in all
		n.append(1)
		s.wants(i + 1)
	}
	n.positionIs(6)
	if s.beats < 6 {
		t.Errorf("only %d heartbeats", s.beats)
	}
}

func TestStandbyStreamTakesOverOnAnotherReplica(t *testing.T) {
	url := pgtest.New(t)
	a, b := newNode(t, url), newNode(t, url)
	a.subscribe(`{"firstEvent":"oldest"}`)
	first := a.open("", "")
	a.append(2)
	first.wants(1, 2)
	second := b.open("", "1")
	second.standby()
	a.stop()
	second.wants(2)
	first.wants(0)
}

// standby reads heartbeats, and is sure that nothing else came.
func (s *stream) standby() {
	s.t.Helper()
	for range 9 {
		if !s.lines.Scan() || strings.HasPrefix(s.lines.Text(), "id") {
			s.t.Fatalf("not standing by: %q %v", s.lines.Text(), s.lines.Err())
		}
	}
}

func TestRefusals(t *testing.T) {
	n := newNode(t, pgtest.New(t))
	for _, c := range []struct {
		query, last string
		want        int
	}{{"", "", 404}, {"", "x", 400}, {"", "-1", 400}, {"?readahead=x", "", 400}} {
		if s := n.open(c.query, c.last); s.status != c.want {
			t.Errorf("%+v: %d", c, s.status)
		}
	}
	n.subscribe(`{}`)
	if s := n.open("", "1"); s.status != 400 { // the future cannot be acknowledged
		t.Errorf("an event that there is not: %d", s.status)
	}
	s := n.open("", "0")
	must(t, n.db.DeleteSubscription(context.Background(), "default", "sub"))
	s.wants(0) // ended with its subscription
	n.server.Stop()
	n2 := n.open("", "")
	if n2.status != 404 {
		t.Errorf("deleted: %d", n2.status)
	}
}
