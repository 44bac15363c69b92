package contract_test

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
)

// methodOf makes a method f with parameters given as an ABI's inputs.
func methodOf(t testing.TB, inputs string) *contract.CompiledMethod {
	t.Helper()
	c := compileABI(t, `[{"type":"function","name":"f","inputs":`+inputs+`,"outputs":`+inputs+`}]`)
	m, err := c.Method("f")
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// wantField checks that an error is the caller's mistake about one field.
func wantField(t *testing.T, err error, path, message string) {
	t.Helper()
	var e *pactwire.Error
	if !errors.As(err, &e) {
		t.Fatalf("error is %v (%T), want a *pactwire.Error", err, err)
	}
	if e.Kind != pactwire.KindInvalid || len(e.Fields) == 0 {
		t.Fatalf("error is %+v, want an invalid one with fields", e)
	}
	if e.Fields[0].Path != path || !strings.Contains(e.Fields[0].Message, message) {
		t.Errorf("field is %q: %q, want %q: …%s…", e.Fields[0].Path, e.Fields[0].Message, path, message)
	}
}

func TestEncodeValues(t *testing.T) {
	const (
		zeros = "0000000000000000000000000000000000000000000000000000000000000000"
		ones  = "ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff"
	)
	word := func(end string) string { return zeros[len(end):] + end }
	left := func(start string) string { return start + zeros[len(start):] }
	tests := []struct{ typ, value, want string }{
		{"uint256", `5`, word("05")},
		{"uint256", `"5"`, word("05")},
		{"uint256", `"007"`, word("07")},
		{"uint256", `"0x00ff"`, word("ff")},
		{"uint256", `"0XFF"`, word("ff")},
		{"uint256", `1e18`, word("0de0b6b3a7640000")},
		{"uint256", `1.5e1`, word("0f")},
		{"uint256", `2.0`, word("02")},
		{"uint256", `100e-2`, word("01")},
		{"uint256", `0e999999999`, word("00")},
		{"uint256", `-0`, word("00")},
		{"uint256", `115792089237316195423570985008687907853269984665640564039457584007913129639935`, ones},
		{"uint256", `"0x` + ones + `"`, ones},
		{"uint256", `"` + strings.Repeat("0", 5000) + `9"`, word("09")},
		{"uint256", `"9007199254740993"`, word("20000000000001")},
		{"uint256", `9007199254740993`, word("20000000000001")}, // a float64 would make 992 of it
		{"int8", `-128`, ones[:62] + "80"},
		{"int8", `127`, word("7f")},
		{"int256", `-1`, ones},
		{"int256", `"-0x1"`, ones},
		{"int256", `"-57896044618658097711785492504343953926634992332820282019728792003956564819968"`, left("80")},
		{"int24", `-8388608`, ones[:58] + "800000"},
		{"bool", `true`, word("01")},
		{"bool", `"true"`, word("01")},
		{"bool", `"false"`, word("")},
		{"address", `"5fbdb2315678afecb367f032d93f642f64180aa3"`, word("5fbdb2315678afecb367f032d93f642f64180aa3")},
		{"address", `"0x5FbDB2315678afecb367f032d93F642f64180aa3"`, word("5fbdb2315678afecb367f032d93f642f64180aa3")},
		{"address", `"0X5FBDB2315678AFECB367F032D93F642F64180AA3"`, word("5fbdb2315678afecb367f032d93f642f64180aa3")},
		{"bytes3", `"0x010203"`, left("010203")},
		{"bytes3", `"0\u007801\u00302\u00303"`, left("010203")},
		{"byte", `"fF"`, left("ff")},
		{"function", `"0x0102030405060708090a0b0c0d0e0f101112131415161718"`, left("0102030405060708090a0b0c0d0e0f101112131415161718")},
		{"bytes", `"0x0102"`, word("20") + word("02") + left("0102")},
		{"bytes", `""`, word("20") + word("")},
		{"string", `"a\u00e9\n\ud83d\ude00"`, word("20") + word("08") + left("61c3a90af09f9880")},
		{"string", `"\u0000"`, word("20") + word("01") + word("")},
		{"uint8[]", `[]`, word("20") + word("")},
		{"uint8[2]", `[1,"2"]`, word("01") + word("02")},
		{"uint8[0][]", `[[],[]]`, word("20") + word("02")},
		{"string[1]", `["a"]`, word("20") + word("20") + word("01") + left("61")},
	}
	for _, test := range tests {
		m := methodOf(t, fmt.Sprintf(`[{"name":"x","type":%q}]`, test.typ))
		got, err := m.EncodeArgs(json.RawMessage(`{"x":` + test.value + `}`))
		if err != nil {
			t.Errorf("%s %.80s: %v", test.typ, test.value, err)
			continue
		}
		if hex.EncodeToString(got) != test.want {
			t.Errorf("%s %.80s\ngot  %x\nwant %s", test.typ, test.value, got, test.want)
		}
	}
}

func TestEncodeRefusesBadValues(t *testing.T) {
	tests := []struct{ typ, value, message string }{
		{"uint8", `256`, "uint8 goes from 0 to 255"},
		{"uint8", `-1`, "out of range"},
		{"uint8", `"0x100"`, "out of range"},
		{"int8", `128`, "int8 goes from -128 to 127"},
		{"int8", `-129`, "out of range"},
		{"int8", `-384`, "out of range"}, // 384 ends in as many zero bits as 128
		{"uint256", `115792089237316195423570985008687907853269984665640564039457584007913129639936`, "out of range"},
		{"uint256", `115792089237316195423570985008687907853269984665640564039457584007913129639941`, "out of range"}, // 2^256+5, which go-ethereum packs as 5
		{"int256", `57896044618658097711785492504343953926634992332820282019728792003956564819968`, "out of range"},
		{"int256", `-57896044618658097711785492504343953926634992332820282019728792003956564819969`, "out of range"},
		{"uint256", `1e78`, "out of range"},
		{"uint256", `1e999999999`, "out of range"},
		{"uint256", `1e99999999999999999999999999`, "out of range"},
		{"uint256", `"0x1` + strings.Repeat("0", 64) + `"`, "out of range"},
		{"uint256", `1.5`, "must be an integer"},
		{"uint256", `1e-1`, "must be an integer"},
		{"uint256", `1e-99999999999999999999999999`, "must be an integer"},
		{"uint256", `"1e18"`, "must be an integer"},
		{"uint256", `"+5"`, "must be an integer"},
		{"uint256", `" 5"`, "must be an integer"},
		{"uint256", `"0x"`, "must be an integer"},
		{"uint256", `"-"`, "must be an integer"},
		{"uint256", `"0xg"`, "must be an integer"},
		{"uint256", `""`, "must be an integer"},
		{"uint256", `true`, "must be an integer"},
		{"uint256", `[1]`, "must be an integer"},
		{"uint256", `null`, "must not be null"},
		{"bool", `1`, "true or false"},
		{"bool", `"TRUE"`, "true or false"},
		{"bool", `null`, "must not be null"},
		{"address", `"0x5fbdb2315678afecb367f032d93f642f64180aa"`, "20 bytes of hex"},
		{"address", `"0x5fbdb2315678afecb367f032d93f642f64180aag"`, "20 bytes of hex"},
		{"address", `"0x5fBDB2315678afecb367f032d93F642f64180aa3"`, "checksum"},
		{"address", `5`, "20 bytes of hex"},
		{"bytes4", `"0x010203"`, "exactly 4 bytes"},
		{"bytes4", `"0x0102030405"`, "exactly 4 bytes"},
		{"bytes4", `"0x0102030g"`, "hex digits"},
		{"bytes", `"0x1"`, "odd"},
		{"bytes", `"0xzz"`, "hex digits"},
		{"bytes", `[1,2]`, "hex digits"},
		{"function", `"0x01"`, "exactly 24 bytes"},
		{"string", `5`, "must be a string"},
		{"string", `"\ud800"`, "Unicode"},
		{"string", `"\udc00\ud800"`, "Unicode"},
		{"string", "\"\xff\"", "Unicode"},
		{"uint8[]", `{}`, "must be an array"},
		{"uint8[2]", `[1]`, "must have 2 elements, has 1"},
		{"uint8[2]", `[1,2,3]`, "must have 2 elements, has 3"},
		{"string[2]", `["a"]`, "must have 2 elements"},
	}
	for _, test := range tests {
		m := methodOf(t, fmt.Sprintf(`[{"name":"x","type":%q}]`, test.typ))
		got, err := m.EncodeArgs(json.RawMessage(`{"x":` + test.value + `}`))
		if err == nil {
			t.Errorf("%s takes %s as %x", test.typ, test.value, got)
			continue
		}
		wantField(t, err, "input.x", test.message)
	}
}

const orderInputs = `[{"name":"order","type":"tuple","components":[
	{"name":"id","type":"uint64"},
	{"name":"items","type":"tuple[]","components":[{"name":"sku","type":"string"},{"name":"price","type":"uint8"}]}]},
	{"name":"","type":"bool"},{"name":"order","type":"bool"}]`

func TestEncodeNamesTheNestedField(t *testing.T) {
	m := methodOf(t, orderInputs)
	if m.Signature != "f((uint64,(string,uint8)[]),bool,bool)" {
		t.Errorf("signature is %s", m.Signature)
	}
	tests := []struct{ input, path, message string }{
		{`{"order":{"id":1,"items":[{"sku":"a","price":1},{"sku":"a","price":1},{"sku":"b","price":256}]},"1":true,"2":true}`, "input.order.items[2].price", "0 to 255"},
		{`{"order":[1,[["a",1],["b",256]]],"1":true,"2":true}`, "input.order.items[1].price", "0 to 255"},
		{`{"order":[1,[["a"]]],"1":true,"2":true}`, "input.order.items[0]", "2 elements"},
		{`{"order":{"id":1,"items":[{"sku":"a"}]},"1":true,"2":true}`, "input.order.items[0].price", "required (uint8)"},
		{`{"order":{"id":1,"items":[{"sku":"a","price":1,"colour":2}]},"1":true,"2":true}`, "input.order.items[0].colour", "known are sku, price"},
		{`{"order":{"id":1,"id":1,"items":[]},"1":true,"2":true}`, "input.order.id", "twice"},
		{`{"order":{"id":1,"\u0069d":1,"items":[]},"1":true,"2":true}`, "input.order.id", "twice"},
		{`{"order":5,"1":true,"2":true}`, "input.order", "members id, items"},
		{`{"order":{"id":1,"items":null},"1":true,"2":true}`, "input.order.items", "null"},
		{`{"order":{"id":1,"items":[]},"2":true}`, "input.1", "required (bool)"},
		{`{"order":{"id":1,"items":[]},"1":true,"2":true,"3":true}`, "input.3", "unknown"},
		{`[[1,[]],true,true]`, "input", "must be an object"},
		{`null`, "input", "must be an object"},
		{``, "input.order", "required"},
		{`{"order":`, "input", "no valid JSON"},
		{`{} {}`, "input", "no valid JSON"},
	}
	for _, test := range tests {
		_, err := m.Encode(json.RawMessage(test.input))
		if err == nil {
			t.Errorf("%s is taken", test.input)
			continue
		}
		wantField(t, err, test.path, test.message)
	}
	if _, err := m.Encode(json.RawMessage(`{"2":false,"order":{"items":[["a",1],{"price":2,"sku":"b"}],"id":"0x1"},"1":"true"}`)); err != nil {
		t.Error(err)
	}
}

// Tuples with many fields look their keys up in another way.
func TestEncodeManyParameters(t *testing.T) {
	var inputs, forward, backward, want []string
	for i := range 40 {
		inputs = append(inputs, fmt.Sprintf(`{"name":"p%d","type":"uint8"}`, i))
		forward = append(forward, fmt.Sprintf(`"p%d":%d`, i, i))
		backward = append([]string{forward[i]}, backward...)
		want = append(want, word(byte(i)))
	}
	m := methodOf(t, "["+strings.Join(inputs, ",")+"]")
	for _, members := range [][]string{forward, backward} {
		got, err := m.EncodeArgs(json.RawMessage("{" + strings.Join(members, ",") + "}"))
		if err != nil {
			t.Fatal(err)
		}
		if hex.EncodeToString(got) != strings.Join(want, "") {
			t.Errorf("encoded as %x", got)
		}
	}
	_, err := m.EncodeArgs(json.RawMessage("{" + strings.Join(append(forward, `"p40":1`), ",") + "}"))
	wantField(t, err, "input.p40", "unknown; known are p0, p1")
	_, err = m.EncodeArgs(json.RawMessage("{" + strings.Join(forward[:39], ",") + "}"))
	wantField(t, err, "input.p39", "required")
}

func TestEncodeListsSeveralMistakes(t *testing.T) {
	m := methodOf(t, `[{"name":"a","type":"uint8"},{"name":"b","type":"bool"},{"name":"c","type":"uint8[]"}]`)
	_, err := m.Encode(json.RawMessage(`{"a":300,"c":[1,-1,2,-1],"d":0}`))
	var e *pactwire.Error
	if !errors.As(err, &e) {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range e.Fields {
		paths = append(paths, f.Path)
	}
	if got, want := strings.Join(paths, " "), "input.d input.b input.a input.c[1] input.c[3]"; got != want {
		t.Errorf("fields are %s, want %s", got, want)
	}
	many := `{"a":1,"b":true,"c":[` + strings.Repeat("-1,", 5000) + `0]}`
	if _, err := m.Encode(json.RawMessage(many)); !errors.As(err, &e) || len(e.Fields) != 20 {
		t.Errorf("%d fields, want 20", len(e.Fields))
	}
}

func TestEncodeWithoutParameters(t *testing.T) {
	m := methodOf(t, `[]`)
	for _, input := range []string{``, `null`, ` {} `, "\n"} {
		data, err := m.Encode(json.RawMessage(input))
		if err != nil || len(data) != 4 {
			t.Errorf("%q: %x, %v", input, data, err)
		}
	}
	_, err := m.Encode(json.RawMessage(`{"x":1}`))
	wantField(t, err, "input.x", "there are no parameters")
}

func TestEncodeIsBounded(t *testing.T) {
	m := methodOf(t, `[{"name":"x","type":"uint8[200000][]"}]`)
	// Each [] would reserve 6.4 MB before its own length could be checked.
	_, err := m.Encode(json.RawMessage(`{"x":[` + strings.Repeat("[],", 100_000) + `[]]}`))
	wantField(t, err, "input.x", "larger than")
	m = methodOf(t, `[{"name":"x","type":"uint8[]"}]`)
	_, err = m.Encode(json.RawMessage(`{"x":[` + strings.Repeat("1,", 1_000_000) + `1]}`))
	wantField(t, err, "input.x", "larger than")
}

func TestConstructorArguments(t *testing.T) {
	abi := json.RawMessage(`[{"type":"constructor","inputs":[{"name":"owner","type":"address"},{"name":"caps","type":"uint8[]"},{"name":"label","type":"string"}]}]`)
	object, err := contract.EncodeConstructor(abi, json.RawMessage(`{"label":"5","caps":[1,2],"owner":"0x5fbdb2315678afecb367f032d93f642f64180aa3"}`))
	if err != nil {
		t.Fatal(err)
	}
	array, err := contract.EncodeConstructor(abi, json.RawMessage(`["0x5fbdb2315678afecb367f032d93f642f64180aa3",[1,2],"5"]`))
	if err != nil {
		t.Fatal(err)
	}
	words, err := contract.EncodeConstructorStrings(abi, []string{"0x5fbdb2315678afecb367f032d93f642f64180aa3", "[1,2]", "5"})
	if err != nil {
		t.Fatal(err)
	}
	if string(object) != string(array) || string(array) != string(words) {
		t.Errorf("three ways differ:\n%x\n%x\n%x", object, array, words)
	}
	if want := "0000000000000000000000005fbdb2315678afecb367f032d93f642f64180aa3"; hex.EncodeToString(words[:32]) != want || len(words) != 8*32 {
		t.Errorf("arguments are %x", words)
	}
	_, err = contract.EncodeConstructorStrings(abi, []string{"0x5fbdb2315678afecb367f032d93f642f64180aa3"})
	wantField(t, err, "input", "takes 3 arguments (address owner, uint8[] caps, string label), 1 are given")
	_, err = contract.EncodeConstructorStrings(abi, []string{"0x5fbdb2315678afecb367f032d93f642f64180aa3", "1,2", "5"})
	wantField(t, err, "input.caps", "must be JSON")
	_, err = contract.EncodeConstructorStrings(json.RawMessage(`[]`), []string{"1"})
	wantField(t, err, "input", "takes no arguments")
	if data, err := contract.EncodeConstructorStrings(json.RawMessage(`[]`), nil); err != nil || len(data) != 0 {
		t.Errorf("no constructor: %x, %v", data, err)
	}
}
