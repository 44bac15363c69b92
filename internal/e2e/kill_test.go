package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
)

// A sudden death in the middle of 200 invokes: every accepted invoke ends, and every event arrives exactly once after the last acknowledged one.
func TestSuddenDeathLosesAndDoublesNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the program several times")
	}
	t.Parallel()
	p := startProcess(t)
	address := p.deploy(t, "contracts/artifacts/SimpleStorage.json")
	iface := p.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	p.createAPI(t, "simple", *iface.ID, &address)
	listener, err := p.client.CreateContractAPIListenerWithResponse(t.Context(), ns, "simple", "Changed",
		gen.EventListenerInput{Options: &gen.ListenerOptions{FirstEvent: ptr("oldest")}})
	must(t, err)
	if listener.JSON200 == nil {
		t.Fatalf("listen: %s", listener.Body)
	}
	created, err := p.client.CreateSubscriptionWithResponse(t.Context(), ns, gen.SubscriptionInput{
		Name: "app", Filter: &gen.SubscriptionFilter{Events: ptr("^blockchain_event_received$")},
		Options: &gen.SubscriptionOptionsInput{FirstEvent: json.RawMessage(`"oldest"`), ReadAhead: ptr(10)},
	})
	must(t, err)
	if created.JSON201 == nil {
		t.Fatalf("subscribe: %s", created.Body)
	}

	const invokes, callers = 200, 16
	var mu sync.Mutex
	accepted := map[uuid.UUID]int{} // operation: value
	received := &consumer{t: t, seen: map[string]int64{}}
	half := make(chan struct{})
	var once sync.Once
	values := make(chan int)
	var calling sync.WaitGroup
	for range callers {
		calling.Go(func() {
			for v := range values {
				// Whoever gets no answer asks again with the same key, as an application would: the value must be set once.
				for {
					id, ok := p.tryInvoke(v)
					if ok {
						mu.Lock()
						accepted[id] = v
						if len(accepted) == invokes/2 {
							once.Do(func() { close(half) })
						}
						mu.Unlock()
						break
					}
					time.Sleep(20 * time.Millisecond) // an application's own pause before it tries again
				}
			}
		})
	}
	go func() {
		defer close(values)
		for v := range invokes {
			values <- v
		}
	}()
	consuming := make(chan struct{})
	go func() {
		defer close(consuming)
		received.consume(p, 40) // part of them are acknowledged before the end
	}()
	<-half
	<-consuming
	p.kill(t)
	p.begin(t)
	calling.Wait()

	for id := range accepted {
		eventually(t, time.Minute, "operation "+id.String()+" ends", func() bool {
			r, err := p.client.GetOperationWithResponse(t.Context(), ns, id)
			must(t, err)
			if r.JSON200 == nil {
				t.Fatalf("get operation %s: %s", id, r.Body)
			}
			if r.JSON200.Status == "Failed" {
				t.Fatalf("operation %s failed: %s", id, r.Body)
			}
			return r.JSON200.Status == "Succeeded"
		}, p.output)
	}
	received.consume(p, invokes)
	if len(received.seen) != invokes {
		t.Errorf("%d values were received, want %d", len(received.seen), invokes)
	}
	for v := range invokes {
		if _, ok := received.seen[strconv.Itoa(v)]; !ok {
			t.Errorf("the value %d was never received", v)
		}
	}
}

// tryInvoke sets a value; ok is false when there was no answer, or none that means that it was accepted.
func (p *process) tryInvoke(v int) (id uuid.UUID, ok bool) {
	client, err := gen.NewClientWithResponses("http://" + p.listen + "/api/v1")
	if err != nil {
		return id, false
	}
	r, err := client.InvokeContractAPIWithResponse(context.Background(), ns, "simple", "set",
		&gen.InvokeContractAPIParams{IdempotencyKey: ptr(fmt.Sprintf("value-%d", v))}, gen.InvokeRequest{Input: json.RawMessage(fmt.Sprintf(`{"newValue":%d}`, v))})
	if err != nil || r.JSON202 == nil {
		return id, false
	}
	return r.JSON202.ID, true
}

// consumer receives and acknowledges events, one connection after the other.
type consumer struct {
	t        *testing.T
	seen     map[string]int64 // value: sequence
	lastAck  int64
	sequence int64 // of the last event
}

// consume receives until so many different values have been seen.
func (c *consumer) consume(p *process, until int) {
	socket, response, err := websocket.DefaultDialer.Dial("ws://"+p.listen+"/ws?namespace=default&name=app", nil)
	if err != nil {
		c.t.Errorf("connect: %v", err)
		return
	}
	response.Body.Close()
	defer socket.Close()
	c.sequence = 0
	for len(c.seen) < until {
		if err := socket.SetReadDeadline(time.Now().Add(frameLimit)); err != nil {
			c.t.Error(err)
			return
		}
		var e gen.Event
		if err := socket.ReadJSON(&e); err != nil {
			c.t.Errorf("after %d values: read an event: %v", len(c.seen), err)
			return
		}
		var output struct{ Value string }
		if e.Blockchainevent == nil || json.Unmarshal(e.Blockchainevent.Output, &output) != nil {
			c.t.Errorf("not a contract event: %+v", e)
			return
		}
		if e.Sequence <= c.sequence {
			c.t.Errorf("sequence %d came after %d on one connection", e.Sequence, c.sequence)
		}
		c.sequence = e.Sequence
		if before, again := c.seen[output.Value]; again && before != e.Sequence {
			c.t.Errorf("the value %s came as sequence %d and as %d", output.Value, before, e.Sequence)
		}
		c.seen[output.Value] = e.Sequence
		if err := socket.WriteJSON(map[string]string{"type": "ack", "id": e.ID.String()}); err != nil {
			c.t.Errorf("acknowledge: %v", err)
			return
		}
		c.lastAck = e.Sequence
	}
}
