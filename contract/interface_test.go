package contract_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
)

func TestFromABI(t *testing.T) {
	iface, err := contract.FromABI(json.RawMessage(`[
		{"name":"old","constant":true,"payable":false,"inputs":[{"name":"a","type":"uint","indexed":true}]},
		{"type":"function","name":"pay","payable":true,"inputs":[]},
		{"type":"function","name":"set","constant":false,"payable":false,"inputs":[{"name":"","type":"tuple[2][]","internalType":"struct C.P[2][]","components":[{"name":"","type":"byte"},{"name":"y","type":"int"}]}]},
		{"type":"function","name":"unknown","inputs":[]},
		{"type":"function","name":"old","inputs":[{"name":"other","type":"uint256"}]},
		{"type":"fallback"},{"type":"receive","stateMutability":"payable"},{"type":"constructor","inputs":[{"name":"x","type":"nonsense"}]},
		{"type":"event","name":"E","inputs":[{"name":"a","type":"address","indexed":true}]},
		{"type":"event","name":"E","inputs":[{"name":"a","type":"address","indexed":false}]},
		{"type":"error","name":"X","inputs":[]}]`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(iface)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"","description":"","version":"","methods":[
		{"name":"old","pathname":"","description":"","params":[{"name":"a","schema":{"type":"integer","details":{"type":"uint256"}}}],"returns":[],"details":{"stateMutability":"view"}},
		{"name":"pay","pathname":"","description":"","params":[],"returns":[],"details":{"stateMutability":"payable"}},
		{"name":"set","pathname":"","description":"","params":[{"name":"","schema":{"type":"array","details":{"type":"tuple[2][]","internalType":"struct C.P[2][]"},
			"items":{"type":"array","details":{"type":"tuple[2]"},"items":{"type":"object","details":{"type":"tuple"},"properties":{
				"0":{"type":"string","details":{"type":"bytes1","index":0}},"y":{"type":"integer","details":{"type":"int256","index":1}}}}}}}],"returns":[],"details":{"stateMutability":"nonpayable"}},
		{"name":"unknown","pathname":"","description":"","params":[],"returns":[]}],
		"events":[{"pathname":"","name":"E","description":"","params":[{"name":"a","schema":{"type":"string","details":{"type":"address","indexed":true}}}]},
			{"pathname":"","name":"E","description":"","params":[{"name":"a","schema":{"type":"string","details":{"type":"address"}}}]}],
		"errors":[{"pathname":"","name":"X","description":"","params":[]}]}`
	var a, b any
	if err := errors.Join(json.Unmarshal(got, &a), json.Unmarshal([]byte(want), &b)); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("interface is\n%s", got)
	}
	c, err := contract.Compile(iface)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string][3]any{
		"old":                        {"old(uint256)", false, true},
		"pay":                        {"pay()", true, false},
		"set":                        {"set((bytes1,int256)[2][])", false, false},
		"set((bytes1, int256)[2][])": {"set((bytes1,int256)[2][])", false, false},
		"unknown":                    {"unknown()", true, false},
	} {
		m, err := c.Method(path)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := [3]any{m.Signature, m.Payable(), m.ReadOnly()}; got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	if _, err := c.Event("E_1"); err != nil {
		t.Error(err)
	}
}

func TestFromABIRefusals(t *testing.T) {
	deep := `{"name":"x","type":"uint8"}`
	for range 40 {
		deep = `{"name":"x","type":"tuple","components":[` + deep + `]}`
	}
	function := func(input string) string { return `[{"type":"function","name":"f","inputs":[` + input + `]}]` }
	tests := []struct{ abi, path, message string }{
		{``, "input.abi", "must be an array"},
		{`null`, "input.abi", "must be an array"},
		{`{}`, "input.abi", "must be an array"},
		{`[{]`, "input.abi", "must be an array"},
		{`[5]`, "input.abi[0]", "must be an object"},
		{`[{"type":"fallback"},null]`, "input.abi[1]", "must be an object"},
		{`[{"type":"thing"}]`, "input.abi[0].type", `"thing"`},
		{`[{"type":"function","inputs":[]}]`, "input.abi[0].name", "identifier"},
		{`[{"type":"function","name":"a b","inputs":[]}]`, "input.abi[0].name", "identifier"},
		{`[{"type":"function","name":5}]`, "input.abi[0].name", "number"},
		{function(`{"name":"x","type":"fixed128x18"}`), "input.abi[0].inputs[0].type", "fixed-point"},
		{function(`{"name":"x","type":"ufixed"}`), "input.abi[0].inputs[0].type", "fixed-point"},
		{function(`{"name":"x","type":"uint7"}`), "input.abi[0].inputs[0].type", "8 to 256"},
		{function(`{"name":"x","type":"uint0"}`), "input.abi[0].inputs[0].type", "8 to 256"},
		{function(`{"name":"x","type":"uint08"}`), "input.abi[0].inputs[0].type", "8 to 256"},
		{function(`{"name":"x","type":"int264"}`), "input.abi[0].inputs[0].type", "8 to 256"},
		{function(`{"name":"x","type":"bytes33"}`), "input.abi[0].inputs[0].type", "bytes1 to bytes32"},
		{function(`{"name":"x","type":"bytes0"}`), "input.abi[0].inputs[0].type", "bytes1 to bytes32"},
		{function(`{"name":"x","type":"IERC20"}`), "input.abi[0].inputs[0].type", "no native type"},
		{function(`{"name":"x","type":""}`), "input.abi[0].inputs[0].type", "no native type"},
		{function(`{"name":"x","type":"uint8[2"}`), "input.abi[0].inputs[0].type", "brackets"},
		{function(`{"name":"x","type":"uint8[]x[]"}`), "input.abi[0].inputs[0].type", "brackets"},
		{function(`{"name":"x","type":"uint8[-1]"}`), "input.abi[0].inputs[0].type", "length"},
		{function(`{"name":"x","type":"uint8[99999999999999999999]"}`), "input.abi[0].inputs[0].type", "length"},
		{function(`{"name":"x","type":"uint8[60000][60000]"}`), "input.abi[0].inputs[0].type", "takes more than"},
		{function(`{"name":"x","type":"string[8000000]"}`), "input.abi[0].inputs[0].type", "takes more than"},
		{function(`{"name":"x","type":"uint8` + strings.Repeat("[]", 40) + `"}`), "input.abi[0].inputs[0].type", "nested"},
		{function(`{"name":"a","type":"bool"},{"name":"x","type":"tuple"}`), "input.abi[0].inputs[1].components", "components"},
		{function(`{"name":"x","type":"tuple","components":[{"name":"y","type":"what"}]}`), "input.abi[0].inputs[0].components[0].type", "no native type"},
		{function(`{"name":"0","type":"bool"}`), "input.abi[0].inputs[0].name", "cannot name"},
		{`[{"type":"function","name":"f","inputs":[],"outputs":[{"type":"x"}]}]`, "input.abi[0].outputs[0].type", "no native type"},
		{`[{"type":"function","name":"f","stateMutability":"free"}]`, "input.abi[0].stateMutability", "pure, view"},
		{`[{"type":"event","name":"E","inputs":[` + strings.Repeat(`{"type":"bool","indexed":true},`, 3) + `{"type":"bool","indexed":true}]}]`, "input.abi[0].inputs", "at most 3"},
	}
	for _, test := range tests {
		_, err := contract.FromABI(json.RawMessage(test.abi))
		if err == nil {
			t.Errorf("%.200s is taken", test.abi)
			continue
		}
		wantField(t, err, test.path, test.message)
	}
	_, err := contract.FromABI(json.RawMessage(function(deep)))
	var e *pactwire.Error
	if !errors.As(err, &e) || !strings.Contains(e.Message, "nested") {
		t.Errorf("deep tuple: %v", err)
	}
}

// A short type text stands for up to 32 schemas; a request of some megabytes must not become gigabytes.
func TestFromABIIsBounded(t *testing.T) {
	input := `{"name":"","type":"uint8` + strings.Repeat("[]", 30) + `"}`
	entry := func(i int) string {
		return fmt.Sprintf(`{"type":"function","name":"f%d","inputs":[%s%s]}`, i, strings.Repeat(input+",", 999), input)
	}
	var entries []string
	for i := range 10 {
		entries = append(entries, entry(i))
	}
	_, err := contract.FromABI(json.RawMessage("[" + strings.Join(entries, ",") + "]"))
	wantField(t, err, "input.abi", "more than")
	_, err = contract.FromABI(json.RawMessage("[" + entry(0)[:len(entry(0))-2] + "," + input + "]}]"))
	wantField(t, err, "input.abi[0].inputs", "more than 1000")
}

func TestAssignPathnames(t *testing.T) {
	var iface contract.Interface
	for _, name := range []string{"f", "f", "f_1", "f", "g", "f_1"} {
		iface.Methods = append(iface.Methods, contract.Method{Name: name, Pathname: "old"})
		iface.Events = append(iface.Events, contract.Event{Name: name})
		iface.Errors = append(iface.Errors, contract.Error{Name: name})
	}
	iface.AssignPathnames()
	for i, want := range []string{"f", "f_2", "f_1", "f_3", "g", "f_1_1"} {
		if iface.Methods[i].Pathname != want || iface.Events[i].Pathname != want || iface.Errors[i].Pathname != want {
			t.Errorf("pathname %d is %s, want %s", i, iface.Methods[i].Pathname, want)
		}
	}
}

func TestValidateFillsIn(t *testing.T) {
	// As FireFly writes it: oneOf in place of type for integers, no details on items.
	var iface contract.Interface
	err := json.Unmarshal([]byte(`{"name":"My.Contract-1","version":"v1.0 (beta)","methods":[{"name":"f","params":[
		{"name":"n","schema":{"oneOf":[{"type":"string"},{"type":"integer"}],"details":{"type":"uint"}}},
		{"name":"s","schema":{"type":"string","details":{"type":"int8"}}},
		{"name":"l","schema":{"type":"array","details":{"type":"tuple[][2]"},"items":{"type":"array","items":{"type":"object","properties":{
			"b":{"details":{"type":"bool","index":1}},"a":{"type":"string","details":{"type":"bytes","index":0}}}}}}}]}]}`), &iface)
	if err != nil {
		t.Fatal(err)
	}
	if err := iface.Validate(); err != nil {
		t.Fatal(err)
	}
	m := iface.Methods[0]
	if m.Params[0].Schema.Type != "integer" || m.Params[0].Schema.Details.Type != "uint256" || m.Params[1].Schema.Type != "string" {
		t.Errorf("integers are %+v and %+v", m.Params[0].Schema, m.Params[1].Schema)
	}
	inner := m.Params[2].Schema.Items
	if inner.Details.Type != "tuple[]" || inner.Items.Details.Type != "tuple" || inner.Items.Properties["b"].Type != "boolean" {
		t.Errorf("items are not completed: %+v", inner)
	}
	if iface.Events == nil || iface.Errors == nil || m.Returns == nil {
		t.Error("lists are nil")
	}
	c, err := contract.Compile(iface)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Method("f(uint256,int8,(bytes,bool)[][2])"); err != nil {
		t.Error(err)
	}
}

func TestValidateRefusals(t *testing.T) {
	one := func(schema string) string {
		return `"methods":[{"name":"f","params":[{"name":"a","schema":` + schema + `}]}]`
	}
	tests := []struct{ part, path, message string }{
		{`"name":"-x"`, "name", "letters"},
		{`"name":"` + strings.Repeat("x", 65) + `"`, "name", "64"},
		{`"version":""`, "version", "printable"},
		{`"version":"a\u0000"`, "version", "printable"},
		{`"methods":[{"name":"1f"}]`, "methods[0].name", "identifier"},
		{`"methods":[{"name":"f","details":{"stateMutability":"x"}}]`, "methods[0].details.stateMutability", "pure"},
		{`"methods":[{"name":"f","params":[{"name":"a"}]}]`, "methods[0].params[0].schema", "required"},
		{one(`{"type":"integer"}`), "methods[0].params[0].schema.details.type", "required"},
		{one(`{"details":{"type":"fixed"}}`), "methods[0].params[0].schema.details.type", "fixed-point"},
		{one(`{"type":"boolean","details":{"type":"uint256"}}`), "methods[0].params[0].schema.type", "needs integer"},
		{one(`{"type":"string","details":{"type":"uint256[]"}}`), "methods[0].params[0].schema.type", "needs array"},
		{one(`{"type":"array","details":{"type":"uint256[]"}}`), "methods[0].params[0].schema.items", "required"},
		{one(`{"type":"array","details":{"type":"uint256[]"},"items":{"type":"string","details":{"type":"bytes"}}}`), "methods[0].params[0].schema.items.details.type", "holds uint256"},
		{one(`{"type":"array","details":{"type":"uint256[]"},"items":{"type":"object"}}`), "methods[0].params[0].schema.items.type", "needs integer"},
		{one(`{"type":"object","details":{"type":"tuple"}}`), "methods[0].params[0].schema.properties", "required"},
		{one(`{"type":"object","details":{"type":"tuple"},"properties":{"x":null}}`), "methods[0].params[0].schema.properties.x", "required"},
		{one(`{"type":"object","details":{"type":"tuple"},"properties":{"x":{"details":{"type":"bool"}}}}`), "methods[0].params[0].schema.properties.x.details.index", "required"},
		{one(`{"type":"object","details":{"type":"tuple"},"properties":{"x":{"details":{"type":"bool","index":1}}}}`), "methods[0].params[0].schema.properties.x.details.index", "from 0 to 0"},
		{one(`{"type":"object","details":{"type":"tuple"},"properties":{"x":{"details":{"type":"bool","index":0}},"y":{"details":{"type":"bool","index":0}}}}`), "methods[0].params[0].schema.properties.y.details.index", "also the index of x"},
		{one(`{"type":"object","details":{"type":"tuple"},"properties":{"1":{"details":{"type":"bool","index":0}}}}`), "methods[0].params[0].schema.properties.1", "no name"},
		{one(`{"type":"object","details":{"type":"tuple"},"properties":{"":{"details":{"type":"bool","index":0}}}}`), "methods[0].params[0].schema.properties.", "no name"},
		{`"methods":[{"name":"f"},{"name":"g"},{"name":"f"}]`, "methods[2].name", "same method as methods[0]"},
		{`"events":[{"name":"f"},{"name":"f"}]`, "events[1].name", "same event"},
		{`"errors":[{"name":"f"},{"name":"f"}]`, "errors[1].name", "same error"},
		{`"events":[{"name":"e","params":[` + strings.Repeat(`{"name":"","schema":{"details":{"type":"bool","indexed":true}}},`, 3) + `{"name":"","schema":{"details":{"type":"bool","indexed":true}}}]}]`, "events[0].params", "at most 3"},
	}
	for _, test := range tests {
		var iface contract.Interface
		if err := json.Unmarshal([]byte(`{"name":"n","version":"1",`+test.part+`}`), &iface); err != nil {
			t.Fatal(err)
		}
		err := iface.Validate()
		if err == nil {
			t.Errorf("%s is valid", test.part)
			continue
		}
		wantField(t, err, test.path, test.message)
	}
	iface := contract.Interface{Name: "n", Version: "1", Methods: make([]contract.Method, 100)}
	var e *pactwire.Error
	if err := iface.Validate(); !errors.As(err, &e) || len(e.Fields) != 20 {
		t.Errorf("%v, want 20 fields", err)
	}
}

func TestInlineErrorsNameTheMethod(t *testing.T) {
	_, err := contract.CompileMethod(contract.Method{Name: "f", Params: []contract.Param{{Name: "a", Schema: &contract.Schema{}}}}, nil)
	wantField(t, err, "method.params[0].schema.details.type", "required")
	_, err = contract.CompileEvent(contract.Event{})
	wantField(t, err, "event.name", "identifier")
}

func TestNotFoundHints(t *testing.T) {
	c := compileABI(t, simpleABI)
	for wanted, hint := range map[string]string{
		"Get": "did you mean get, set?", "sett": "did you mean set", "set(uint8)": "did you mean set", "transfer": "in the interface",
		strings.Repeat("x", 5000): "…",
	} {
		_, err := c.Method(wanted)
		var e *pactwire.Error
		if !errors.As(err, &e) || e.Kind != pactwire.KindNotFound || e.Code != "method_not_found" || !strings.Contains(e.Message, hint) || len(e.Message) > 300 {
			t.Errorf("%.20s: %v", wanted, err)
		}
	}
	_, err := c.Event("changed")
	var e *pactwire.Error
	if !errors.As(err, &e) || e.Code != "event_not_found" || !strings.Contains(e.Message, "did you mean Changed?") {
		t.Errorf("event: %v", err)
	}
}

func TestValidName(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a.b-c_d": true, "0": true, strings.Repeat("x", 64): true,
		"": false, "a-": false, ".a": false, "a b": false, "é": false, strings.Repeat("x", 65): false, "a/b": false, "a\n": false,
	} {
		if contract.ValidName(name) != want {
			t.Errorf("ValidName(%q) is not %v", name, want)
		}
	}
}
