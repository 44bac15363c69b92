package contract

import (
	"fmt"
	"strconv"
	"strings"
)

// kind is the shape of an ABI type (Solidity ABI specification, "Types").
type kind uint8

const (
	kindUint kind = iota + 1
	kindInt
	kindBool
	kindAddress
	kindFixedBytes // bytes1 to bytes32, and function, which is encoded as bytes24
	kindBytes
	kindString
	kindArray // of fixed length
	kindSlice
	kindTuple
)

const (
	wordSize      = 32
	maxTypeDepth  = 32      // arrays and tuples within each other
	maxStaticSize = 1 << 23 // bytes that a type without dynamic parts may take
	functionSize  = 24      // address and selector
	anyLength     = -1      // dimension of a slice
	tupleName     = "tuple"
	addressName   = "address"
	functionName  = "function"
	stringName    = "string"
	bytesName     = "bytes"
	boolName      = "bool"
)

// abiType is a type ready for encoding and decoding. It is immutable once built.
type abiType struct {
	kind    kind
	name    string // of an elementary type, canonical
	width   int    // bits of an integer, bytes of fixed bytes, length of a fixed array
	elem    *abiType
	fields  []field
	byKey   map[string]int // only of a tuple with many fields
	dynamic bool
	size    int // bytes of the value itself without what it points to; of a slice, bytes and string not used
}

// field is a component of a tuple; parameters and return values are the fields of an anonymous tuple.
type field struct {
	key    string // in JSON objects
	prefix []byte // the key as JSON text with its colon
	typ    *abiType
}

// head is the number of bytes that the type takes within an enclosing tuple or array.
func (t *abiType) head() int {
	if t.dynamic {
		return wordSize
	}
	return t.size
}

// appendName appends the canonical type as it stands in a signature.
func (t *abiType) appendName(dst []byte) []byte {
	switch t.kind {
	case kindArray:
		dst = append(t.elem.appendName(dst), '[')
		dst = strconv.AppendInt(dst, int64(t.width), 10)
		return append(dst, ']')
	case kindSlice:
		return append(t.elem.appendName(dst), '[', ']')
	case kindTuple:
		dst = append(dst, '(')
		for i, f := range t.fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = f.typ.appendName(dst)
		}
		return append(dst, ')')
	}
	return append(dst, t.name...)
}

// String is the canonical type.
func (t *abiType) String() string { return string(t.appendName(nil)) }

// manyFields is where looking a key up in a map gets faster than comparing.
const manyFields = 8

// newTuple makes the type of a list of values.
func newTuple(keys []string, types []*abiType) (*abiType, error) {
	t := &abiType{kind: kindTuple, fields: make([]field, len(keys))}
	for i, typ := range types {
		t.fields[i] = field{key: keys[i], prefix: append(appendQuoted(nil, []byte(keys[i])), ':'), typ: typ}
		t.dynamic = t.dynamic || typ.dynamic
		t.size += typ.head()
		if t.size > maxStaticSize {
			return nil, fmt.Errorf("takes more than %d bytes", maxStaticSize)
		}
	}
	if len(keys) > manyFields {
		t.byKey = make(map[string]int, len(keys))
		for i, key := range keys {
			t.byKey[key] = i
		}
	}
	return t, nil
}

// newArray makes the type of an array of elem; length is anyLength for a slice.
func newArray(elem *abiType, length int) (*abiType, error) {
	if length == anyLength {
		return &abiType{kind: kindSlice, elem: elem, dynamic: true}, nil
	}
	// A dynamic element takes a head of a word each, which bounds the length as well.
	if head := elem.head(); length > maxStaticSize/max(head, 1) {
		return nil, fmt.Errorf("takes more than %d bytes", maxStaticSize)
	}
	return &abiType{
		kind: kindArray, elem: elem, width: length, dynamic: elem.dynamic, size: length * elem.head(),
	}, nil
}

// index finds the field of a key; near is where to look first, because objects mostly keep the order of the fields.
func (t *abiType) index(key []byte, near int) int {
	if near < len(t.fields) && t.fields[near].key == string(key) {
		return near
	}
	if t.byKey != nil {
		if i, ok := t.byKey[string(key)]; ok {
			return i
		}
		return -1
	}
	for i := range t.fields {
		if t.fields[i].key == string(key) {
			return i
		}
	}
	return -1
}

// nativeType is a type text taken apart: uint256[2][] is the base uint256 with the dimensions 2 and anyLength.
type nativeType struct {
	base       string // canonical; "tuple" for a tuple
	elementary abiType
	dims       []int
}

