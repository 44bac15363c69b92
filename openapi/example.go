package openapi

import (
	"encoding/json"
	"strings"

	"github.com/pactwire/pactwire/contract"
)

// maxExample bounds the example of one request; a longer one helps nobody and a contract may have thousands of methods.
const maxExample = 8 << 10

// exampleInput is an input that fits the schemas of the document and that the service takes; ok is false when it would be too long.
func exampleInput(params []contract.Param, names []string) (example ordered, ok bool) {
	example = make(ordered, len(params))
	size := 0
	for i := range params {
		var value json.RawMessage = contract.Example(asSent(params[i].Schema, known{}))
		size += len(value)
		if value == nil || size > maxExample {
			return nil, false
		}
		example[i] = member{names[i], value}
	}
	return example, true
}

// asSent is the schema with the JSON types that the document asks for: a wide integer is a string. A hand-made interface may say otherwise.
func asSent(s *contract.Schema, k known) *contract.Schema {
	k = k.of(s)
	out := *s
	switch {
	case strings.HasSuffix(k.native, "]"):
		out.Type = "array"
		out.Items = asSent(s.Items, k.item())
	case k.native == "tuple":
		out.Type = "object"
		out.Properties = make(map[string]*contract.Schema, len(s.Properties))
		for name, component := range s.Properties {
			out.Properties[name] = asSent(component, known{})
		}
	case k.native == "bool":
		out.Type = "boolean"
	case strings.HasPrefix(k.native, "uint"), strings.HasPrefix(k.native, "int"):
		out.Type = "integer"
		if bits, _ := width(k.native); bits > smallInteger {
			out.Type = "string"
		}
	default:
		out.Type = "string"
	}
	return &out
}
