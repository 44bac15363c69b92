package openapi

import (
	"fmt"
	"math/big"
	"sort"
	"strconv"
	"strings"

	"github.com/pactwire/pactwire/contract"
)

// direction tells whether a schema describes what a caller sends or what it gets.
type direction int

const (
	input direction = iota
	output
)

// valueSchema describes a native value as JSON. Integers that are sent and fit 32 bits are JSON integers; all others are decimal
// strings: a double cannot hold them, and most clients read JSON numbers as doubles. (The service takes JSON numbers of any size too.)
func valueSchema(s *contract.Schema, d direction) object {
	out := object{}
	if s == nil {
		return out
	}
	native := ""
	if s.Details != nil {
		native = s.Details.Type
		if s.Details.InternalType != "" && s.Details.InternalType != native {
			out["description"] = s.Details.InternalType
		}
	}
	if s.Description != "" {
		out["description"] = s.Description
	}
	switch {
	case s.Type == "array" || strings.HasSuffix(native, "]"):
		arraySchema(out, s, native, d)
	case s.Type == "object":
		tupleSchema(out, s, d)
	case strings.HasPrefix(native, "uint") || strings.HasPrefix(native, "int"):
		integerSchema(out, native, d)
	case native == "bool":
		out["type"] = "boolean"
	case native == "address":
		out["type"], out["pattern"] = "string", "^0x[0-9a-fA-F]{40}$"
	case native == "function":
		out["type"], out["pattern"] = "string", "^0x[0-9a-fA-F]{48}$"
	case native == "bytes":
		out["type"], out["pattern"] = "string", "^0x([0-9a-fA-F]{2})*$"
	case strings.HasPrefix(native, "bytes"):
		n, _ := strconv.Atoi(strings.TrimPrefix(native, "bytes")) // validated when the interface was broadcast
		out["type"], out["pattern"] = "string", fmt.Sprintf("^0x[0-9a-fA-F]{%d}$", 2*n)
	default:
		out["type"] = "string"
	}
	if native != "" {
		out["x-native-type"] = native
	}
	return out
}

func integerSchema(out object, native string, d direction) {
	signed := strings.HasPrefix(native, "int")
	bits, err := strconv.Atoi(strings.TrimPrefix(strings.TrimPrefix(native, "u"), "int"))
	if err != nil {
		bits = 256 // uint and int without a width
	}
	if d == output || bits > 32 {
		out["type"] = "string"
		out["pattern"] = "^[0-9]+$"
		if signed {
			out["pattern"] = "^-?[0-9]+$"
		}
		return
	}
	low, high := big.NewInt(0), new(big.Int).Lsh(big.NewInt(1), uint(bits))
	if signed {
		high.Rsh(high, 1)
		low.Neg(high)
	}
	high.Sub(high, big.NewInt(1))
	out["type"], out["minimum"], out["maximum"] = "integer", low.Int64(), high.Int64()
	out["format"] = "int64"
}

func arraySchema(out object, s *contract.Schema, native string, d direction) {
	out["type"] = "array"
	out["items"] = valueSchema(s.Items, d)
	if open := strings.LastIndexByte(native, '['); open >= 0 {
		if n, err := strconv.Atoi(strings.TrimSuffix(native[open+1:], "]")); err == nil {
			out["minItems"], out["maxItems"] = n, n
		}
	}
}

func tupleSchema(out object, s *contract.Schema, d direction) {
	properties, required := object{}, make([]string, 0, len(s.Properties))
	for name, member := range s.Properties {
		properties[name] = valueSchema(member, d)
		required = append(required, name)
	}
	// The order of the components is worth keeping for readers; names in a document's `required` have none of their own.
	sort.Slice(required, func(i, j int) bool { return position(s, required[i]) < position(s, required[j]) })
	out["type"], out["properties"], out["additionalProperties"] = "object", properties, false
	if len(required) > 0 {
		out["required"] = required
	}
}

func position(s *contract.Schema, name string) int {
	if p := s.Properties[name]; p != nil && p.Details != nil && p.Details.Index != nil {
		return *p.Details.Index
	}
	return 0
}

// paramsSchema describes an object of parameters under the given names.
func paramsSchema(params []contract.Param, names []string, d direction) object {
	properties := object{}
	for i, p := range params {
		properties[names[i]] = valueSchema(p.Schema, d)
	}
	out := object{"type": "object", "properties": properties, "additionalProperties": false}
	if len(names) > 0 {
		out["required"] = names
	}
	return out
}
