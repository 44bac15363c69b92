package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
)

// raw sends a request as it is and returns the status and the problem.
func (s *service) raw(t testing.TB, method, path, contentType, body string) (int, gen.Error) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	must(t, err)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	response, err := s.http.Do(r)
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	var problem gen.Error
	if response.Header.Get("Content-Type") == "application/problem+json" {
		must(t, json.Unmarshal(answer, &problem))
		if problem.Status != response.StatusCode || problem.Error != problem.Detail || problem.Code == "" || problem.Detail == "" {
			t.Errorf("%s %s: the problem is not whole: %s", method, path, answer)
		}
	} else if response.StatusCode >= 400 {
		t.Errorf("%s %s answered %d with %s: %s", method, path, response.StatusCode, response.Header.Get("Content-Type"), answer)
	}
	for _, internal := range []string{"pq:", "sql:", "SELECT", "goroutine", ".go:", "json: cannot"} {
		if bytes.Contains(answer, []byte(internal)) {
			t.Errorf("%s %s shows internals: %s", method, path, answer)
		}
	}
	return response.StatusCode, problem
}

func TestBadInputIsAnsweredWithAClearProblem(t *testing.T) {
	t.Parallel()
	s := start(t)
	address := strings.ToLower(s.chain.Deploy(t, contracts.SimpleStorage()).Hex())
	zoo := strings.ToLower(s.chain.Deploy(t, contracts.Zoo(), "zoo").Hex())
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(t, "simple", *iface.ID, &address)
	s.createAPI(t, "anywhere", *iface.ID, nil)
	animals := s.broadcast(t, "zoo", "1", contracts.Zoo().ABI)
	s.createAPI(t, "zoo", *animals.ID, &zoo)
	id := iface.ID.String()
	const missing = "00000000-0000-4000-8000-000000000000"
	const js = "application/json"
	base := "/api/v1/namespaces/default"
	cases := []struct {
		name, method, path, contentType, body string
		status                                int
		code, field                           string
	}{
		{"malformed JSON", "POST", base + "/apis/simple/query/get", js, `{"input":`, 400, "invalid_request", ""},
		{"two values", "POST", base + "/apis/simple/query/get", js, `{} {}`, 400, "invalid_request", ""},
		{"not UTF-8", "POST", base + "/apis/simple/query/get", js, "{\"input\":{\"\xff\":1}}", 400, "invalid_request", ""},
		{"a name twice", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1,"newValue":2}}`, 400, "invalid_request", "newValue"},
		{"nested too deep", "POST", base + "/apis/simple/query/get", js, `{"input":` + strings.Repeat(`[`, 5000) + strings.Repeat(`]`, 5000) + `}`, 400, "invalid_request", ""},
		{"an array as body", "POST", base + "/apis/simple/query/get", js, `[]`, 400, "invalid_request", ""},
		{"no body", "POST", base + "/apis/simple/query/get", "", ``, 400, "invalid_request", ""},
		{"empty JSON body", "POST", base + "/apis/simple/query/get", js, ``, 400, "invalid_request", ""},
		{"wrong content type", "POST", base + "/apis/simple/query/get", "text/plain", `{}`, 415, "unsupported_media_type", ""},
		{"form", "POST", base + "/apis/simple/query/get", "application/x-www-form-urlencoded", `a=b`, 415, "unsupported_media_type", ""},
		{"body too large", "POST", base + "/apis/simple/query/get", js, `{"input":{"x":"` + strings.Repeat("x", 5<<20) + `"}}`, 413, "body_too_large", ""},
		{"unknown path", "GET", base + "/nothing", "", ``, 404, "route_not_found", ""},
		{"unknown root path", "GET", "/nothing", "", ``, 404, "route_not_found", ""},
		{"wrong method", "DELETE", base + "/subscriptions", "", ``, 405, "method_not_allowed", ""},
		{"unknown namespace", "GET", "/api/v1/namespaces/other/status", "", ``, 404, "namespace_not_found", ""},
		{"unknown namespace in a POST", "POST", "/api/v1/namespaces/other/apis", js, `{}`, 404, "namespace_not_found", ""},
		{"unknown API", "POST", base + "/apis/other/query/get", js, `{}`, 404, "api_not_found", ""},
		{"unknown API document", "GET", base + "/apis/other/api/swagger.json", "", ``, 404, "api_not_found", ""},
		{"unknown interface", "GET", base + "/contracts/interfaces/" + missing, "", ``, 404, "interface_not_found", ""},
		{"unknown interface by name", "GET", base + "/contracts/interfaces/storage/2", "", ``, 404, "interface_not_found", ""},
		{"unknown method", "POST", base + "/apis/simple/query/other", js, `{}`, 404, "method_not_found", ""},
		{"unknown event", "POST", base + "/apis/simple/listeners/Other", js, `{}`, 404, "event_not_found", ""},
		{"unknown operation", "GET", base + "/operations/" + missing, "", ``, 404, "operation_not_found", ""},
		{"unknown message", "GET", base + "/messages/" + missing, "", ``, 404, "message_not_found", ""},
		{"unknown data of a message", "GET", base + "/messages/" + missing + "/data", "", ``, 404, "message_not_found", ""},
		{"unknown event id", "GET", base + "/events/" + missing, "", ``, 404, "event_not_found", ""},
		{"unknown blockchain event", "GET", base + "/blockchainevents/" + missing, "", ``, 404, "blockchain_event_not_found", ""},
		{"unknown listener", "DELETE", base + "/contracts/listeners/other", "", ``, 404, "listener_not_found", ""},
		{"unknown subscription", "DELETE", base + "/subscriptions/other", "", ``, 404, "subscription_not_found", ""},
		{"bad UUID", "GET", base + "/operations/nonsense", "", ``, 400, "invalid_request", "id"},
		{"bad UUID in a body", "POST", base + "/apis", js, `{"name":"x","interface":{"id":"nonsense"}}`, 400, "invalid_request", "interface.id"},
		{"bad regular expression", "POST", base + "/subscriptions", js, `{"name":"x","transport":"websockets","filter":{"events":"("}}`, 400, "invalid_request", "filter.events"},
		{"long regular expression", "POST", base + "/subscriptions", js, `{"name":"x","filter":{"message":{"tag":"` + strings.Repeat("a", 1001) + `"}}}`, 400, "invalid_request", "filter.message.tag"},
		{"unknown filter", "POST", base + "/subscriptions", js, `{"name":"x","filter":{"event":"a"}}`, 400, "invalid_request", ""},
		{"bad subscription name", "POST", base + "/subscriptions", js, `{"name":"a b"}`, 400, "invalid_request", "name"},
		{"subscription named like an id", "POST", base + "/subscriptions", js, `{"name":"` + missing + `"}`, 400, "invalid_request", "name"},
		{"unknown transport", "POST", base + "/subscriptions", js, `{"name":"x","transport":"pigeon"}`, 400, "invalid_request", "transport"},
		{"readAhead out of range", "POST", base + "/subscriptions", js, `{"name":"x","options":{"readAhead":65536}}`, 400, "invalid_request", "options.readAhead"},
		{"bad firstEvent", "POST", base + "/subscriptions", js, `{"name":"x","options":{"firstEvent":"soon"}}`, 400, "invalid_request", "options.firstEvent"},
		{"bad firstEvent of a listener", "POST", base + "/apis/simple/listeners/Changed", js, `{"options":{"firstEvent":"soon"}}`, 400, "invalid_request", "options.firstEvent"},
		{"integer too large", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":"115792089237316195423570985008687907853269984665640564039457584007913129639936"}}`, 400, "invalid_request", "input.newValue"},
		{"negative integer", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":-1}}`, 400, "invalid_request", "input.newValue"},
		{"fraction", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1.5}}`, 400, "invalid_request", "input.newValue"},
		{"huge exponent", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1e999999999}}`, 400, "invalid_request", "input.newValue"},
		{"missing parameter", "POST", base + "/apis/simple/invoke/set", js, `{"input":{}}`, 400, "invalid_request", "input.newValue"},
		{"unknown parameter", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1,"other":2}}`, 400, "invalid_request", "input.other"},
		{"parameter in another case", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newvalue":1}}`, 400, "invalid_request", ""},
		{"input in another case", "POST", base + "/apis/simple/invoke/set", js, `{"INPUT":{"newValue":1}}`, 400, "invalid_request", "input.newValue"},
		{"unknown option", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1},"options":{"gass":1}}`, 400, "invalid_request", "options.gass"},
		{"blockNumber on an invoke", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1},"options":{"blockNumber":1}}`, 400, "invalid_request", "options.blockNumber"},
		{"value to what is not payable", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1},"options":{"value":1}}`, 400, "invalid_request", "options.value"},
		{"unknown key", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1},"key":"0x0000000000000000000000000000000000000001"}`, 400, "invalid_request", "key"},
		{"bad key", "POST", base + "/apis/simple/invoke/set", js, `{"input":{"newValue":1},"key":"0x1"}`, 400, "invalid_request", "key"},
		{"missing location", "POST", base + "/apis/anywhere/query/get", js, `{}`, 400, "invalid_request", "location"},
		{"another location", "POST", base + "/apis/simple/query/get", js, `{"location":{"address":"` + zoo + `"}}`, 400, "invalid_request", "location.address"},
		{"bad location", "POST", base + "/apis/anywhere/query/get", js, `{"location":{"address":"0x12"}}`, 400, "invalid_request", "location.address"},
		{"wrong checksum", "POST", base + "/apis/anywhere/query/get", js, `{"location":{"address":"0xFFcf8FDEE72ac11b5c542428B35EEF5769C409f1"}}`, 400, "invalid_request", "location.address"},
		{"no contract, query", "POST", base + "/apis/anywhere/query/get", js, `{"location":{"address":"0x00000000000000000000000000000000000000aa"}}`, 400, "no_contract", "location.address"},
		{"no contract, invoke", "POST", base + "/apis/anywhere/invoke/set", js, `{"input":{"newValue":1},"location":{"address":"0x00000000000000000000000000000000000000aa"}}`, 400, "no_contract", "location.address"},
		{"missing location at the interface", "POST", base + "/contracts/interfaces/" + id + "/invoke/set", js, `{"input":{"newValue":1}}`, 400, "invalid_request", "location"},
		{"missing location inline", "POST", base + "/contracts/invoke", js, `{"input":{},"method":{"name":"x"}}`, 400, "invalid_request", "location"},
		{"missing method inline", "POST", base + "/contracts/invoke", js, `{"location":{"address":"` + address + `"}}`, 400, "invalid_request", "method"},
		{"bad type inline", "POST", base + "/contracts/query", js, `{"location":{"address":"` + address + `"},"method":{"name":"x","params":[{"name":"a","schema":{"type":"integer","details":{"type":"uint257"}}}]}}`, 400, "invalid_request", ""},
		{"API name that is no name", "POST", base + "/apis", js, `{"name":"a/b","interface":{"id":"` + id + `"}}`, 400, "invalid_request", "name"},
		{"API name taken", "POST", base + "/apis", js, `{"name":"simple","interface":{"id":"` + id + `"}}`, 409, "api_exists", ""},
		{"API of an unknown interface", "POST", base + "/apis", js, `{"name":"x","interface":{"id":"` + missing + `"}}`, 404, "interface_not_found", ""},
		{"API without an interface", "POST", base + "/apis", js, `{"name":"x"}`, 400, "invalid_request", "interface"},
		{"interface without a version", "POST", base + "/contracts/interfaces", js, `{"name":"x"}`, 400, "invalid_request", "version"},
		{"interface with an empty name", "POST", base + "/contracts/interfaces", js, `{"name":"","version":"1"}`, 400, "invalid_request", "name"},
		{"interface taken", "POST", base + "/contracts/interfaces", js, `{"name":"storage","version":"1","methods":[],"events":[]}`, 409, "interface_exists", ""},
		{"interface in use", "DELETE", base + "/contracts/interfaces/" + id, "", ``, 409, "interface_in_use", ""},
		{"ABI that is no array", "POST", base + "/contracts/interfaces/generate", js, `{"input":{"abi":{}}}`, 400, "invalid_request", "input.abi"},
		{"ABI with a bad type", "POST", base + "/contracts/interfaces/generate", js, `{"input":{"abi":[{"type":"function","name":"f","inputs":[{"name":"a","type":"uint7"}]}]}}`, 400, "invalid_request", ""},
		{"listener without an event", "POST", base + "/contracts/listeners", js, `{"interface":{"id":"` + id + `"},"location":{"address":"` + address + `"}}`, 400, "invalid_request", "eventPath"},
		{"limit out of range", "GET", base + "/events?limit=251", "", ``, 400, "invalid_request", "limit"},
		{"skip out of range", "GET", base + "/events?skip=1001", "", ``, 400, "invalid_request", "skip"},
		{"bad cursor", "GET", base + "/events?after=nonsense", "", ``, 400, "invalid_request", "after"},
		{"bad sort", "GET", base + "/events?sort=nonsense", "", ``, 400, "invalid_request", "sort"},
		{"unknown filter of a list", "GET", base + "/events?tpye=x", "", ``, 400, "invalid_request", "tpye"},
		{"NUL in a filter of a list", "GET", base + "/events?type=%00", "", ``, 400, "invalid_request", "type"},
		{"bad number of a list", "GET", base + "/events?limit=x", "", ``, 400, "invalid_request", "limit"},
		{"message without data", "POST", base + "/messages/broadcast", js, `{"data":[]}`, 400, "invalid_request", "data"},
		{"message with a reserved tag", "POST", base + "/messages/broadcast", js, `{"header":{"tag":"define_api"},"data":[{"value":1}]}`, 400, "invalid_request", "header.tag"},
		{"revert of a query", "POST", base + "/apis/zoo/query/failWith", js, `{"input":{"reason":"no"}}`, 422, "reverted", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			status, problem := s.raw(t, c.method, c.path, c.contentType, c.body)
			if status != c.status || problem.Code != c.code {
				t.Errorf("answered %d %s (%s), want %d %s", status, problem.Code, problem.Detail, c.status, c.code)
			}
			if c.field == "" {
				return
			}
			for _, f := range problem.Fields {
				if f.Path == c.field {
					return
				}
			}
			t.Errorf("the fields are %+v, want %s", problem.Fields, c.field)
		})
	}
}
