package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
	"github.com/pactwire/pactwire/webhook"
)

func TestEventsArePostedInOrderWithoutAConnection(t *testing.T) {
	n := newNode(t, pgtest.New(t), nil)
	n.append(2)
	r := newReceiver(t, nil)
	n.put("hook", r.URL+"/in?a=1", `"method":"PUT","headers":{"Authorization":"Bearer t0ken","X-Own":"1"},"query":{"b":"2 3"}`)
	r.wants(t, 1, 2)
	events := n.append(3)
	r.wants(t, 1, 2, 3, 4, 5)
	last := r.requests()[4]
	if last.method != "PUT" || last.url != "/in?a=1&b=2+3" || last.header.Get("Authorization") != "Bearer t0ken" || last.header.Get("X-Own") != "1" ||
		last.header.Get("Content-Type") != "application/json" || last.header.Get("webhook-id") != events[2].ID.String() || last.header.Get("webhook-signature") != "" {
		t.Errorf("the request is %+v", last)
	}
	eventually(t, "the position is 5", func() bool { return n.status("hook").Position == 5 && n.status("hook").InFlight == 0 })

	// A change counts for what comes next; the position stays.
	other := newReceiver(t, nil)
	n.put("hook", other.URL, "")
	eventually(t, "the new address is used", func() bool { n.append(1); time.Sleep(5 * time.Millisecond); return len(other.sequences()) > 0 })
	all := append(r.sequences(), other.sequences()...)
	for i, s := range all {
		if s != int64(i+1) {
			t.Fatalf("got %v", all)
		}
	}

	// Deleted means silent.
	must(t, n.db.DeleteSubscription(context.Background(), "default", "hook"))
	eventually(t, "the subscription is let go", func() bool {
		before := len(other.sequences())
		n.append(1)
		time.Sleep(20 * time.Millisecond)
		return len(other.sequences()) == before
	})
}

// Only a 2xx counts; whatever else comes, the same event comes again before the next one does.
func TestOrderHoldsUnderFailures(t *testing.T) {
	n := newNode(t, pgtest.New(t), nil)
	var count atomic.Int64
	r := newReceiver(t, func(w http.ResponseWriter, _ posted) {
		switch count.Add(1) % 7 {
		case 1:
			fail(w)
		case 2:
			http.Redirect(w, &http.Request{Method: "POST", URL: nil}, "http://127.0.0.1:1/elsewhere", http.StatusTemporaryRedirect)
		case 3:
			w.WriteHeader(http.StatusNotFound)
		case 4:
			hijacked, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = hijacked.Close()
			}
		case 5:
			w.WriteHeader(http.StatusAccepted)
		}
	})
	n.put("hook", r.URL, fmt.Sprintf(quick, 100))
	n.append(20)
	eventually(t, "everything is delivered", func() bool { return n.status("hook").Position == 20 })
	got := r.sequences()
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != 20 || len(got) < 40 {
		t.Errorf("got %v", got)
	}
	eventually(t, "the trouble is forgotten", func() bool { s := n.status("hook"); return s.Attempt == nil && s.LastError == "" })
	if s := n.status("hook"); s.DeadLetters != 0 {
		t.Errorf("the status is %+v", s)
	}
}

// clock stands still until the test lets it go on.
type clock struct {
	asked chan time.Duration
	pass  chan time.Time
}

func newClock() *clock { return &clock{make(chan time.Duration, 100), make(chan time.Time)} }

func (c *clock) after(d time.Duration) <-chan time.Time {
	c.asked <- d
	return c.pass
}

