package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
)

// The main job, once through: an ABI becomes a REST API, its events reach an application.
func TestAnABIBecomesARESTAPIAndItsEventsReachAnApplication(t *testing.T) {
	t.Parallel()
	s := start(t)
	address := s.chain.Deploy(t, contracts.SimpleStorage()).Hex()

	// Generate: nothing is stored, nothing has an id.
	generated := s.generate(t, contracts.SimpleStorage().ABI)
	if generated.ID != nil || generated.Name != "" || generated.Version != "" {
		t.Errorf("a generated interface has id %v, name %q, version %q; want none", generated.ID, generated.Name, generated.Version)
	}
	methods := *generated.Methods
	if len(methods) != 2 || methods[0].Name != "get" || methods[1].Name != "set" {
		t.Fatalf("methods = %+v, want get and set", methods)
	}
	if p := methods[1].Params[0]; p.Name != "newValue" || *p.Schema.Type != "integer" || *p.Schema.Details.Type != "uint256" {
		t.Errorf("the parameter of set is %+v", p)
	}
	if methods[0].ID != nil || methods[0].Pathname != "" {
		t.Errorf("a generated method has id %v and pathname %q; want none", methods[0].ID, methods[0].Pathname)
	}

	// Broadcast: ids, message and pathnames are there; the message is confirmed by the chain.
	iface := s.broadcast(t, "simple-storage", "v1.0.0", contracts.SimpleStorage().ABI)
	if iface.ID == nil || iface.Message == nil || (*iface.Methods)[1].Pathname != "set" || (*iface.Events)[0].Pathname != "Changed" {
		t.Errorf("the broadcast interface lacks ids or pathnames: %+v", iface)
	}
	message, err := s.client.GetMessageWithResponse(t.Context(), ns, *iface.Message, &gen.GetMessageParams{Data: ptr(true)})
	must(t, err)
	if m := message.JSON200; m == nil || m.State != "confirmed" || m.Header.Type != "broadcast" || m.Header.Txtype != "batch_pin" || m.BatchID == nil ||
		m.Confirmed == nil || *m.Header.Tag != "define_interface" || len(m.Data) != 1 || len(m.Data[0].Value) == 0 {
		t.Errorf("the message of the interface is %s", message.Body)
	}

	// The API.
	api := s.createAPI(t, "simple", *iface.ID, &address)
	if api.URLs(t).UI != s.url+"/api/v1/namespaces/default/apis/simple/api" {
		t.Errorf("the address of the UI is %s", api.URLs(t).UI)
	}

	// Invoke and query.
	op := s.invoke(t, "simple", "set", `{"newValue": "12345678901234567890123456789"}`)
	if op.Status != "Succeeded" || op.TransactionHash == nil {
		t.Fatalf("the operation is %+v, want Succeeded", op)
	}
	if got := s.query(t, "simple", "get", `{}`); got != `{"output":"12345678901234567890123456789"}` {
		t.Errorf("query get = %s", got)
	}

	// Listen from the chain's beginning: what happened before the listener was made is heard as well.
	listener, err := s.client.CreateContractListenerWithResponse(t.Context(), ns, gen.ContractListenerInput{
		Interface: &gen.InterfaceReference{ID: iface.ID}, Location: &gen.Location{Address: address}, EventPath: ptr("Changed"),
		Options: &gen.ListenerOptions{FirstEvent: ptr("oldest")},
	})
	must(t, err)
	if listener.JSON200 == nil {
		t.Fatalf("create a listener: %s %s", listener.Status(), listener.Body)
	}
	l := listener.JSON200
	subscription, err := s.client.CreateSubscriptionWithResponse(t.Context(), ns, gen.SubscriptionInput{
		Name: "app", Transport: ptr("websockets"),
		Filter: &gen.SubscriptionFilter{
			Events: ptr("blockchain_event_received"), Blockchainevent: &gen.BlockchainEventFilter{Listener: ptr(l.ID.String())},
		},
		Options: &gen.SubscriptionOptionsInput{FirstEvent: json.RawMessage(`"oldest"`), ReadAhead: ptr(50)},
	})
	must(t, err)
	if subscription.JSON201 == nil || *subscription.JSON201.Options.FirstEvent != "-1" {
		t.Fatalf("create a subscription: %s %s", subscription.Status(), subscription.Body)
	}

	// Receive and acknowledge.
	socket := s.connect(t, "")
	socket.send(t, `{"type":"start","namespace":"default","name":"app","autoack":false}`)
	event := socket.event(t)
	b := event.Blockchainevent
	if event.Type != "blockchain_event_received" || b == nil || b.Name != "Changed" || b.Listener != l.ID || event.Reference != b.ID {
		t.Fatalf("the event is %+v", event)
	}
	var output map[string]string
	must(t, json.Unmarshal(b.Output, &output))
	if output["value"] != "12345678901234567890123456789" || output["from"] == "" {
		t.Errorf("output = %v", output)
	}
	for _, key := range []string{"address", "blockNumber", "logIndex", "signature", "subId", "timestamp", "transactionHash", "transactionIndex", "blockHash"} {
		if b.Info[key] == "" {
			t.Errorf("info has no %s: %v", key, b.Info)
		}
	}
	if b.Info["transactionHash"] != *op.TransactionHash || b.Info["signature"] != "Changed(address,uint256)" {
		t.Errorf("info = %v", b.Info)
	}
	socket.ack(t, event.ID)

	// Live: what is invoked now arrives now.
	for i := range 5 {
		s.invoke(t, "simple", "set", fmt.Sprintf(`{"newValue": %d}`, i))
		event := socket.event(t)
		must(t, json.Unmarshal(event.Blockchainevent.Output, &output))
		if output["value"] != fmt.Sprint(i) {
			t.Errorf("event %d has the value %s", i, output["value"])
		}
		socket.ack(t, event.ID)
	}
}

