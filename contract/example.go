package contract

import (
	"encoding/json"
	"strings"
)

const (
	exampleAddress = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
	exampleText    = "text"
	maxExample     = 16 << 10 // bytes; a longer example helps nobody
)

// Example is a valid input for a schema, as documents show it; Encode accepts it. An integer is a JSON number, unless
// the schema says string. It is nil for a schema that is malformed, or so large that an example is of no use.
func Example(s *Schema) json.RawMessage {
	if s == nil {
		return nil
	}
	t := (&schemaReader{}).schema("schema", s, nil, 1)
	if t == nil {
		return nil
	}
	out, ok := appendExample(nil, s, t)
	if !ok {
		return nil
	}
	return out
}

// appendExample appends an example value; ok is false when it gets too long.
func appendExample(dst []byte, s *Schema, t *abiType) (out []byte, ok bool) {
	if len(dst) > maxExample {
		return dst, false
	}
	ok = true
	switch t.kind {
	case kindUint, kindInt:
		dst = append(dst, exampleScalar(s, "1")...)
	case kindBool:
		dst = append(dst, exampleScalar(s, "true")...)
	case kindAddress:
		dst = append(dst, `"`+exampleAddress+`"`...)
	case kindFixedBytes:
		dst = append(dst, `"0x`+strings.Repeat("01", t.width)+`"`...)
	case kindBytes:
		dst = append(dst, `"0x0102"`...)
	case kindString:
		dst = append(dst, `"`+exampleText+`"`...)
	case kindSlice, kindArray:
		length := 1
		if t.kind == kindArray {
			length = t.width
		}
		dst = append(dst, '[')
		for i := 0; i < length && ok; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst, ok = appendExample(dst, s.Items, t.elem)
		}
		dst = append(dst, ']')
	case kindTuple:
		dst = append(dst, '{')
		for i := 0; i < len(t.fields) && ok; i++ {
			if i > 0 {
				dst = append(dst, ',')
			}
			f := t.fields[i]
			dst = append(dst, f.prefix...)
			dst, ok = appendExample(dst, s.Properties[f.key], f.typ)
		}
		dst = append(dst, '}')
	}
	return dst, ok && len(dst) <= maxExample
}

// exampleScalar writes a number or boolean the way its schema wants it.
func exampleScalar(s *Schema, text string) string {
	if s.Type == jsonString {
		return `"` + text + `"`
	}
	return text
}
