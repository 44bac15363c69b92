package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
)

// For every operation of openapi.yaml, requests made from the document, good ones and spoilt ones: each answer is as the document describes it, and none
// is a 5xx.
func TestEveryOperationAnswersAsDescribed(t *testing.T) {
	t.Parallel()
	s := start(t)
	address := strings.ToLower(s.chain.Deploy(t, contracts.SimpleStorage()).Hex())
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(t, "simple", *iface.ID, &address)
	op := s.invoke(t, "simple", "set", `{"newValue":1}`)
	doc, err := gen.GetSpec()
	must(t, err)
	rounds := 25
	if n, err := strconv.Atoi(os.Getenv("PACTWIRE_TEST_ROUNDS")); err == nil {
		rounds = n
	}
	seed := int64(20261121)
	if n, err := strconv.ParseInt(os.Getenv("PACTWIRE_TEST_SEED"), 10, 64); err == nil {
		seed = n
	}
	m := maker{
		rnd: rand.New(rand.NewSource(seed)),
		known: map[string][]string{
			"ns": {ns}, "apiName": {"simple"}, "interfaceId": {iface.ID.String()}, "interfaceName": {"storage"}, "interfaceVersion": {"1"},
			"method": {"get", "set", "set(uint256)"}, "eventPath": {"Changed", "Changed(address,uint256)"},
			"id": {op.ID.String(), op.Tx.String(), iface.Message.String()}, "nameOrId": {"a", "b"},
		},
		texts: []string{
			"simple", "storage", "1", "Changed", "get", "set", "oldest", "newest", "0", "-1", "websockets", address, iface.ID.String(), "default", "a", "b", "uint256",
			"integer", "string", "address", "tuple", "blockchain_event_received", "(", "", " ", "\x00", "é", "\u2028", strings.Repeat("x", 300), "../..", "%2f", "'; DROP TABLE events; --",
		},
	}
	seen := map[int]int{}
	paths := doc.Paths.Map()
	for _, path := range slices.Sorted(maps.Keys(paths)) { // in order, so that a seed makes the same requests again
		item := paths[path]
		operations := item.Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			operation := operations[method]
			parameters := append(append(openapi3.Parameters{}, item.Parameters...), operation.Parameters...)
			for range rounds {
				r := m.request(t, s.url+"/api/v1", method, path, parameters, operation)
				response, err := s.http.Do(r)
				if err != nil {
					t.Fatalf("%s %s: %v", method, r.URL, err)
				}
				body, _ := io.ReadAll(response.Body)
				response.Body.Close()
				seen[response.StatusCode]++
				if response.StatusCode >= 500 {
					sent, _ := r.GetBody()
					content, _ := io.ReadAll(sent)
					t.Errorf("%s %s with %.500s answered %d: %s", method, r.URL, content, response.StatusCode, body)
				}
			}
		}
	}
	t.Logf("answers by status: %v", seen)
	if seen[200] == 0 || seen[400] == 0 || seen[404] == 0 {
		t.Errorf("the requests are too much of one kind: %v", seen)
	}
}

// maker makes requests.
type maker struct {
	rnd   *rand.Rand
	known map[string][]string // path parameters that lead somewhere
	texts []string
}

func (m maker) oneOf(list []string) string { return list[m.rnd.Intn(len(list))] }

// rarely is true once in n times.
func (m maker) rarely(n int) bool { return m.rnd.Intn(n) == 0 }

