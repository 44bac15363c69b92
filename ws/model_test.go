package ws_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// mine is the type of the events that pass the filter.
const mine = store.EventMessageConfirmed

// world is a durable subscription, the applications that use it through two replicas, and what ought to be true about it.
type world struct {
	t       *rapid.T
	outer   *testing.T
	url     string
	nodes   [2]*node
	name    string
	window  int
	matches []int64        // what passes the filter, in order
	acked   map[int64]bool // what was acknowledged
	apps    []*app
	active  *app // the one that receives
}

type app struct {
	*client
	node   int
	flight []frame // received and not acknowledged, in order
	last   frame   // acknowledged last
}

func (w *world) open() []int64 {
	var list []int64
	for _, s := range w.matches {
		if !w.acked[s] {
			list = append(list, s)
		}
	}
	return list
}

// settle receives what must come now, and checks each frame against what the model says is next.
func (w *world) settle() {
	for len(w.apps) > 0 {
		open := w.open()
		flying := 0
		if w.active != nil {
			flying = len(w.active.flight)
		}
		if flying >= min(w.window, len(open)) {
			return
		}
		from, f := w.receive()
		if w.active == nil {
			w.active = from
		}
		if from != w.active {
			w.t.Fatalf("%d came to a second connection", f.Sequence)
		}
		var next int64
		for _, s := range open {
			if !slices.ContainsFunc(from.flight, func(f frame) bool { return f.Sequence == s }) {
				next = s
				break
			}
		}
		if f.Sequence != next {
			w.t.Fatalf("want %d, got %+v; open %v, in flight %v", next, f, open, from.flight)
		}
		from.flight = append(from.flight, f)
	}
}

// receive takes a frame from whichever connection has one.
func (w *world) receive() (*app, frame) {
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		for _, a := range w.apps {
			select {
			case f := <-a.frames:
				return a, f
			default:
			}
		}
		time.Sleep(200 * time.Microsecond)
	}
	w.t.Fatalf("nothing came; open %v of %d, active %v", w.open(), w.window, w.active)
	return nil, frame{}
}

func (w *world) quit(i int) {
	a := w.apps[i]
	w.apps = slices.Delete(w.apps, i, i+1)
	if w.active == a {
		w.active = nil
	}
}

func (w *world) append(t *rapid.T) {
	events := make([]store.Event, rapid.IntRange(1, 6).Draw(t, "count"))
	for i := range events {
		events[i] = store.Event{Namespace: "default", Type: rapid.SampledFrom([]string{mine, mine, store.EventMessageRejected}).Draw(t, "type"), Reference: store.NewID()}
	}
	w.nodes[rapid.IntRange(0, 1).Draw(t, "node")].appendEvents(events)
	for _, e := range events {
		if e.Type == mine {
			w.matches = append(w.matches, e.Sequence)
		}
	}
}

func (w *world) connect(t *rapid.T) {
	if len(w.apps) >= 4 {
		return
	}
	node := rapid.IntRange(0, 1).Draw(t, "node")
	w.apps = append(w.apps, &app{client: w.nodes[node].connect(t, "/ws?namespace=default&name="+w.name), node: node})
}

func (w *world) ack(t *rapid.T) {
	if w.active == nil || len(w.active.flight) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.active.flight)-1).Draw(t, "which")
	f := w.active.flight[i]
	w.active.ack(f)
	w.active.flight = slices.Delete(w.active.flight, i, i+1)
	w.active.last = f
	w.acked[f.Sequence] = true
}

func (w *world) ackTwice(*rapid.T) {
	if w.active == nil || w.active.last.ID == "" {
		return
	}
	w.active.ack(w.active.last)
	w.active.expectError("not in flight")
}

func (w *world) ackElsewhere(*rapid.T) {
	if w.active == nil || len(w.active.flight) == 0 {
		return
	}
	for _, a := range w.apps {
		if a != w.active {
			a.ack(w.active.flight[0])
			a.expectError("not in flight")
		}
	}
}

func (w *world) nack(t *rapid.T) {
	if w.active == nil || len(w.active.flight) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.active.flight)-1).Draw(t, "which")
	w.active.send(`{"type":"nack","id":%q}`, w.active.flight[i].ID)
	w.active.flight = w.active.flight[:i]
}

func (w *world) leave(t *rapid.T) {
	if len(w.apps) == 0 {
		return
	}
	i := rapid.IntRange(0, len(w.apps)-1).Draw(t, "who")
	w.apps[i].leave()
	w.quit(i)
}

func (w *world) restart(t *rapid.T) {
	node := rapid.IntRange(0, 1).Draw(t, "node")
	w.nodes[node].stop()
	for i := len(w.apps) - 1; i >= 0; i-- {
		if w.apps[i].node == node {
			w.apps[i].close()
			w.quit(i)
		}
	}
	w.nodes[node] = newNode(w.outer, w.url)
}

func TestDeliveryModel(t *testing.T) {
	url := pgtest.New(t)
	nodes := [2]*node{newNode(t, url), newNode(t, url)}
	count := 0
	rapid.Check(t, func(r *rapid.T) {
		count++
		w := &world{
			t: r, outer: t, url: url, nodes: nodes, name: fmt.Sprintf("sub-%d", count), window: rapid.IntRange(1, 5).Draw(r, "window"), acked: map[int64]bool{},
		}
		_, err := nodes[0].manager.Create(t.Context(), delivery.SubscriptionRequest{
			Namespace: "default", Name: w.name, Filter: json.RawMessage(`{"events":"^` + mine + `$"}`), Options: json.RawMessage(fmt.Sprintf(`{"readAhead":%d}`, w.window)),
		})
		if err != nil {
			r.Fatal(err)
		}
		defer func() {
			nodes = w.nodes
			for _, a := range w.apps {
				a.close()
			}
		}()
		r.Repeat(map[string]func(*rapid.T){
			"append": w.append, "connect": w.connect, "ack": w.ack, "ack more": w.ack, "ack twice": w.ackTwice, "ack elsewhere": w.ackElsewhere,
			"nack": w.nack, "leave": w.leave, "restart": w.restart,
			"": func(*rapid.T) { w.settle() },
		})
		// In the end everything can be received and acknowledged.
		if len(w.apps) == 0 {
			w.connect(r)
		}
		for w.settle(); len(w.open()) > 0; w.settle() {
			w.ack(r)
		}
		if len(w.matches) > 0 {
			eventually(t, "the position reaches the last event", func() bool {
				return w.nodes[0].position(w.name) >= w.matches[len(w.matches)-1]
			})
		}
	})
}