// parseNative reads a type text such as uint, bytes32[] or tuple[3]. The error is a phrase that follows the text.
func parseNative(text string) (nativeType, error) {
	base, suffix := text, ""
	if i := strings.IndexByte(text, '['); i >= 0 {
		base, suffix = text[:i], text[i:]
	}
	var n nativeType
	for suffix != "" {
		end := strings.IndexByte(suffix, ']')
		if suffix[0] != '[' || end < 0 {
			return n, fmt.Errorf("is no native type: brackets must pair up at its end")
		}
		length := anyLength
		if digits := suffix[1:end]; digits != "" {
			size, ok := parseSize(digits, maxStaticSize)
			if !ok {
				return n, fmt.Errorf("has an array length that is no number from 0 to %d", maxStaticSize)
			}
			length = size
		}
		if len(n.dims) == maxTypeDepth {
			return n, fmt.Errorf("is nested deeper than %d levels", maxTypeDepth)
		}
		n.dims = append(n.dims, length)
		suffix = suffix[end+1:]
	}
	if base == tupleName {
		n.base = tupleName
		return n, nil
	}
	elementary, err := parseElementary(base)
	if err != nil {
		return n, err
	}
	n.base, n.elementary = elementary.name, elementary
	return n, nil
}

// parseElementary reads a type without dimensions.
func parseElementary(text string) (abiType, error) {
	word := abiType{name: text, size: wordSize}
	switch text {
	case boolName:
		word.kind = kindBool
		return word, nil
	case addressName:
		word.kind = kindAddress
		return word, nil
	case functionName:
		word.kind, word.width = kindFixedBytes, functionSize
		return word, nil
	case "byte": // until Solidity 0.8
		word.kind, word.width, word.name = kindFixedBytes, 1, "bytes1"
		return word, nil
	case bytesName:
		return abiType{kind: kindBytes, name: text, dynamic: true}, nil
	case stringName:
		return abiType{kind: kindString, name: text, dynamic: true}, nil
	}
	switch {
	case strings.HasPrefix(text, "fixed"), strings.HasPrefix(text, "ufixed"):
		return abiType{}, fmt.Errorf("is a fixed-point type, which neither Solidity nor this service can handle")
	case strings.HasPrefix(text, "uint"):
		word.kind = kindUint
		return integerType(word, text[len("uint"):])
	case strings.HasPrefix(text, "int"):
		word.kind = kindInt
		return integerType(word, text[len("int"):])
	case strings.HasPrefix(text, bytesName):
		size, ok := parseSize(text[len(bytesName):], wordSize)
		if !ok || size == 0 {
			return abiType{}, fmt.Errorf("is no native type: bytesN goes from bytes1 to bytes32")
		}
		word.kind, word.width = kindFixedBytes, size
		return word, nil
	}
	return abiType{}, fmt.Errorf("is no native type")
}

func integerType(t abiType, digits string) (abiType, error) {
	if digits == "" {
		t.width = 256
		t.name += "256"
		return t, nil
	}
	width, ok := parseSize(digits, 256)
	if !ok || width == 0 || width%8 != 0 {
		return abiType{}, fmt.Errorf("is no native type: integers have 8 to 256 bits, in steps of 8")
	}
	t.width = width
	return t, nil
}

// parseSize reads a canonical decimal number up to a limit.
func parseSize(digits string, limit int) (int, bool) {
	if digits == "" || digits[0] == '0' && digits != "0" {
		return 0, false
	}
	n := 0
	for i := range len(digits) {
		if !isDigit(digits[i]) {
			return 0, false
		}
		if n = n*10 + int(digits[i]-'0'); n > limit {
			return 0, false
		}
	}
	return n, true
}

// String is the canonical type text.
func (n nativeType) String() string {
	var b strings.Builder
	b.WriteString(n.base)
	for _, d := range n.dims {
		b.WriteByte('[')
		if d != anyLength {
			b.WriteString(strconv.Itoa(d))
		}
		b.WriteByte(']')
	}
	return b.String()
}

// element is the type of the elements of an array type.
func (n nativeType) element() nativeType {
	n.dims = n.dims[:len(n.dims)-1]
	return n
}

// The JSON types of a schema.
const (
	jsonInteger = "integer"
	jsonBoolean = "boolean"
	jsonString  = "string"
	jsonArray   = "array"
	jsonObject  = "object"
)

// jsonType is the schema type that stands for the native type.
func (n nativeType) jsonType() string {
	switch {
	case len(n.dims) > 0:
		return jsonArray
	case n.base == tupleName:
		return jsonObject
	case n.elementary.kind == kindUint, n.elementary.kind == kindInt:
		return jsonInteger
	case n.elementary.kind == kindBool:
		return jsonBoolean
	}
	return jsonString
}
