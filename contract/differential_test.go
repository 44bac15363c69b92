package contract_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/big"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"github.com/pactwire/pactwire/contract"
)

// The tests here compare with go-ethereum's own codec, on random types and values.

// abiParam is a parameter of an ABI as JSON.
type abiParam struct {
	Name       string     `json:"name"`
	Type       string     `json:"type"`
	Components []abiParam `json:"components,omitempty"`
	Indexed    bool       `json:"indexed,omitempty"`
}

func genParam(t *rapid.T, name string, depth int) abiParam {
	p := abiParam{Name: name}
	choice := rapid.IntRange(0, 9).Draw(t, "kind")
	if depth == 0 && choice == 9 {
		choice = 0
	}
	switch choice {
	case 0, 1:
		p.Type = "uint" + strconv.Itoa(8*rapid.IntRange(1, 32).Draw(t, "width"))
	case 2:
		p.Type = "int" + strconv.Itoa(8*rapid.IntRange(1, 32).Draw(t, "width"))
	case 3:
		p.Type = "bool"
	case 4:
		p.Type = "address"
	case 5:
		p.Type = "bytes" + strconv.Itoa(rapid.IntRange(1, 32).Draw(t, "size"))
	case 6:
		p.Type = "bytes"
	case 7:
		p.Type = "string"
	case 8:
		p.Type = "function"
	case 9:
		p.Type = "tuple"
		p.Components = genParams(t, 1, 4, depth-1)
	}
	if depth > 0 {
		for range rapid.IntRange(0, 2).Draw(t, "dimensions") {
			if rapid.Bool().Draw(t, "slice") {
				p.Type += "[]"
			} else {
				p.Type += "[" + strconv.Itoa(rapid.IntRange(1, 3).Draw(t, "length")) + "]"
			}
		}
	}
	return p
}

func genParams(t *rapid.T, least, most, depth int) []abiParam {
	params := make([]abiParam, rapid.IntRange(least, most).Draw(t, "params"))
	for i := range params {
		params[i] = genParam(t, "p"+strconv.Itoa(i), depth)
	}
	return params
}

// genValue fills a value of go-ethereum and returns the same as JSON: one of the ways to write it as an input.
func genValue(t *rapid.T, typ abi.Type, into reflect.Value) string {
	switch typ.T {
	case abi.UintTy, abi.IntTy:
		n := genInteger(t, typ.T == abi.IntTy, typ.Size)
		setInteger(into, n)
		switch rapid.IntRange(0, 2).Draw(t, "notation") {
		case 0:
			return n.String()
		case 1:
			return `"` + n.String() + `"`
		}
		return fmt.Sprintf(`"%#x"`, n)
	case abi.BoolTy:
		b := rapid.Bool().Draw(t, "bool")
		into.SetBool(b)
		return strconv.FormatBool(b)
	case abi.StringTy:
		s := rapid.String().Draw(t, "string")
		into.SetString(s)
		quoted, _ := json.Marshal(s)
		return string(quoted)
	case abi.BytesTy:
		b := rapid.SliceOfN(rapid.Byte(), 0, 80).Draw(t, "bytes")
		into.SetBytes(b)
		return `"0x` + hex.EncodeToString(b) + `"`
	case abi.AddressTy:
		a := common.BytesToAddress(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "address"))
		into.Set(reflect.ValueOf(a))
		return `"` + a.Hex() + `"` // with its checksum
	case abi.FixedBytesTy, abi.FunctionTy:
		b := rapid.SliceOfN(rapid.Byte(), into.Len(), into.Len()).Draw(t, "bytesN")
		reflect.Copy(into, reflect.ValueOf(b))
		return `"` + strings.ToUpper(hex.EncodeToString(b)) + `"`
	case abi.SliceTy, abi.ArrayTy:
		if typ.T == abi.SliceTy {
			n := rapid.IntRange(0, 3).Draw(t, "length")
			into.Set(reflect.MakeSlice(into.Type(), n, n))
		}
		parts := make([]string, into.Len())
		for i := range parts {
			parts[i] = genValue(t, *typ.Elem, into.Index(i))
		}
		return "[" + strings.Join(parts, " , ") + "]"
	case abi.TupleTy:
		parts := make([]string, into.NumField())
		asArray := rapid.Bool().Draw(t, "array")
		for i, elem := range typ.TupleElems {
			parts[i] = genValue(t, *elem, into.Field(i))
			if !asArray {
				parts[i] = `"` + typ.TupleRawNames[i] + `" : ` + parts[i]
			}
		}
		if asArray {
			return "[" + strings.Join(parts, ",") + "]"
		}
		return "{" + strings.Join(rapid.Permutation(parts).Draw(t, "order"), ",") + "}"
	}
	panic("unknown type " + typ.String())
}

func genInteger(t *rapid.T, signed bool, width int) *big.Int {
	magnitude := new(big.Int).SetBytes(rapid.SliceOfN(rapid.Byte(), 0, width/8).Draw(t, "magnitude"))
	if rapid.IntRange(0, 4).Draw(t, "edge") == 0 {
		magnitude.Sub(new(big.Int).Lsh(big.NewInt(1), uint(width)), big.NewInt(int64(rapid.IntRange(1, 2).Draw(t, "off"))))
	}
	if signed { // shift the range down by half
		magnitude.Sub(magnitude, new(big.Int).Lsh(big.NewInt(1), uint(width-1)))
	}
	return magnitude
}

