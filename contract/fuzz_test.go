package contract_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
)

const fuzzABI = `[
 {"type":"function","name":"f","inputs":` + orderInputs + `,"outputs":[
	{"name":"a","type":"uint256[2][]"},{"name":"b","type":"tuple[]","components":[{"name":"s","type":"string"},{"name":"t","type":"bytes[]"},{"name":"u","type":"int24"}]},
	{"name":"c","type":"bytes7"},{"name":"d","type":"bool[3]"},{"name":"e","type":"function"},{"name":"g","type":"address"},{"name":"h","type":"uint8[0][]"}]},
 {"type":"event","name":"E","inputs":[{"name":"a","type":"string","indexed":true},{"name":"b","type":"int8","indexed":true},{"name":"c","type":"string"},{"name":"d","type":"tuple","components":[{"name":"x","type":"uint8[]"}]}]},
 {"type":"error","name":"X","inputs":[{"name":"a","type":"string"},{"name":"b","type":"uint8[]"}]}]`

func FuzzFromABI(f *testing.F) {
	f.Add([]byte(simpleABI))
	f.Add([]byte(fuzzABI))
	f.Add([]byte(`[{"name":"f","type":"function","inputs":[{"type":"tuple[2][]","components":[{"name":"","type":"uint"}]}]}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		iface, err := contract.FromABI(text)
		if err != nil {
			if pactwire.KindOf(err) != pactwire.KindInvalid {
				t.Fatalf("error is %v", err)
			}
			return
		}
		if _, err := contract.Compile(iface); err != nil {
			t.Fatalf("a generated interface does not compile: %v", err)
		}
		back, err := iface.ABI()
		if err != nil {
			t.Fatal(err)
		}
		again, err := contract.FromABI(back)
		if err != nil {
			t.Fatalf("%s is refused: %v", back, err)
		}
		if !reflect.DeepEqual(iface, again) {
			t.Fatalf("%s came back as %s", text, back)
		}
		iface.Name, iface.Version = "n", "1"
		if err := iface.Validate(); err != nil {
			t.Fatalf("a generated interface is not valid: %v", err)
		}
		iface.AssignPathnames()
		for i := range iface.Methods {
			for _, p := range iface.Methods[i].Params {
				_ = contract.Example(p.Schema)
			}
		}
	})
}

func FuzzEncode(f *testing.F) {
	for _, input := range []string{
		`{"order":{"id":1,"items":[{"sku":"a\u0041","price":255}]},"1":true,"2":"false"}`,
		`{"order":[1e3,[["\ud83d\ude00","0x1"]]],"1":true,"2":false}`, `[]`, `null`, `{"order":-1.5E+2}`,
	} {
		f.Add([]byte(input))
	}
	c := compileABI(f, fuzzABI)
	method, err := c.Method("f")
	if err != nil {
		f.Fatal(err)
	}
	// A twin whose outputs are its inputs reads back what was written.
	twin := method.Method
	twin.Returns = twin.Params
	reader, err := contract.CompileMethod(twin, nil)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		data, err := method.EncodeArgs(input)
		if err != nil {
			var e *pactwire.Error
			if !errors.As(err, &e) || e.Kind != pactwire.KindInvalid || len(e.Fields) == 0 {
				t.Fatalf("error is %v", err)
			}
			return
		}
		if !json.Valid(input) {
			t.Fatalf("%q is taken", input)
		}
		out, err := reader.DecodeOutput(data)
		if err != nil {
			t.Fatalf("our own data is refused: %v", err)
		}
		if !json.Valid(out) {
			t.Fatalf("output %q is no JSON", out)
		}
	})
}

func FuzzDecodeOutput(f *testing.F) {
	c := compileABI(f, fuzzABI)
	method, err := c.Method("f")
	if err != nil {
		f.Fatal(err)
	}
	theirs, err := abi.JSON(bytes.NewReader([]byte(fuzzABI)))
	if err != nil {
		f.Fatal(err)
	}
	outputs := theirs.Methods["f"].Outputs
	f.Add(exampleData(f, method.Method.Returns))
	f.Fuzz(func(t *testing.T, data []byte) {
		_ = c.Errors.Decode(data)
		out, err := method.DecodeOutput(data)
		if err != nil {
			if kind := pactwire.KindOf(err); kind != pactwire.KindBadUpstream && len(data) > 0 {
				t.Fatalf("error is %v", err)
			}
			return
		}
		if !json.Valid(out) {
			t.Fatalf("output %q is no JSON", out)
		}
		if len(data) < 1<<12 {
			if _, err := outputs.Unpack(data); err != nil {
				t.Logf("go-ethereum refuses what we read: %v", err) // zero-length arrays, whose emptiness it doubts
			}
		}
	})
}

func FuzzDecodeLog(f *testing.F) {
	c := compileABI(f, fuzzABI)
	event, err := c.Event("E")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(make([]byte, 32), make([]byte, 32), exampleData(f, event.Event.Params[2:]))
	f.Fuzz(func(t *testing.T, first, second, data []byte) {
		out, err := event.DecodeLog([]common.Hash{event.Topic0, common.BytesToHash(first), common.BytesToHash(second)}, data)
		if err != nil {
			if pactwire.KindOf(err) != pactwire.KindBadUpstream {
				t.Fatalf("error is %v", err)
			}
			return
		}
		var values map[string]any
		if err := json.Unmarshal(out, &values); err != nil || len(values) != 4 {
			t.Fatalf("log %q: %v", out, err)
		}
		if bytes.Contains(out, []byte(`\u0000`)) || bytes.IndexByte(out, 0) >= 0 {
			t.Fatalf("%q holds a NUL", out)
		}
	})
}

// exampleData encodes the example of each parameter.
func exampleData(f *testing.F, params []contract.Param) []byte {
	f.Helper()
	method, err := contract.CompileMethod(contract.Method{Name: "example", Params: params}, nil)
	if err != nil {
		f.Fatal(err)
	}
	input := make(map[string]json.RawMessage, len(params))
	for i, p := range params {
		input[contract.InputName(params, i)] = contract.Example(p.Schema)
	}
	text, err := json.Marshal(input)
	if err != nil {
		f.Fatal(err)
	}
	data, err := method.EncodeArgs(text)
	if err != nil {
		f.Fatal(err)
	}
	return data
}
