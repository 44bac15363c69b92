package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// hook is a receiver of webhooks.
type hook struct {
	*httptest.Server
	status atomic.Int64
	mu     sync.Mutex
	events []gen.Event
	header http.Header // of the last request
}

func newHook(t testing.TB) *hook {
	t.Helper()
	h := &hook{}
	h.status.Store(http.StatusOK)
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var e gen.Event
		if err != nil || json.Unmarshal(body, &e) != nil {
			t.Errorf("posted %s, %v", body, err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.events, h.header = append(h.events, e), r.Header.Clone()
		w.WriteHeader(int(h.status.Load()))
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *hook) received() []gen.Event {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]gen.Event(nil), h.events...)
}

func soon(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(frameLimit); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it never came true: %s", what)
		}
	}
}

// A webhook from its subscription to its dead letters and back, and through a restart of the service.
func TestWebhookThroughTheAPI(t *testing.T) {
	t.Parallel()
	database := testDatabase(t)
	s := startOn(t, chaintest.New(t), database)
	h := newHook(t)
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	input := gen.SubscriptionInput{
		Name: "hook", Transport: ptr("webhooks"), Filter: &gen.SubscriptionFilter{Events: ptr("message_confirmed")},
		Options: &gen.SubscriptionOptionsInput{
			URL: ptr(h.URL + "/in"), SigningSecret: ptr(secret), Headers: map[string]string{"Authorization": "Bearer abc", "X-Own": "1"},
			Retry: &gen.WebhookRetry{Count: ptr(1), InitialDelay: ptr("5ms"), MaxDelay: ptr("10ms")}, Fastack: ptr(false),
			HTTPOptions: &gen.WebhookHTTPOptions{RequestTimeout: ptr("5s")},
		},
	}
	created, err := s.client.CreateSubscriptionWithResponse(t.Context(), ns, input)
	must(t, err)
	if created.JSON201 == nil || strings.Contains(string(created.Body), "whsec_") || strings.Contains(string(created.Body), "Bearer") ||
		created.JSON201.Options.Headers["X-Own"] != "1" {
		t.Fatalf("create a webhook: %s %s", created.Status(), created.Body)
	}
	ping, err := s.client.PingSubscriptionWithResponse(t.Context(), ns, "hook")
	must(t, err)
	if ping.JSON200 == nil || !ping.JSON200.Delivered || *ping.JSON200.Status != 200 || ping.JSON200.LatencyMs <= 0 {
		t.Fatalf("ping: %s %s", ping.Status(), ping.Body)
	}
	if e := h.received()[0]; e.Type != "ping" || h.header.Get("webhook-signature") == "" || h.header.Get("Authorization") != "Bearer abc" {
		t.Errorf("the ping is %+v with %v", e, h.header)
	}

	// Refused until given up, then delivered again on demand.
	h.status.Store(http.StatusConflict)
	message := s.confirm(t, "one")
	status := func() gen.SubscriptionStatus {
		r, err := s.client.GetSubscriptionWithResponse(t.Context(), ns, "hook", &gen.GetSubscriptionParams{FetchStatus: ptr(true)})
		must(t, err)
		return *r.JSON200.Status
	}
	soon(t, "the event is given up", func() bool { return *status().DeadLetters == 1 })
	letters, err := s.client.ListDeadLettersWithResponse(t.Context(), ns, "hook", nil)
	must(t, err)
	if list := *letters.JSON200; len(list) != 1 || list[0].Attempts != 2 || *list[0].Status != 409 || list[0].Payload.Reference != message {
		t.Errorf("the dead letters are %s", letters.Body)
	}
	h.status.Store(http.StatusNoContent)
	redrive, err := s.client.RedriveDeadLettersWithResponse(t.Context(), ns, "hook", gen.RedriveRequest{Events: []uuid.UUID{(*letters.JSON200)[0].Event}})
	must(t, err)
	if redrive.JSON202 == nil || redrive.JSON202.Redriven != 1 {
		t.Fatalf("redrive: %s %s", redrive.Status(), redrive.Body)
	}
	soon(t, "the list is empty", func() bool { return *status().DeadLetters == 0 })
	empty, err := http.Post(s.url+"/api/v1/namespaces/default/subscriptions/hook/deadletters/redrive", "", nil) //nolint:noctx // a test
	must(t, err)
	empty.Body.Close()
	if empty.StatusCode != http.StatusAccepted {
		t.Errorf("redrive without a body: %d", empty.StatusCode)
	}

	// A restart in the middle of tries loses nothing.
	input.Options.Retry = &gen.WebhookRetry{Count: ptr(1000), InitialDelay: ptr("5ms"), MaxDelay: ptr("20ms")}
	input.Options.SigningSecret, input.Options.Headers = ptr("********"), nil
	replaced, err := s.client.ReplaceSubscriptionWithResponse(t.Context(), ns, input)
	must(t, err)
	if replaced.JSON200 == nil {
		t.Fatalf("change: %s %s", replaced.Status(), replaced.Body)
	}
	h.status.Store(http.StatusBadGateway)
	second, third := s.confirm(t, "two"), s.confirm(t, "three")
	soon(t, "the tries are seen", func() bool { a := status().Attempts; return a != nil && a.Count > 2 && *a.Status == 502 })
	s.stop(t)
	s.run(t, database)
	h.status.Store(http.StatusOK)
	soon(t, "it is all there", func() bool { return status().Lag == 0 && status().Attempts == nil })
	events := h.received()
	if last := events[len(events)-1]; last.Reference != third || h.header.Get("webhook-signature") == "" || h.header.Get("Authorization") != "" {
		t.Errorf("the last event is %+v with %v", last, h.header)
	}
	seen := false
	for _, e := range events {
		seen = seen || e.Reference == second
		if e.Reference == third && !seen {
			t.Error("the third came before the second")
		}
	}
	plain, err := s.client.CreateSubscriptionWithResponse(t.Context(), ns, gen.SubscriptionInput{Name: "plain"})
	must(t, err)
	if plain.JSON201 == nil {
		t.Fatal(plain.Status())
	}
	if r, err := s.client.PingSubscriptionWithResponse(t.Context(), ns, "plain"); err != nil || r.StatusCode() != http.StatusConflict {
		t.Errorf("ping of a subscription without a webhook: %d %v", r.StatusCode(), err)
	}
}

