package openapi

import (
	"encoding/json"
	"slices"
	"strconv"
	"unicode/utf8"
)

// object is a piece of a document. Its members are written in the order of their names.
type object = map[string]any

// ordered is an object whose members are written as they stand: parameters in the order of the contract.
type ordered []member

type member struct {
	name  string
	value any
}

// appendJSON writes a document. encoding/json would take the ordered objects only through a Marshaler, whose text it reads again at each
// level of nesting.
func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return appendText(dst, v)
	case object:
		return appendObject(dst, v)
	case ordered:
		dst = append(dst, '{')
		for i, m := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendText(dst, m.name), ':')
			dst = appendJSON(dst, m.value)
		}
		return append(dst, '}')
	case []any:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendJSON(dst, item)
		}
		return append(dst, ']')
	case []string:
		dst = append(dst, '[')
		for i, item := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendText(dst, item)
		}
		return append(dst, ']')
	case bool:
		return strconv.AppendBool(dst, v)
	case int:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case json.RawMessage:
		return append(dst, v...)
	}
	text, err := json.Marshal(v)
	if err != nil {
		return append(dst, "null"...) // no document holds a value that cannot be encoded
	}
	return append(dst, text...)
}

func appendObject(dst []byte, v object) []byte {
	var few [16]string
	keys := few[:0]
	for key := range v {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	dst = append(dst, '{')
	for i, key := range keys {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendText(dst, key), ':')
		dst = appendJSON(dst, v[key])
	}
	return append(dst, '}')
}

func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			text, err := json.Marshal(s)
			if err != nil {
				return append(dst, `""`...) // a string always encodes
			}
			return append(dst, text...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
