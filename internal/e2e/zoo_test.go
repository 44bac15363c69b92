package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
)

// zoo starts a service with the type zoo behind the API "zoo".
func zoo(t *testing.T) (*service, *gen.ContractInterface, string) {
	t.Helper()
	s := start(t)
	address := strings.ToLower(s.chain.Deploy(t, contracts.Zoo(), "zoo").Hex())
	iface := s.broadcast(t, "zoo", "1", contracts.Zoo().ABI)
	s.createAPI(t, "zoo", *iface.ID, &address)
	return s, iface, address
}

func TestEveryTypeGoesThereAndBack(t *testing.T) {
	t.Parallel()
	s, _, _ := zoo(t)
	const big = "115792089237316195423570985008687907853269984665640564039457584007913129639935"
	for _, c := range []struct{ method, input, want string }{
		{
			"echoInts", `{"a":-128,"b":"-32768","c":"0x10","d":"-170141183460469231731687303715884105728","e":"-1"}`,
			`{"a_":"-128","b_":"-32768","c_":"16","d_":"-170141183460469231731687303715884105728","e_":"-1"}`,
		},
		{
			"echoUints", `{"a":255,"b":1e3,"c":18446744073709551615,"d":0,"e":` + big + `}`,
			`{"a_":"255","b_":"1000","c_":"18446744073709551615","d_":"0","e_":"` + big + `"}`,
		},
		{
			"echoBytes", `{"a":"0x01","b":"0x01020304","c":"0x` + strings.Repeat("ab", 32) + `","d":"0x"}`,
			`{"a_":"0x01","b_":"0x01020304","c_":"0x` + strings.Repeat("ab", 32) + `","d_":"0x"}`,
		},
		{"echoString", `{"a":"zoë \u00e9 \"quoted\" \\ <tag> \ud83d\ude00"}`, `{"output":"zoë é \"quoted\" \\ \u003ctag\u003e 😀"}`},
		{"echoBool", `{"a":"true"}`, `{"output":true}`},
		{"echoAddress", `{"a":"0xFFcf8FDEE72ac11b5c542428B35EEF5769C409f0"}`, `{"output":"0xffcf8fdee72ac11b5c542428b35eef5769c409f0"}`},
		{"echoColour", `{"a":1}`, `{"output":"1"}`},
		{"echoList", `{"a":[1,"2","0x3"]}`, `{"output":["1","2","3"]}`},
		{"echoFixed", `{"a":[1,2,3]}`, `{"output":["1","2","3"]}`},
		{"echoMatrix", `{"a":[[1],[],[-2,3]]}`, `{"output":[["1"],[],["-2","3"]]}`},
		{"echoMixed", `{"a":[[1],[2,3]],"b":[[4,5]]}`, `{"a_":[["1"],["2","3"]],"b_":[["4","5"]]}`},
		{"echoStrings", `{"a":["","x"]}`, `{"output":["","x"]}`},
		{"echoPoint", `{"at":{"y":2,"x":-1}}`, `{"output":{"x":"-1","y":"2"}}`},
		{"echoPoint", `{"at":[-1,2]}`, `{"output":{"x":"-1","y":"2"}}`},
		{"over()", `{}`, ``},
		{"over(uint256)", `{"0":1}`, ``},
		{"over(string)", `{"0":"x"}`, ``},
	} {
		got := s.query(t, "zoo", c.method, c.input)
		if c.want != "" && !sameJSON(t, got, c.want) {
			t.Errorf("%s(%s) = %s, want %s", c.method, c.input, got, c.want)
		}
	}
}

func sameJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var x, y any
	must(t, json.Unmarshal([]byte(a), &x))
	must(t, json.Unmarshal([]byte(b), &y))
	return fmt.Sprint(x) == fmt.Sprint(y)
}

