package openapi

import (
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

// params describes an object of parameters under the given names.
func (b *builder) params(params []contract.Param, names []string, d direction) ordered {
	schemas := make([]*contract.Schema, len(params))
	for i := range params {
		schemas[i] = params[i].Schema
	}
	return b.object(names, schemas, d)
}

// object describes an object that has exactly the named members.
func (b *builder) object(names []string, schemas []*contract.Schema, d direction) ordered {
	properties := make(ordered, len(names))
	for i, hint := range goNames(names) {
		value := b.value(schemas[i], known{}, d, hint == "")
		if own, ok := value.(object); ok && hint != "" {
			own["x-go-name"] = hint
		}
		properties[i] = member{names[i], value}
	}
	out := ordered{{"type", "object"}}
	if len(names) > 0 {
		out = append(out, member{"required", names})
	}
	return append(out, member{"properties", properties}, member{"additionalProperties", false})
}

// known is what an array tells of its items, which need no details of their own.
type known struct{ native, internal string }

// of completes what is known by what the schema says itself.
func (k known) of(s *contract.Schema) known {
	if s.Details != nil {
		if s.Details.Type != "" {
			k.native = s.Details.Type
		}
		if s.Details.InternalType != "" {
			k.internal = s.Details.InternalType
		}
	}
	return k
}

// item is what an array tells of its items.
func (k known) item() known {
	return known{withoutLength(k.native), withoutLength(k.internal)}
}

func withoutLength(array string) string {
	if i := strings.LastIndexByte(array, '['); i >= 0 {
		return array[:i]
	}
	return ""
}

// value describes a native value as JSON. Integers that are sent and fit 32 bits are JSON integers; all others are decimal strings: a
// double cannot hold them, and most clients read JSON numbers as doubles. (The service takes JSON numbers of any size too.)
// Only where a reference will do may the schema of a struct be shared.
func (b *builder) value(s *contract.Schema, k known, d direction, share bool) any {
	k = k.of(s)
	native := k.native
	switch {
	case strings.HasSuffix(native, "]"):
		return b.array(s, k, d)
	case native == "tuple":
		return b.tuple(s, k, d, share)
	}
	out := object{"type": "string", "x-native-type": native}
	if k.internal != "" && k.internal != native {
		out["description"] = k.internal
	}
	if s.Description != "" {
		out["description"] = s.Description
	}
	switch {
	case strings.HasPrefix(native, "uint"), strings.HasPrefix(native, "int"):
		integer(out, native, d)
	case native == "bool":
		out["type"] = "boolean"
	case native == "address":
		out["pattern"] = "^0x[0-9a-fA-F]{40}$"
	case native == "function":
		out["pattern"] = "^0x[0-9a-fA-F]{48}$"
	case native == "bytes":
		out["pattern"] = "^0x([0-9a-fA-F]{2})*$"
	case strings.HasPrefix(native, "bytes"):
		n, _ := strconv.Atoi(strings.TrimPrefix(native, "bytes")) // the interface is compiled, so it is a number
		out["pattern"] = "^0x[0-9a-fA-F]{" + strconv.Itoa(2*n) + "}$"
	}
	return out
}

// smallInteger is the widest integer that is sent as a JSON number.
const smallInteger = 32

func integer(out object, native string, d direction) {
	bits, signed := width(native)
	if d == output || bits > smallInteger {
		out["pattern"] = "^[0-9]+$"
		if signed {
			out["pattern"] = "^-?[0-9]+$"
		}
		return
	}
	low, high := int64(0), int64(1)<<bits-1
	if signed {
		low, high = -(int64(1) << (bits - 1)), int64(1)<<(bits-1)-1
	}
	out["type"], out["format"], out["minimum"], out["maximum"] = "integer", "int64", low, high
}

// width reads the type of an integer.
func width(native string) (bits int, signed bool) {
	digits, unsigned := strings.CutPrefix(native, "uint")
	if !unsigned {
		digits = strings.TrimPrefix(native, "int")
	}
	bits, err := strconv.Atoi(digits)
	if err != nil {
		bits = 256 // uint and int without a width
	}
	return bits, !unsigned
}

func (b *builder) array(s *contract.Schema, k known, d direction) object {
	out := object{"type": "array", "items": b.value(s.Items, k.item(), d, true), "x-native-type": k.native}
	if s.Description != "" {
		out["description"] = s.Description
	}
	length := k.native[strings.LastIndexByte(k.native, '[')+1 : len(k.native)-1]
	if n, err := strconv.Atoi(length); err == nil {
		out["minItems"], out["maxItems"] = n, n
	}
	return out
}

// tuple describes a struct. Where the compiler has told its name, it becomes a component of the document, once for all its uses.
func (b *builder) tuple(s *contract.Schema, k known, d direction, share bool) any {
	names := make([]string, len(s.Properties))
	for name, component := range s.Properties {
		names[*component.Details.Index] = name // the interface is compiled, so each index is there once
	}
	schemas := make([]*contract.Schema, len(names))
	for i, name := range names {
		schemas[i] = s.Properties[name]
	}
	out := object{}
	for _, m := range b.object(names, schemas, d) {
		out[m.name] = m.value
	}
	name, named := structName(k.internal)
	if named {
		out["description"] = k.internal
	}
	if s.Description != "" {
		out["description"] = s.Description
	}
	if !named || !share {
		return out
	}
	key := string(appendJSON([]byte(name+" "), out))
	given, have := b.structs[key]
	if !have {
		given = b.components.either(name, name+[]string{"_input", "_output"}[d])
		b.structs[key] = given
		b.schemas[given] = out
	}
	return ref(given)
}

// structName reads the name of a struct from its internal type, such as struct Market.Order.
func structName(internal string) (string, bool) {
	name, ok := strings.CutPrefix(internal, "struct ")
	if !ok {
		return "", false
	}
	name = name[strings.LastIndexByte(name, '.')+1:]
	return name, name != "" && isPlain(name)
}