// confirm broadcasts a message and waits until it is confirmed.
func (s *service) confirm(t testing.TB, text string) uuid.UUID {
	t.Helper()
	r, err := s.client.BroadcastMessageWithResponse(t.Context(), ns, &gen.BroadcastMessageParams{Confirm: ptr(true)}, gen.MessageInput{
		Data: []gen.DataInput{{Value: json.RawMessage(`"` + text + `"`)}},
	})
	must(t, err)
	if r.JSON200 == nil {
		t.Fatalf("broadcast: %s %s", r.Status(), r.Body)
	}
	return r.JSON200.Header.ID
}

// One history, by WebSocket in batches and as a stream.
func TestBatchesAndStreamsThroughTheService(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.broadcast(t, "simple-storage", "v1", contracts.SimpleStorage().ABI)
	s.confirm(t, "one")
	for _, name := range []string{"batched", "streamed"} {
		r, err := s.client.CreateSubscriptionWithResponse(t.Context(), ns, gen.SubscriptionInput{
			Name: name, Options: &gen.SubscriptionOptionsInput{FirstEvent: json.RawMessage(`"oldest"`), Batch: ptr(name == "batched"), ReadAhead: ptr(100)},
		})
		must(t, err)
		if r.JSON201 == nil {
			t.Fatalf("create: %s %s", r.Status(), r.Body)
		}
	}
	c := s.connect(t, "namespace=default&name=batched")
	var batch struct {
		Type   string
		ID     uuid.UUID
		Events []gen.Event
	}
	must(t, json.Unmarshal(c.frame(t), &batch))
	if batch.Type != "event_batch" || len(batch.Events) < 2 {
		t.Fatalf("the frame is %+v", batch)
	}
	c.ack(t, batch.ID)
	last := batch.Events[len(batch.Events)-1].Sequence
	soon(t, "the ack counts", func() bool {
		r, err := s.client.GetSubscriptionWithResponse(t.Context(), ns, "batched", &gen.GetSubscriptionParams{FetchStatus: ptr(true)})
		must(t, err)
		return r.JSON200.Status.Position == last
	})

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+"/api/v1/namespaces/default/subscriptions/streamed/stream", nil)
	must(t, err)
	request.Header.Set("Last-Event-ID", "1")
	response, err := http.DefaultClient.Do(request)
	must(t, err)
	defer response.Body.Close()
	lines := bufio.NewScanner(response.Body)
	for want := int64(2); want <= last && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var e gen.Event
			must(t, json.Unmarshal([]byte(data), &e))
			if e.Sequence != want {
				t.Fatalf("got event %d, want %d", e.Sequence, want)
			}
			want++
		}
	}
	must(t, lines.Err())

	document, err := http.Get(s.url + "/api/asyncapi.yaml") //nolint:noctx // a test
	must(t, err)
	defer document.Body.Close()
	if text, err := io.ReadAll(document.Body); err != nil || document.StatusCode != http.StatusOK || !strings.HasPrefix(string(text), "asyncapi: 3.0.0") {
		t.Errorf("the AsyncAPI document: %d %.40s %v", document.StatusCode, text, err)
	}
}