func TestRevertsAreReadable(t *testing.T) {
	t.Parallel()
	s, _, _ := zoo(t)
	const path = "/api/v1/namespaces/default/apis/zoo/"
	for _, c := range []struct{ method, input, name, reason string }{
		{"failWith", `{"reason":"because"}`, "Error", "because"},
		{"failAssert", `{}`, "Panic", "assert"},
		{"failDivision", `{"by":0}`, "Panic", "zero"},
		{"failOverflow", `{"a":255}`, "Panic", "overflow"},
		{"failSilently", `{}`, "", ""},
		{"failDenied", `{"needed":7,"why":"no"}`, "Denied", "Denied"},
	} {
		for _, verb := range []string{"query", "invoke"} {
			status, problem := s.raw(t, "POST", path+verb+"/"+c.method, "application/json", `{"input":`+c.input+`}`)
			if status != 422 || problem.Code != "reverted" {
				t.Errorf("%s %s answered %d %s", verb, c.method, status, problem.Detail)
				continue
			}
			if c.name != "" && (problem.Revert == nil || problem.Revert.Name == nil || *problem.Revert.Name != c.name || !strings.Contains(problem.Detail, c.reason)) {
				t.Errorf("%s %s: %+v %s", verb, c.method, problem.Revert, problem.Detail)
			}
		}
	}
}

// A transaction that passed its estimate and reverts when it is mined: the operation fails and says why.
func TestAMinedFailureSaysWhy(t *testing.T) {
	t.Parallel()
	s, _, _ := zoo(t)
	socket := s.connect(t, "namespace=default&ephemeral&autoack&filter.events=blockchain_invoke_op_failed")
	op := s.invoke(t, "zoo", "notAfter", fmt.Sprintf(`{"blockNumber":%d}`, s.chain.Head()))
	if op.Status != "Failed" || op.Revert == nil || op.Revert.Name == nil || *op.Revert.Name != "Denied" || op.Error == nil || !strings.Contains(*op.Error, "too late") {
		t.Errorf("the operation is %+v, revert %+v", op, op.Revert)
	}
	event := socket.event(t)
	if event.Reference != op.ID || event.Operation == nil || event.Operation.Status != "Failed" {
		t.Errorf("the event is %+v", event)
	}
}

// Strings from a chain may hold any bytes; they must not stop anything.
func TestAnyBytesInAStringAreDelivered(t *testing.T) {
	t.Parallel()
	s, iface, _ := zoo(t)
	for _, event := range []string{"Text", "Counted"} {
		r, err := s.client.CreateContractInterfaceListenerWithResponse(t.Context(), ns, *iface.ID, event, gen.EventListenerInput{})
		must(t, err)
		if r.JSON200 == nil {
			t.Fatalf("listen to %s: %s", event, r.Body)
		}
	}
	socket := s.connect(t, "namespace=default&ephemeral&filter.events=blockchain_event_received")
	s.invoke(t, "zoo", "emitText", `{"raw":"0x6f6bff00fe"}`)
	s.invoke(t, "zoo", "emitMany", `{"n":3}`)
	first := socket.event(t)
	var output struct{ Value, Text string }
	must(t, json.Unmarshal(first.Blockchainevent.Output, &output))
	if text := string(first.Blockchainevent.Output); !strings.Contains(text, "ok") || !strings.Contains(text, "\ufffd") {
		t.Errorf("the text came as %s", text)
	}
	socket.ack(t, first.ID)
	for range 3 {
		e := socket.event(t)
		if e.Blockchainevent.Name != "Counted" {
			t.Errorf("got %+v", e.Blockchainevent)
		}
		socket.ack(t, e.ID)
	}
}

func TestEveryKindOfEventIsHeard(t *testing.T) {
	t.Parallel()
	s, iface, address := zoo(t)
	want := map[string]bool{}
	for _, e := range *iface.Events {
		if e.Name == "Paid" || e.Name == "Claimed" {
			continue
		}
		input := gen.ContractListenerInput{
			Interface: &gen.InterfaceReference{ID: iface.ID}, EventPath: &e.Pathname, Location: &gen.Location{Address: address}, Topic: ptr(e.Pathname),
		}
		r, err := s.client.CreateContractListenerWithResponse(t.Context(), ns, input)
		must(t, err)
		if r.JSON200 == nil {
			t.Fatalf("listen to %s: %s", e.Pathname, r.Body)
		}
		want[e.Pathname] = true
	}
	s.invoke(t, "zoo", "emitAll", `{}`)
	socket := s.connect(t, "namespace=default&ephemeral&autoack&filter.events=blockchain_event_received&firstevent=oldest")
	for len(want) > 0 {
		e := socket.event(t)
		if e.Topic == nil {
			t.Fatalf("an event without the listener's topic: %+v", e)
		}
		delete(want, *e.Topic)
	}
}
