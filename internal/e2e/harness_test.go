package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/frametest"
)

// ns is the namespace that there is when nothing is configured.
const ns = "default"

// service is a running Pactwire with its own database and its own chain.
type service struct {
	url    string
	chain  *chaintest.Chain
	client *gen.ClientWithResponses
	http   *http.Client // validating
	listen string
	stop   func(testing.TB)

	settings map[string]string // beside the address
	attached bool              // the chain is reached within the process, as in pactwire dev
}

func ptr[T any](v T) *T { return &v }

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// generate turns an ABI into an interface.
func (s *service) generate(t testing.TB, abi json.RawMessage) *gen.ContractInterface {
	t.Helper()
	r, err := s.client.GenerateContractInterfaceWithResponse(t.Context(), ns, gen.GenerateRequest{Input: gen.GenerateInput{Abi: abi}})
	must(t, err)
	if r.JSON200 == nil {
		t.Fatalf("generate an interface: %s %s", r.Status(), r.Body)
	}
	return r.JSON200
}

// broadcast generates and broadcasts, and waits for the network's order.
func (s *service) broadcast(t testing.TB, name, version string, abi json.RawMessage) *gen.ContractInterface {
	t.Helper()
	generated := s.generate(t, abi)
	raw, err := json.Marshal(generated)
	must(t, err)
	var input gen.ContractInterfaceInput
	must(t, json.Unmarshal(raw, &input))
	input.Name, input.Version = name, version
	r, err := s.client.CreateContractInterfaceWithResponse(t.Context(), ns, &gen.CreateContractInterfaceParams{Confirm: ptr(true)}, input)
	must(t, err)
	if r.JSON200 == nil {
		t.Fatalf("broadcast interface %s: %s %s", name, r.Status(), r.Body)
	}
	return r.JSON200
}

type contractAPI struct{ gen.ContractAPI }

// URLs are the API's addresses.
func (a contractAPI) URLs(testing.TB) gen.ContractAPIURLs { return a.Urls }

func (s *service) createAPI(t testing.TB, name string, iface uuid.UUID, address *string) contractAPI {
	t.Helper()
	input := gen.ContractAPIInput{Name: name, Interface: gen.InterfaceReference{ID: &iface}}
	if address != nil {
		input.Location = &gen.Location{Address: *address}
	}
	r, err := s.client.CreateContractAPIWithResponse(t.Context(), ns, &gen.CreateContractAPIParams{Confirm: ptr(true)}, input)
	must(t, err)
	if r.JSON200 == nil {
		t.Fatalf("create API %s: %s %s", name, r.Status(), r.Body)
	}
	return contractAPI{*r.JSON200}
}

// invoke invokes and waits for the outcome.
func (s *service) invoke(t testing.TB, api, method, input string) gen.Operation {
	t.Helper()
	r, err := s.client.InvokeContractAPIWithResponse(t.Context(), ns, api, method, &gen.InvokeContractAPIParams{Confirm: ptr(true)},
		gen.InvokeRequest{Input: json.RawMessage(input)})
	must(t, err)
	if r.JSON200 == nil {
		t.Fatalf("invoke %s: %s %s", method, r.Status(), r.Body)
	}
	return *r.JSON200
}

// query returns the answer's body.
func (s *service) query(t testing.TB, api, method, input string) string {
	t.Helper()
	r, err := s.client.QueryContractAPIWithResponse(t.Context(), ns, api, method, gen.InvokeRequest{Input: json.RawMessage(input)})
	must(t, err)
	if r.JSON200 == nil {
		t.Fatalf("query %s: %s %s", method, r.Status(), r.Body)
	}
	return strings.TrimSpace(string(r.Body))
}

// socket is a WebSocket connection of an application.
type socket struct{ *websocket.Conn }

const frameLimit = 20 * time.Second

// connect opens a WebSocket; query goes behind the question mark.
func (s *service) connect(t testing.TB, query string) socket {
	t.Helper()
	address := "ws" + strings.TrimPrefix(s.url, "http") + "/ws"
	if query != "" {
		address += "?" + query
	}
	c, response, err := websocket.DefaultDialer.DialContext(t.Context(), address, nil)
	if err != nil {
		t.Fatalf("connect to %s: %v %+v", address, err, response)
	}
	response.Body.Close()
	t.Cleanup(func() { c.Close() })
	return socket{c}
}

func (c socket) send(t testing.TB, frame string) {
	t.Helper()
	if err := frametest.Sent([]byte(frame)); err != nil {
		t.Errorf("a frame that asyncapi.yaml does not describe so: %v\n%s", err, frame)
	}
	must(t, c.WriteMessage(websocket.TextMessage, []byte(frame)))
}

// frame reads the next frame.
func (c socket) frame(t testing.TB) []byte {
	t.Helper()
	must(t, c.SetReadDeadline(time.Now().Add(frameLimit)))
	_, frame, err := c.ReadMessage()
	if err != nil {
		t.Fatalf("read a frame: %v", err)
	}
	if err := frametest.Received(frame); err != nil {
		t.Errorf("a frame that asyncapi.yaml does not describe so: %v\n%s", err, frame)
	}
	return frame
}

// event reads the next frame, which must be an event.
func (c socket) event(t testing.TB) gen.Event {
	t.Helper()
	frame := c.frame(t)
	var e gen.Event
	must(t, json.Unmarshal(frame, &e))
	if e.Type == "protocol_error" {
		t.Fatalf("the service says %s", frame)
	}
	return e
}

func (c socket) ack(t testing.TB, id uuid.UUID) {
	t.Helper()
	c.send(t, `{"type":"ack","id":"`+id.String()+`"}`)
}