func setInteger(into reflect.Value, n *big.Int) {
	switch into.Kind() {
	case reflect.Ptr:
		into.Set(reflect.ValueOf(n))
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		into.SetInt(n.Int64())
	default:
		into.SetUint(n.Uint64())
	}
}

// jsonOf writes a value of go-ethereum the way decisions.md, section 5, wants outputs.
func jsonOf(typ abi.Type, v reflect.Value) string {
	switch typ.T {
	case abi.BoolTy:
		return strconv.FormatBool(v.Bool())
	case abi.StringTy:
		return canonicalString(v.String())
	case abi.BytesTy:
		return `"0x` + hex.EncodeToString(v.Bytes()) + `"`
	case abi.AddressTy, abi.FixedBytesTy, abi.FunctionTy:
		b := make([]byte, v.Len())
		reflect.Copy(reflect.ValueOf(b), v)
		return `"0x` + hex.EncodeToString(b) + `"`
	case abi.SliceTy, abi.ArrayTy:
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = jsonOf(*typ.Elem, v.Index(i))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case abi.TupleTy:
		parts := make([]string, v.NumField())
		for i, elem := range typ.TupleElems {
			parts[i] = `"` + typ.TupleRawNames[i] + `":` + jsonOf(*elem, v.Field(i))
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	return fmt.Sprintf(`"%v"`, v.Interface())
}

// canonicalString is a slow and obvious version of how text of the chain is written.
func canonicalString(s string) string {
	runes := []rune(s) // an invalid byte becomes U+FFFD
	for i, r := range runes {
		if r == 0 {
			runes[i] = '\ufffd'
		}
	}
	quoted, _ := json.Marshal(string(runes))
	return string(quoted)
}

// sameJSON compares two JSON texts as values, keeping numbers as text.
func sameJSON(t *rapid.T, got, want string) {
	t.Helper()
	var a, b any
	if err := json.Unmarshal([]byte(got), &a); err != nil {
		t.Fatalf("not JSON: %s: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("not JSON: %s: %v", want, err)
	}
	if !reflect.DeepEqual(a, b) {
		t.Fatalf("got  %s\nwant %s", got, want)
	}
}

// drawMethod draws a method f(params) returning the same params, for both codecs.
func drawMethod(t *rapid.T) (abi.Arguments, *contract.CompiledMethod) {
	params := genParams(t, 2, 4, 3)
	text, err := json.Marshal([]any{map[string]any{
		"type": "function", "name": "f", "inputs": params, "outputs": params, "stateMutability": "view",
	}})
	if err != nil {
		t.Fatal(err)
	}
	theirs, err := abi.JSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("go-ethereum: %v", err)
	}
	iface, err := contract.FromABI(text)
	if err != nil {
		t.Fatalf("ours: %v", err)
	}
	ours, err := contract.Compile(iface)
	if err != nil {
		t.Fatalf("ours: %v", err)
	}
	method, err := ours.Method("f")
	if err != nil {
		t.Fatal(err)
	}
	if sig := theirs.Methods["f"].Sig; method.Signature != sig || !bytes.Equal(method.Selector[:], theirs.Methods["f"].ID) {
		t.Fatalf("signature %s, want %s", method.Signature, sig)
	}
	return theirs.Methods["f"].Inputs, method
}

// drawArguments draws values for both codecs.
func drawArguments(t *rapid.T, arguments abi.Arguments) (values []any, input string) {
	parts := make([]string, len(arguments))
	for i, a := range arguments {
		v := reflect.New(a.Type.GetType()).Elem()
		parts[i] = fmt.Sprintf("%q: %s", a.Name, genValue(t, a.Type, v))
		values = append(values, v.Interface())
	}
	return values, "{" + strings.Join(parts, ", ") + "}"
}

func theirOutput(arguments abi.Arguments, values []any) string {
	parts := make([]string, len(arguments))
	for i, a := range arguments {
		parts[i] = fmt.Sprintf("%q:%s", a.Name, jsonOf(a.Type, reflect.ValueOf(values[i])))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func TestEncodesAndDecodesLikeGoEthereum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arguments, method := drawMethod(t)
		values, input := drawArguments(t, arguments)
		want, err := arguments.Pack(values...)
		if err != nil {
			t.Fatalf("go-ethereum packs: %v", err)
		}
		got, err := method.EncodeArgs(json.RawMessage(input))
		if err != nil {
			t.Fatalf("encode %s: %v", input, err)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("%s of %s\ngot  %x\nwant %x", input, method.Signature, got, want)
		}
		out, err := method.DecodeOutput(got)
		if err != nil {
			t.Fatalf("decode: %v", err)
		}
		sameJSON(t, string(out), theirOutput(arguments, values))

		// What we answer, we take again.
		again, err := method.EncodeArgs(out)
		if err != nil {
			t.Fatalf("encode the output %s: %v", out, err)
		}
		if !bytes.Equal(again, got) && !bytes.Contains(out, []byte("\ufffd")) {
			t.Fatalf("%s encodes to other bytes", out)
		}
	})
}

func TestDecodesDamagedDataLikeGoEthereum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		arguments, method := drawMethod(t)
		values, _ := drawArguments(t, arguments)
		data, err := arguments.Pack(values...)
		if err != nil {
			t.Fatal(err)
		}
		for range rapid.IntRange(1, 3).Draw(t, "damages") {
			at := rapid.IntRange(0, len(data)-1).Draw(t, "at")
			data[at] = byte(rapid.IntRange(0, 255).Draw(t, "byte"))
		}
		data = data[:rapid.IntRange(1, len(data)).Draw(t, "cut")]
		out, err := method.DecodeOutput(data)
		theirs, theirErr := arguments.Unpack(data)
		if err != nil {
			return // we may be stricter about dirty bits, never laxer
		}
		if theirErr != nil {
			t.Fatalf("we read %s from %x of %s, go-ethereum says %v", out, data, method.Signature, theirErr)
		}
		sameJSON(t, string(out), theirOutput(arguments, theirs))
	})
}

