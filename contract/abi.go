package contract

import (
	"encoding/json"
	"errors"
	"strconv"

	pactwire "github.com/pactwire/pactwire"
)

// abiEntry is one entry of an ABI (Solidity ABI specification, "JSON"), of any age.
type abiEntry struct {
	Type            string     `json:"type,omitempty"` // function when absent
	Name            string     `json:"name"`
	Inputs          []abiParam `json:"inputs"`
	Outputs         []abiParam `json:"outputs,omitempty"`
	StateMutability string     `json:"stateMutability,omitempty"`
	Constant        *bool      `json:"constant,omitempty"` // before Solidity 0.6
	Payable         *bool      `json:"payable,omitempty"`  // before Solidity 0.6
	Anonymous       bool       `json:"anonymous,omitempty"`
}

type abiParam struct {
	Name         string     `json:"name"`
	Type         string     `json:"type"`
	InternalType string     `json:"internalType,omitempty"`
	Components   []abiParam `json:"components,omitempty"`
	Indexed      bool       `json:"indexed,omitempty"`
}

// The kinds of ABI entries.
const (
	entryFunction    = "function"
	entryEvent       = "event"
	entryError       = "error"
	entryConstructor = "constructor"
	entryFallback    = "fallback"
	entryReceive     = "receive"
)

// The state mutabilities of functions.
const (
	mutabilityPure       = "pure"
	mutabilityView       = "view"
	mutabilityNonpayable = "nonpayable"
	mutabilityPayable    = "payable"
)

const (
	abiPath    = "input.abi" // where the ABI stands in a generate request
	maxEntries = 10_000      // of an ABI, and of a list of an interface
	maxParams  = 1_000       // of one entry, and of one tuple
	maxSchemas = 200_000     // of one ABI: a short type such as uint8[][][][] stands for many
)

// FromABI turns an ABI, a JSON array of entries, into an interface without ids, name, version and pathnames. It keeps
// the ABI's order and all overloads; only an entry with the very signature of an earlier one is dropped, because it
// could not be told from it (merged ABIs of proxies and diamonds repeat entries). Constructor, fallback and receive are
// no methods. Fields of errors start with input.abi, such as input.abi[3].inputs[0].type.
func FromABI(abi json.RawMessage) (Interface, error) {
	iface := Interface{Methods: []Method{}, Events: []Event{}, Errors: []Error{}}
	entries, err := splitABI(abi)
	if err != nil {
		return Interface{}, err
	}
	r := &abiReader{seen: make(map[string]bool, len(entries))}
	for i, raw := range entries {
		path := abiPath + "[" + strconv.Itoa(i) + "]"
		entry, err := parseEntry(path, raw)
		if err != nil {
			return Interface{}, err
		}
		if err := r.addEntry(&iface, path, entry); err != nil {
			return Interface{}, err
		}
	}
	return iface, nil
}

// abiReader is the state of reading one ABI.
type abiReader struct {
	seen    map[string]bool // signatures, by kind of entry
	schemas int             // made so far
}

// splitABI takes the array apart.
func splitABI(abi json.RawMessage) ([]json.RawMessage, error) {
	var entries []json.RawMessage
	if err := json.Unmarshal(abi, &entries); err != nil || entries == nil {
		return nil, pactwire.Invalid(abiPath, "must be an array of ABI entries")
	}
	if len(entries) > maxEntries {
		return nil, pactwire.Invalid(abiPath, "has more than %d entries", maxEntries)
	}
	return entries, nil
}

// parseEntry reads one entry and fills in its type.
func parseEntry(path string, raw json.RawMessage) (abiEntry, error) {
	var entry abiEntry
	if raw[0] != '{' {
		return entry, pactwire.Invalid(path, "must be an object: a function, event or error of the ABI")
	}
	if err := json.Unmarshal(raw, &entry); err != nil {
		var mismatch *json.UnmarshalTypeError
		if errors.As(err, &mismatch) && mismatch.Field != "" {
			return entry, pactwire.Invalid(path+"."+mismatch.Field, "must not be a JSON %s", mismatch.Value)
		}
		return entry, pactwire.Invalid(path, "is no valid ABI entry")
	}
	if entry.Type == "" {
		entry.Type = entryFunction
	}
	return entry, nil
}