func TestInterfaceLevelAndInlineUse(t *testing.T) {
	t.Parallel()
	s := start(t)
	address := s.chain.Deploy(t, contracts.SimpleStorage()).Hex()
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	location := &gen.Location{Address: address}

	invoked, err := s.client.InvokeContractInterfaceWithResponse(t.Context(), ns, *iface.ID, "set(uint256)",
		&gen.InvokeContractInterfaceParams{Confirm: ptr(true)}, gen.InvokeRequest{Location: location, Input: json.RawMessage(`{"newValue":7}`)})
	must(t, err)
	if invoked.JSON200 == nil || invoked.JSON200.Status != "Succeeded" {
		t.Fatalf("invoke at the interface: %s %s", invoked.Status(), invoked.Body)
	}
	queried, err := s.client.QueryContractInterfaceWithResponse(t.Context(), ns, *iface.ID, "get", gen.InvokeRequest{Location: location})
	must(t, err)
	if queried.JSON200 == nil || string((*queried.JSON200)["output"]) != `"7"` {
		t.Errorf("query at the interface: %s %s", queried.Status(), queried.Body)
	}

	set := gen.MethodInput{Name: "set", Params: []gen.Param{{Name: "v", Schema: gen.Schema{Type: ptr("integer"), Details: &gen.SchemaDetails{Type: ptr("uint256")}}}}}
	get := gen.MethodInput{Name: "get", Returns: []gen.Param{{Name: "", Schema: gen.Schema{Type: ptr("integer"), Details: &gen.SchemaDetails{Type: ptr("uint256")}}}}}
	inline, err := s.client.InvokeContractWithResponse(t.Context(), ns, &gen.InvokeContractParams{Confirm: ptr(true)},
		gen.InlineInvokeRequest{Location: *location, Method: set, Input: json.RawMessage(`{"v":"0x10"}`)})
	must(t, err)
	if inline.JSON200 == nil || inline.JSON200.Status != "Succeeded" {
		t.Fatalf("inline invoke: %s %s", inline.Status(), inline.Body)
	}
	asked, err := s.client.QueryContractWithResponse(t.Context(), ns, gen.InlineInvokeRequest{Location: *location, Method: get, Input: json.RawMessage(`{}`)})
	must(t, err)
	if asked.JSON200 == nil || string((*asked.JSON200)["output"]) != `"16"` {
		t.Errorf("inline query: %s %s", asked.Status(), asked.Body)
	}
}

func TestAnIdempotencyKeyIsUsedOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	address := s.chain.Deploy(t, contracts.SimpleStorage()).Hex()
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(t, "simple", *iface.ID, &address)
	send := func(value string) *gen.InvokeContractAPIReply {
		r, err := s.client.InvokeContractAPIWithResponse(t.Context(), ns, "simple", "set", &gen.InvokeContractAPIParams{IdempotencyKey: ptr("once")},
			gen.InvokeRequest{Input: json.RawMessage(`{"newValue":` + value + `}`)})
		must(t, err)
		return r
	}
	first, again, other := send("1"), send("1"), send("2")
	if first.JSON202 == nil || again.JSON202 == nil || first.JSON202.ID != again.JSON202.ID {
		t.Errorf("a repeat: %s, then %s", first.Body, again.Body)
	}
	if other.StatusCode() != http.StatusConflict {
		t.Errorf("the key with another body: %s %s", other.Status(), other.Body)
	}
}
