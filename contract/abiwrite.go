package contract

import (
	"encoding/json"
	"slices"
)

// ABI turns the interface back into an ABI: its functions, then its events, then its errors, each in order. Nothing that
// FromABI keeps is lost; the interface must be valid.
func (i *Interface) ABI() (json.RawMessage, error) {
	entries := make([]any, 0, len(i.Methods)+len(i.Events)+len(i.Errors))
	for _, m := range i.Methods {
		entry := functionEntry{Type: entryFunction, Name: m.Name, Inputs: paramsToABI(m.Params), Outputs: paramsToABI(m.Returns)}
		if m.Details != nil {
			entry.StateMutability = m.Details.StateMutability
		}
		entries = append(entries, entry)
	}
	for _, e := range i.Events {
		inputs := make([]abiEventParam, len(e.Params))
		for n, p := range paramsToABI(e.Params) {
			inputs[n] = abiEventParam{abiParam: p, Indexed: e.Params[n].indexed()}
		}
		entries = append(entries, eventEntry{Type: entryEvent, Name: e.Name, Inputs: inputs, Anonymous: e.anonymous()})
	}
	for _, e := range i.Errors {
		entries = append(entries, errorEntry{Type: entryError, Name: e.Name, Inputs: paramsToABI(e.Params)})
	}
	return json.Marshal(entries)
}

type functionEntry struct {
	Type            string     `json:"type"`
	Name            string     `json:"name"`
	Inputs          []abiParam `json:"inputs"`
	Outputs         []abiParam `json:"outputs"`
	StateMutability string     `json:"stateMutability,omitempty"`
}

type eventEntry struct {
	Type      string          `json:"type"`
	Name      string          `json:"name"`
	Inputs    []abiEventParam `json:"inputs"`
	Anonymous bool            `json:"anonymous"`
}

// abiEventParam says of every argument whether it is indexed, as compilers do.
type abiEventParam struct {
	abiParam
	Indexed bool `json:"indexed"`
}

type errorEntry struct {
	Type   string     `json:"type"`
	Name   string     `json:"name"`
	Inputs []abiParam `json:"inputs"`
}

func paramsToABI(params []Param) []abiParam {
	out := make([]abiParam, len(params))
	for i, p := range params {
		out[i] = schemaToABI(p.Name, p.Schema)
	}
	return out
}

func schemaToABI(name string, s *Schema) abiParam {
	out := abiParam{Name: name}
	if s == nil {
		return out
	}
	if s.Details != nil {
		out.Type, out.InternalType = s.Details.Type, s.Details.InternalType
	}
	inner := s
	for inner.Items != nil {
		inner = inner.Items
	}
	keys := make([]string, 0, len(inner.Properties))
	for key := range inner.Properties {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b string) int { return inner.Properties[a].index() - inner.Properties[b].index() })
	for _, key := range keys {
		if key == "" || isDigit(key[0]) { // a component without a name
			out.Components = append(out.Components, schemaToABI("", inner.Properties[key]))
			continue
		}
		out.Components = append(out.Components, schemaToABI(key, inner.Properties[key]))
	}
	return out
}

// index is the schema's position within its tuple.
func (s *Schema) index() int {
	if s == nil || s.Details == nil || s.Details.Index == nil {
		return 0
	}
	return *s.Details.Index
}