// addEntry adds an entry to the interface.
func (r *abiReader) addEntry(i *Interface, path string, entry abiEntry) error {
	switch entry.Type {
	case entryConstructor, entryFallback, entryReceive:
		return nil
	case entryFunction, entryEvent, entryError:
	default:
		return pactwire.Invalid(path+".type", "is %s, which is no kind of ABI entry", quoteShort(entry.Type))
	}
	if !validIdentifier(entry.Name) {
		return pactwire.Invalid(path+".name", "%s is no Solidity identifier", quoteShort(entry.Name))
	}
	inputs, types, err := r.params(path+".inputs", entry.Type, entry.Inputs)
	if err != nil {
		return err
	}
	key := entry.Type + " " + entry.Name + types.String()
	if entry.Type == entryEvent {
		if err := checkIndexed(path+".inputs", inputs, entry.Anonymous); err != nil {
			return err
		}
		key += indexedKey(inputs, entry.Anonymous)
	}
	if r.seen[key] {
		return nil
	}
	r.seen[key] = true
	switch entry.Type {
	case entryEvent:
		event := Event{Name: entry.Name, Params: inputs}
		if entry.Anonymous {
			event.Details = &EventDetails{Anonymous: true}
		}
		i.Events = append(i.Events, event)
	case entryError:
		i.Errors = append(i.Errors, Error{Name: entry.Name, Params: inputs})
	default:
		outputs, _, err := r.params(path+".outputs", entry.Type, entry.Outputs)
		if err != nil {
			return err
		}
		method := Method{Name: entry.Name, Params: inputs, Returns: outputs}
		mutability, err := entry.mutability(path)
		if err != nil {
			return err
		}
		if mutability != "" {
			method.Details = &MethodDetails{StateMutability: mutability}
		}
		i.Methods = append(i.Methods, method)
	}
	return nil
}

// mutability derives the state mutability; empty when the ABI does not tell.
func (e *abiEntry) mutability(path string) (string, error) {
	switch e.StateMutability {
	case mutabilityPure, mutabilityView, mutabilityNonpayable, mutabilityPayable:
		return e.StateMutability, nil
	case "":
	default:
		return "", pactwire.Invalid(path+".stateMutability", "must be pure, view, nonpayable or payable")
	}
	switch {
	case e.Constant != nil && *e.Constant:
		return mutabilityView, nil
	case e.Payable != nil && *e.Payable:
		return mutabilityPayable, nil
	case e.Payable != nil:
		return mutabilityNonpayable, nil
	}
	return "", nil
}

// params turns the ABI parameters of a kind of entry into ours, and into their type.
func (r *abiReader) params(path, of string, in []abiParam) ([]Param, *abiType, error) {
	if len(in) > maxParams {
		return nil, nil, pactwire.Invalid(path, "has more than %d parameters", maxParams)
	}
	params := make([]Param, len(in))
	types := make([]*abiType, len(in))
	names := make([]string, len(in))
	for i, p := range in {
		at := path + "[" + strconv.Itoa(i) + "]"
		if !validParamName(p.Name) {
			return nil, nil, pactwire.Invalid(at+".name", "%s cannot name a parameter", quoteShort(p.Name))
		}
		schema, t, err := r.schema(at, p, 1)
		if err != nil {
			return nil, nil, err
		}
		schema.Details.Indexed = p.Indexed && of == entryEvent
		params[i], types[i], names[i] = Param{Name: p.Name, Schema: schema}, t, p.Name
	}
	all, err := newTuple(inputNames(names), types)
	if err != nil {
		return nil, nil, pactwire.Invalid(path, "%s", err)
	}
	return params, all, nil
}