func (m maker) request(t *testing.T, base, method, path string, parameters openapi3.Parameters, operation *openapi3.Operation) *http.Request {
	t.Helper()
	query, header := url.Values{}, http.Header{}
	for _, ref := range parameters {
		p := ref.Value
		switch p.In {
		case openapi3.ParameterInPath:
			value := m.oneOf(m.texts)
			if list := m.known[p.Name]; len(list) > 0 && !m.rarely(8) {
				value = m.oneOf(list)
			}
			if value == "" || value == "../.." {
				value = "x"
			}
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(value))
		case openapi3.ParameterInQuery:
			if m.rarely(5) {
				query.Set(p.Name, fmt.Sprint(m.value(p.Schema, 0)))
			}
		case openapi3.ParameterInHeader:
			if m.rarely(5) {
				header.Set(p.Name, "key-"+strconv.Itoa(m.rnd.Intn(5)))
			}
		}
	}
	if m.rarely(20) {
		query.Set("unknown", "x")
	}
	var body []byte
	if operation.RequestBody != nil {
		header.Set("Content-Type", "application/json")
		var err error
		body, err = json.Marshal(m.value(operation.RequestBody.Value.Content["application/json"].Schema, 0))
		must(t, err)
		if m.rarely(12) && len(body) > 0 { // spoilt
			body[m.rnd.Intn(len(body))] = byte(m.rnd.Intn(256))
		}
	}
	address := base + path
	if len(query) > 0 {
		address += "?" + query.Encode()
	}
	r, err := http.NewRequestWithContext(t.Context(), method, address, bytes.NewReader(body))
	must(t, err)
	for name := range header {
		r.Header.Set(name, header.Get(name))
	}
	// Nothing of this test may wait long: what waits for a confirmation is told so.
	r.Header.Set("Request-Timeout", "20")
	return r
}

// value makes a JSON value for a schema; now and then one that does not fit.
func (m maker) value(ref *openapi3.SchemaRef, depth int) any {
	if ref == nil || ref.Value == nil || depth > 7 {
		return m.oneOf(m.texts)
	}
	if m.rarely(25) {
		return []any{nil, true, -1, 1e30, "", []any{}, map[string]any{}, json.Number("123456789012345678901234567890")}[m.rnd.Intn(8)]
	}
	schema := ref.Value
	switch {
	case schema.Type == nil:
		return []any{nil, true, 7, m.oneOf(m.texts), []any{1, "x"}, map[string]any{"k": "v"}}[m.rnd.Intn(6)]
	case schema.Type.Is("object"):
		out := map[string]any{}
		for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
			property := schema.Properties[name]
			required := false
			for _, r := range schema.Required {
				required = required || r == name
			}
			if required && !m.rarely(15) || !required && m.rarely(2) {
				out[name] = m.property(name, property, depth)
			}
		}
		if schema.AdditionalProperties.Has != nil && *schema.AdditionalProperties.Has && m.rarely(3) {
			out[m.oneOf([]string{"newValue", "value", "gas", "blockNumber", "x"})] = []any{1, "2", "0x3", -1, "x", nil}[m.rnd.Intn(6)]
		}
		return out
	case schema.Type.Is("array"):
		list := make([]any, m.rnd.Intn(3))
		for i := range list {
			list[i] = m.value(schema.Items, depth+1)
		}
		return list
	case schema.Type.Is("integer"), schema.Type.Is("number"):
		return []any{0, 1, 25, 250, 251, 65535, 65536, -1, 1.5}[m.rnd.Intn(9)]
	case schema.Type.Is("boolean"):
		return m.rarely(2)
	default:
		if schema.Format == "uuid" && !m.rarely(4) {
			return m.oneOf(m.known["interfaceId"])
		}
		return m.oneOf(m.texts)
	}
}

// property helps some properties to be useful often enough.
func (m maker) property(name string, ref *openapi3.SchemaRef, depth int) any {
	if m.rarely(4) {
		return m.value(ref, depth+1)
	}
	switch name {
	case "address":
		return m.texts[11]
	case "input":
		if ref.Value.Properties["abi"] == nil {
			return map[string]any{"newValue": m.rnd.Intn(10)}
		}
	case "abi":
		var abi []any
		if json.Unmarshal(contracts.SimpleStorage().ABI, &abi) == nil {
			return abi
		}
	case "name", "interfaceName":
		return m.oneOf([]string{"a", "b", "simple", "n" + strconv.Itoa(m.rnd.Intn(1000))})
	case "namespace":
		return ns
	}
	return m.value(ref, depth+1)
}