func TestDecodesLogsLikeGoEthereum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := genParams(t, 1, 5, 2)
		indexed := 0
		for i := range params {
			if indexed < 3 && rapid.Bool().Draw(t, "indexed") {
				params[i].Indexed = true
				indexed++
			}
		}
		text, _ := json.Marshal([]any{map[string]any{"type": "event", "name": "E", "inputs": params}})
		theirs, err := abi.JSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		iface, err := contract.FromABI(text)
		if err != nil {
			t.Fatal(err)
		}
		event, err := contract.CompileEvent(iface.Events[0])
		if err != nil {
			t.Fatal(err)
		}
		definition := theirs.Events["E"]
		if event.Topic0 != definition.ID || event.Signature != definition.Sig || event.NumIndexed != indexed {
			t.Fatalf("event %+v differs from %v", event, definition)
		}
		values, _ := drawArguments(t, definition.Inputs)
		topics := []common.Hash{definition.ID}
		var plain []any
		want := make([]string, len(values))
		for i, a := range definition.Inputs {
			want[i] = fmt.Sprintf("%q:%s", a.Name, jsonOf(a.Type, reflect.ValueOf(values[i])))
			if !a.Indexed {
				plain = append(plain, values[i])
				continue
			}
			topic := crypto.Keccak256Hash([]byte(a.Name))
			switch a.Type.T {
			case abi.StringTy, abi.BytesTy, abi.SliceTy, abi.ArrayTy, abi.TupleTy:
				want[i] = fmt.Sprintf("%q:%q", a.Name, topic.Hex())
			default:
				word, err := abi.Arguments{{Type: a.Type}}.Pack(values[i])
				if err != nil {
					t.Fatal(err)
				}
				topic = common.BytesToHash(word)
			}
			topics = append(topics, topic)
		}
		data, err := definition.Inputs.NonIndexed().Pack(plain...)
		if err != nil {
			t.Fatal(err)
		}
		out, err := event.DecodeLog(topics, data)
		if err != nil {
			t.Fatalf("decode log: %v", err)
		}
		sameJSON(t, string(out), "{"+strings.Join(want, ",")+"}")
	})
}

func TestInterfaceGoesBackToItsABI(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params, outputs := genParams(t, 0, 4, 3), genParams(t, 0, 3, 3)
		text, _ := json.Marshal([]any{
			map[string]any{"type": "function", "name": "f", "inputs": params, "outputs": outputs, "stateMutability": "view"},
			map[string]any{"type": "event", "name": "E", "inputs": params, "anonymous": true},
			map[string]any{"type": "error", "name": "X", "inputs": outputs},
		})
		iface, err := contract.FromABI(text)
		if err != nil {
			t.Fatal(err)
		}
		back, err := iface.ABI()
		if err != nil {
			t.Fatal(err)
		}
		again, err := contract.FromABI(back)
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(iface, again) {
			t.Fatalf("%s\ncame back as\n%s", text, back)
		}
		theirs, err := abi.JSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		theirsBack, err := abi.JSON(bytes.NewReader(back))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(theirs, theirsBack) {
			t.Fatalf("go-ethereum reads another ABI in %s", back)
		}
	})
}

func TestExamplesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		params := genParams(t, 1, 4, 3)
		text, _ := json.Marshal([]any{map[string]any{"type": "function", "name": "f", "inputs": params}})
		iface, err := contract.FromABI(text)
		if err != nil {
			t.Fatal(err)
		}
		input := map[string]json.RawMessage{}
		for _, p := range iface.Methods[0].Params {
			input[p.Name] = contract.Example(p.Schema)
		}
		method, err := contract.CompileMethod(iface.Methods[0], nil)
		if err != nil {
			t.Fatal(err)
		}
		text, _ = json.Marshal(input)
		if _, err := method.Encode(text); err != nil {
			t.Fatalf("%s is refused: %v", text, err)
		}
	})
}