// schema turns one ABI parameter into a schema and its type.
func (r *abiReader) schema(path string, p abiParam, depth int) (*Schema, *abiType, error) {
	native, err := parseNative(p.Type)
	if err != nil {
		return nil, nil, pactwire.Invalid(path+".type", "%s %s", quoteShort(p.Type), err)
	}
	if depth+len(native.dims) > maxTypeDepth {
		return nil, nil, pactwire.Invalid(path+".type", "is nested deeper than %d levels", maxTypeDepth)
	}
	if r.schemas += 1 + len(native.dims); r.schemas > maxSchemas {
		return nil, nil, pactwire.Invalid(abiPath, "describes more than %d values", maxSchemas)
	}
	inner := nativeType{base: native.base, elementary: native.elementary}
	schema := &Schema{Type: inner.jsonType(), Details: &Details{Type: inner.base}}
	t := &inner.elementary
	if native.base == tupleName {
		if t, err = r.tuple(path, p.Components, schema, depth+len(native.dims)); err != nil {
			return nil, nil, err
		}
	}
	for i, length := range native.dims {
		if t, err = newArray(t, length); err != nil {
			return nil, nil, pactwire.Invalid(path+".type", "%s %s", quoteShort(p.Type), err)
		}
		outer := nativeType{base: native.base, dims: native.dims[:i+1]}
		schema = &Schema{Type: jsonArray, Details: &Details{Type: outer.String()}, Items: schema}
	}
	schema.Details.InternalType = p.InternalType
	return schema, t, nil
}

// tuple fills a tuple's properties and makes its type.
func (r *abiReader) tuple(path string, components []abiParam, schema *Schema, depth int) (*abiType, error) {
	if len(components) == 0 || len(components) > maxParams {
		return nil, pactwire.Invalid(path+".components", "must list the 1 to %d components of the tuple", maxParams)
	}
	names := make([]string, len(components))
	for i, component := range components {
		names[i] = component.Name
	}
	keys := inputNames(names)
	types := make([]*abiType, len(components))
	schema.Properties = make(map[string]*Schema, len(components))
	for i, component := range components {
		at := path + ".components[" + strconv.Itoa(i) + "]"
		if !validParamName(component.Name) {
			return nil, pactwire.Invalid(at+".name", "%s cannot name a component", quoteShort(component.Name))
		}
		property, t, err := r.schema(at, component, depth+1)
		if err != nil {
			return nil, err
		}
		property.Details.Index = &i
		schema.Properties[keys[i]], types[i] = property, t
	}
	t, err := newTuple(keys, types)
	if err != nil {
		return nil, pactwire.Invalid(path, "%s", err)
	}
	return t, nil
}

// checkIndexed refuses more indexed arguments than a log has topics for.
func checkIndexed(path string, params []Param, anonymous bool) error {
	limit := maxTopics - 1
	if anonymous {
		limit = maxTopics
	}
	if count := countIndexed(params); count > limit {
		return pactwire.Invalid(path, "has %d indexed arguments; at most %d fit a log", count, limit)
	}
	return nil
}

// indexedKey tells events of one signature apart that differ in what they index.
func indexedKey(params []Param, anonymous bool) string {
	key := make([]byte, 0, len(params)+1)
	for _, p := range params {
		if p.indexed() {
			key = append(key, 'i')
		} else {
			key = append(key, '-')
		}
	}
	if anonymous {
		key = append(key, 'a')
	}
	return string(key)
}

func (p *Param) indexed() bool {
	return p.Schema != nil && p.Schema.Details != nil && p.Schema.Details.Indexed
}

func (e *Event) anonymous() bool { return e.Details != nil && e.Details.Anonymous }

func countIndexed(params []Param) int {
	count := 0
	for i := range params {
		if params[i].indexed() {
			count++
		}
	}
	return count
}