func TestBackOffJitterAndRetryAfter(t *testing.T) {
	c := newClock()
	n := newNode(t, pgtest.New(t), func(cfg *webhook.Config) { cfg.After = c.after })
	var wait atomic.Value
	wait.Store("")
	r := newReceiver(t, func(w http.ResponseWriter, _ posted) {
		if text := wait.Load().(string); text != "" {
			w.Header().Set("Retry-After", text)
		}
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	n.put("hook", r.URL, `"retry":{"count":50,"initialDelay":"1s","maxDelay":"60s"}`)
	n.append(1)
	next := func() time.Duration {
		t.Helper()
		select {
		case d := <-c.asked:
			return d
		case <-time.After(patience):
			t.Fatal("there was no pause")
			return 0
		}
	}
	for i, most := range []time.Duration{1, 2, 4, 8, 16, 32, 60, 60} {
		d := next()
		if most *= time.Second; d < most/2 || d > most {
			t.Errorf("pause %d is %s, want half of %s to all of it", i+1, d, most)
		}
		if i == 3 {
			eventually(t, "the tries are shown", func() bool { a := n.status("hook").Attempt; return a != nil && a.Count == 4 })
			s := n.status("hook")
			if a := s.Attempt; a.Status != 503 || a.Reason != "answered 503 Service Unavailable" || time.Until(a.Next) > d || s.LastError != a.Reason || s.InFlight != 1 || s.Position != 0 {
				t.Errorf("the status is %+v, %+v", s, a)
			}
		}
		if i == 7 {
			wait.Store("120")
		}
		c.pass <- time.Time{}
	}
	for _, ask := range []struct {
		text string
		want time.Duration
	}{{"1000000", 2 * time.Minute}, {time.Now().Add(1000 * time.Hour).UTC().Format(http.TimeFormat), time.Hour}, {"rubbish", time.Hour}, {"", time.Minute}} {
		if d := next(); d > ask.want || d < ask.want/2 {
			t.Errorf("the pause is %s, want at most %s", d, ask.want)
		}
		wait.Store(ask.text)
		c.pass <- time.Time{}
	}
	next()
}

func TestDeadLettersAndTheirRedrive(t *testing.T) {
	ctx := context.Background()
	n := newNode(t, pgtest.New(t), nil)
	var healed atomic.Bool
	r := newReceiver(t, func(w http.ResponseWriter, p posted) {
		if !healed.Load() && p.list[0]%2 == 0 {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	sub := n.put("hook", r.URL, fmt.Sprintf(quick, 2))
	events := n.append(6)
	r.wants(t, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6, 6)
	eventually(t, "the position has passed them", func() bool { s := n.status("hook"); return s.Position == 6 && s.DeadLetters == 3 })
	list := n.deadLetters(sub)
	for i, l := range list {
		if l.Sequence != int64(2*i+2) || l.Event != events[2*i+1].ID || l.Attempts != 3 || l.Status != 422 || l.Redrive != nil || !strings.Contains(l.Payload, `"sequence":`) {
			t.Errorf("a dead letter is %+v", l)
		}
	}

	// Redriven before it is healed, it goes back.
	if count, err := n.db.Redrive(ctx, sub, nil); err != nil || count != 3 {
		t.Fatalf("redrive: %d, %v", count, err)
	}
	r.wants(t, 1, 2, 2, 2, 3, 4, 4, 4, 5, 6, 6, 6, 2, 2, 2, 4, 4, 4, 6, 6, 6)
	eventually(t, "they are back", func() bool {
		list := n.deadLetters(sub)
		return len(list) == 3 && !slices.ContainsFunc(list, func(l store.DeadLetter) bool { return l.Redrive != nil || l.Attempts != 6 })
	})
	healed.Store(true)
	if count, err := n.db.Redrive(ctx, sub, nil); err != nil || count != 3 {
		t.Fatalf("redrive: %d, %v", count, err)
	}
	eventually(t, "the list is empty", func() bool { return n.status("hook").DeadLetters == 0 })
	if got := r.sequences(); !slices.Equal(got[len(got)-3:], []int64{2, 4, 6}) {
		t.Errorf("redriven in the order %v", got)
	}
	bodies := r.requests()
	if first, last := bodies[1], bodies[len(bodies)-3]; string(first.body) != string(last.body) || first.header.Get("webhook-id") != last.header.Get("webhook-id") {
		t.Errorf("redriven as %s, posted as %s", last.body, first.body)
	}
	n.append(1)
	eventually(t, "what is new goes on", func() bool { return n.status("hook").Position == 7 })
}

// Dead letters that fail again and again do not starve what is new.
func TestNewEventsGetTurnsBetweenFailingRedrives(t *testing.T) {
	const letters = 40
	n := newNode(t, pgtest.New(t), nil)
	var n2 atomic.Pointer[node]
	r := newReceiver(t, func(w http.ResponseWriter, p posted) {
		if p.list[0] <= letters {
			if w := n2.Load(); w != nil && p.list[0] == 1 {
				n2.Store(nil)
				w.append(2) // while the first is redriven
			}
			fail(w)
		}
	})
	sub := n.put("hook", r.URL, fmt.Sprintf(quick, 0))
	n.append(letters)
	eventually(t, "all are given up", func() bool { return n.status("hook").DeadLetters == letters })
	n2.Store(n)
	if count, err := n.db.Redrive(context.Background(), sub, nil); err != nil || count != letters {
		t.Fatalf("redrive: %d, %v", count, err)
	}
	eventually(t, "all have failed again", func() bool { return len(r.sequences()) == 2*letters+2 })
	got := r.sequences()[letters:]
	last := slices.Index(got, letters+2)
	if last < 0 || last > letters || got[0] != 1 || slices.Index(got, letters+1) > last {
		t.Errorf("the order is %v", got)
	}
}

// A process that dies between tries: the next one goes on counting where it was, and neither loses nor skips anything.
func TestRestartInTheMiddleOfTries(t *testing.T) {
	url := pgtest.New(t)
	c := newClock()
	first := newNode(t, url, func(cfg *webhook.Config) { cfg.After = c.after })
	r := newReceiver(t, func(w http.ResponseWriter, _ posted) { fail(w) })
	sub := first.put("hook", r.URL, fmt.Sprintf(quick, 4))
	first.append(3)
	for range 3 {
		<-c.asked
		if len(r.requests()) < 3 {
			c.pass <- time.Time{}
		}
	}
	eventually(t, "the tries are kept", func() bool { a := first.status("hook").Attempt; return a != nil && a.Count == 3 })
	first.stop()

	second := newNode(t, url, nil)
	eventually(t, "the first event is given up", func() bool { return second.status("hook").DeadLetters >= 1 })
	if l := second.deadLetters(sub)[0]; l.Sequence != 1 || l.Attempts != 5 {
		t.Errorf("the dead letter is %+v", l)
	}
	r.set(nil)
	eventually(t, "the rest is delivered or given up", func() bool { return second.status("hook").Position == 3 })
	seen := map[int64]int{}
	for _, s := range r.sequences() {
		seen[s]++
	}
	if seen[1] != 5 || seen[2] == 0 || seen[3] == 0 {
		t.Errorf("the receiver saw %v", seen)
	}
}

// Two replicas: each event is posted by one of them, and when that one goes, the other takes over.
func TestTwoReplicas(t *testing.T) {
	url := pgtest.New(t)
	a, b := newNode(t, url, nil), newNode(t, url, nil)
	r := newReceiver(t, nil)
	a.put("hook", r.URL, "")
	a.append(50)
	eventually(t, "the first part is there", func() bool { return a.status("hook").Position == 50 })
	eventually(t, "both stand by", func() bool { return a.status("hook").Consumers == 2 && b.status("hook").Consumers == 2 })
	var writing sync.WaitGroup
	writing.Go(func() {
		for range 10 {
			b.append(5)
		}
	})
	a.stop()
	eventually(t, "one is left", func() bool { return b.status("hook").Consumers == 1 })
	writing.Wait()
	eventually(t, "the rest is there", func() bool { return b.status("hook").Position == 100 })
	got := r.sequences()
	if slices.Sort(got); len(slices.Compact(got)) != 100 || len(got) > 101 {
		t.Errorf("%d posts: %v", len(got), got)
	}
}

func TestBatchesAreArrays(t *testing.T) {
	n := newNode(t, pgtest.New(t), nil)
	n.append(120)
	var refused atomic.Int64
	r := newReceiver(t, func(w http.ResponseWriter, p posted) {
		if p.list[0] == 51 && refused.Add(1) <= 2 {
			fail(w)
		}
	})
	n.put("hook", r.URL, fmt.Sprintf(quick, 5)+`,"batch":true,"batchTimeout":"1h"`)
	eventually(t, "everything is delivered", func() bool { return n.status("hook").Position == 120 })
	var expected []int64
	ids := map[string]int{}
	for _, p := range r.requests() {
		if len(p.list) > 50 || p.body[0] != '[' {
			t.Errorf("a batch of %d: %.40s", len(p.list), p.body)
		}
		ids[p.header.Get("webhook-id")]++
		if ids[p.header.Get("webhook-id")] == 1 {
			expected = append(expected, p.list...)
		}
	}
	if len(expected) != 120 || !slices.IsSorted(expected) || len(r.requests()) != len(ids)+2 {
		t.Errorf("%d requests, %d ids: %v", len(r.requests()), len(ids), expected)
	}
}

func TestPing(t *testing.T) {
	n := newNode(t, pgtest.New(t), nil)
	r := newReceiver(t, nil)
	sub := n.put("hook", r.URL, `"signingSecret":"`+secretA+`"`)
	options, err := delivery.StoredOptions(sub)
	must(t, err)
	ref := delivery.Ref{ID: sub.ID, Namespace: sub.Namespace, Name: sub.Name}
	pong, err := n.server.Ping(context.Background(), ref, options)
	if err != nil || !pong.Delivered || pong.Status != 200 || pong.Latency <= 0 {
		t.Fatalf("ping: %+v, %v", pong, err)
	}
	if p := r.requests()[0]; !strings.Contains(string(p.body), `"type":"ping"`) || !verified(t, p, secretA) {
		t.Errorf("the ping is %s %v", p.body, p.header)
	}
	r.set(func(w http.ResponseWriter, _ posted) { w.WriteHeader(http.StatusTeapot) })
	if pong, err := n.server.Ping(context.Background(), ref, options); err != nil || pong.Delivered || pong.Status != 418 || pong.Reason == "" {
		t.Errorf("ping: %+v, %v", pong, err)
	}
	r.Close()
	if pong, err := n.server.Ping(context.Background(), ref, options); err != nil || pong.Delivered || pong.Status != 0 || pong.Reason == "" {
		t.Errorf("ping: %+v, %v", pong, err)
	}
}
