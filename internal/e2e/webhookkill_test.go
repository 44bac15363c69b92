package e2e

import (
	"encoding/json"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/pactwire/pactwire/gen"
)

// The service is killed while it posts, and while it is between tries; the receiver fails now and then. Without what came twice, it has 1..N in order.
func TestWebhookThroughSuddenDeaths(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testing.Short() {
		rounds = 1
	}
	p := startProcess(t)
	var mu sync.Mutex
	var taken []int64
	requests := 0
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var e gen.Event
		if err != nil || json.Unmarshal(body, &e) != nil {
			return // cut off by a death
		}
		mu.Lock()
		defer mu.Unlock()
		if requests++; requests%3 == 0 {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		taken = append(taken, e.Sequence)
	}))
	t.Cleanup(receiver.Close)
	created, err := p.client.CreateSubscriptionWithResponse(t.Context(), ns, gen.SubscriptionInput{
		Name: "hook", Transport: ptr("webhooks"), Options: &gen.SubscriptionOptionsInput{
			FirstEvent: json.RawMessage(`"oldest"`), URL: ptr(receiver.URL), Retry: &gen.WebhookRetry{Count: ptr(1000), InitialDelay: ptr("5ms"), MaxDelay: ptr("50ms")},
		},
	})
	must(t, err)
	if created.JSON201 == nil {
		t.Fatalf("create: %s %s", created.Status(), created.Body)
	}
	for range rounds {
		for range 30 {
			r, err := p.client.BroadcastMessageWithResponse(t.Context(), ns, nil, gen.MessageInput{Data: []gen.DataInput{{Value: json.RawMessage(`1`)}}})
			must(t, err)
			if r.JSON202 == nil {
				t.Fatalf("broadcast: %s %s", r.Status(), r.Body)
			}
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond) // any moment will do
		p.kill(t)
		p.begin(t)
	}
	var head int64
	eventually(t, readyLimit, "everything is posted", func() bool {
		r, err := p.client.GetSubscriptionWithResponse(t.Context(), ns, "hook", &gen.GetSubscriptionParams{FetchStatus: ptr(true)})
		must(t, err)
		head = r.JSON200.Status.Head
		return head >= int64(30*rounds) && r.JSON200.Status.Lag == 0
	}, p.output)
	mu.Lock()
	defer mu.Unlock()
	next := int64(1)
	for _, s := range taken {
		switch {
		case s == next:
			next++
		case s > next:
			t.Fatalf("event %d came before %d", s, next)
		}
	}
	if next != head+1 {
		t.Errorf("the last event is %d of %d", next-1, head)
	}
	t.Logf("%d events, %d taken, %d requests", head, len(taken), requests)
}
