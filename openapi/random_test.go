package openapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/openapi"
)

// entry is a part of an ABI.
type entry map[string]any

// identifiers meet one another often, up to case and punctuation, and what generators derive from names.
var identifiers = rapid.OneOf(
	rapid.SampledFrom([]string{
		"a", "A", "_a", "a_", "a$", "$", "$$", "_", "__", "aB", "a_b", "A_B", "ab", "_1", "n1", "N1", "get", "getWithBody", "GetWithResponse",
		"getParams", "getResponse", "Error", "Client", "Location", "QueryOptions", "input", "output", "type", "body", "string", "Get_input", "get_Input",
	}),
	rapid.StringMatching(`[a-zA-Z_$][a-zA-Z0-9_$]{0,8}`),
)

var elementary = rapid.OneOf(
	rapid.SampledFrom([]string{"bool", "address", "string", "bytes", "function", "uint", "int", "uint8", "int8", "uint32", "int32", "int40", "uint256"}),
	rapid.Map(rapid.IntRange(1, 32), func(n int) string { return fmt.Sprintf("bytes%d", n) }),
	rapid.Map(rapid.IntRange(1, 32), func(n int) string { return fmt.Sprintf("uint%d", 8*n) }),
)

func params(t *rapid.T, depth, most int, indexed bool) []entry {
	out := make([]entry, rapid.IntRange(0, most).Draw(t, "params"))
	for i := range out {
		p := entry{"name": rapid.OneOf(rapid.Just(""), identifiers).Draw(t, "name"), "type": elementary.Draw(t, "type")}
		if depth > 0 && rapid.IntRange(0, 3).Draw(t, "tuple") == 0 {
			components := params(t, depth-1, 3, false)
			if len(components) > 0 {
				p["type"], p["components"] = "tuple", components
				if rapid.Bool().Draw(t, "named") {
					p["internalType"] = "struct " + rapid.OneOf(rapid.Just("Lib.Point"), identifiers).Draw(t, "struct")
				}
			}
		}
		dims := rapid.SampledFrom([]string{"", "", "", "[]", "[2]", "[0]", "[3][]"}).Draw(t, "dims")
		p["type"] = p["type"].(string) + dims
		if internal, ok := p["internalType"].(string); ok {
			p["internalType"] = internal + dims
		}
		if indexed {
			p["indexed"] = i < 2
		}
		out[i] = p
	}
	return out
}

var abis = rapid.Custom(func(t *rapid.T) []byte {
	var entries []entry
	for range rapid.IntRange(0, 8).Draw(t, "functions") {
		entries = append(entries, entry{
			"type": "function", "name": identifiers.Draw(t, "name"), "inputs": params(t, 3, 4, false), "outputs": params(t, 2, 3, false),
			"stateMutability": rapid.SampledFrom([]string{"view", "pure", "nonpayable", "payable"}).Draw(t, "mutability"),
		})
	}
	for range rapid.IntRange(0, 3).Draw(t, "events") {
		entries = append(entries, entry{"type": "event", "name": identifiers.Draw(t, "name"), "inputs": params(t, 1, 3, true)})
	}
	abi, err := json.Marshal(entries)
	if err != nil {
		panic(err)
	}
	return abi
})

// randomSubject is false where chance made an interface that is refused, such as one with the same signature twice.
func randomSubject(abi []byte, located bool) (openapi.Subject, bool) {
	if string(abi) == "null" {
		abi = []byte("[]")
	}
	definition, err := contract.FromABI(abi)
	if err != nil {
		return openapi.Subject{}, false
	}
	definition.Name, definition.Version = "random", "1"
	if err := definition.Validate(); err != nil {
		return openapi.Subject{}, false
	}
	definition.AssignPathnames()
	return openapi.Subject{Name: "random", Server: server + "random", Located: located, Interface: definition}, true
}

func TestAnyInterfaceGivesAUsableDocument(t *testing.T) {
	built := 0
	rapid.Check(t, func(rt *rapid.T) {
		s, ok := randomSubject(abis.Draw(rt, "abi"), rapid.Bool().Draw(rt, "located"))
		if !ok {
			return
		}
		built++
		body, err := openapi.Build(s)
		if err != nil {
			rt.Fatal(err)
		}
		if again, err := openapi.Build(s); err != nil || !bytes.Equal(body, again) {
			rt.Fatalf("the same subject gave another document (%v)", err)
		}
		if bytes.Contains(body, []byte(`"oneOf"`)) {
			rt.Fatal("the document has a oneOf")
		}
		tb := rapidTB{TB: t, rt: rt}
		doc := load(tb, body)
		checkExamples(tb, s, doc)
		seen := map[string]string{}
		claim := func(name, what string) {
			key := strings.ToLower(strings.ReplaceAll(name, "_", ""))
			if first, again := seen[key]; again {
				rt.Fatalf("%s and %s cannot be told apart", first, what)
			}
			seen[key] = what
		}
		for path, item := range doc.Paths.Map() {
			for method, o := range item.Operations() {
				claim(o.OperationID, method+" "+path)
				claim(o.OperationID+"Params", method+" "+path+" parameters")
				claim(o.OperationID+"WithBody", method+" "+path+" with any body")
			}
		}
		for name := range doc.Components.Schemas {
			claim(name, "schema "+name)
		}
	})
	if built == 0 {
		t.Error("no interface was usable")
	}
}

// rapidTB lets functions that take a testing.TB fail a property, so that it is shrunk.
type rapidTB struct {
	testing.TB
	rt *rapid.T
}

func (r rapidTB) Helper()                           { r.rt.Helper() }
func (r rapidTB) Errorf(format string, args ...any) { r.rt.Errorf(format, args...) }
func (r rapidTB) Fatalf(format string, args ...any) { r.rt.Fatalf(format, args...) }
func (r rapidTB) Fatal(args ...any)                 { r.rt.Fatal(args...) }
