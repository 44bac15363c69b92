package contract

import (
	"fmt"
	"slices"
	"strconv"

	pactwire "github.com/pactwire/pactwire"
)

// maxFields is how many mistakes one answer lists.
const maxFields = 20

// problems collects what is wrong with a request, up to maxFields.
type problems struct {
	fields []pactwire.Field
}

// add notes one mistake.
func (p *problems) add(path, format string, args ...any) {
	if !p.full() {
		p.fields = append(p.fields, pactwire.Field{Path: path, Message: fmt.Sprintf(format, args...)})
	}
}

// full tells that looking further is of no use.
func (p *problems) full() bool { return len(p.fields) >= maxFields }

// err is the collected mistakes as one error, or nil.
func (p *problems) err() error { return fieldsError(p.fields) }

// fieldsError makes the error about some fields; its message is the first one.
func fieldsError(fields []pactwire.Field) error {
	if len(fields) == 0 {
		return nil
	}
	e := pactwire.Invalid(fields[0].Path, "%s", fields[0].Message)
	if more := len(fields) - 1; more > 0 {
		e.Message += fmt.Sprintf(" (and %d more)", more)
	}
	e.Fields = fields
	return e
}

// schemaReader turns schemas into types and notes what is wrong with them.
type schemaReader struct {
	problems
	fill bool // write what can be derived (types, canonical names) into the schemas
}

// params reads a list of parameters into the type that encodes them together; keys are their JSON keys.
// It returns nil when something is wrong.
func (r *schemaReader) params(path string, params []Param, keys []string) *abiType {
	types := make([]*abiType, len(params))
	good := true
	for i := range params {
		p := &params[i]
		at := path + "[" + strconv.Itoa(i) + "]"
		if !validParamName(p.Name) {
			r.add(at+".name", "must be printable, at most %d characters long, and not start with a digit", maxIdentifierLength)
			good = false
		}
		if p.Schema == nil {
			r.add(at+".schema", "is required")
			good = false
			continue
		}
		types[i] = r.schema(at+".schema", p.Schema, nil, 1)
		good = good && types[i] != nil
		if r.full() {
			return nil
		}
	}
	if !good {
		return nil
	}
	t, err := newTuple(keys, types)
	if err != nil {
		r.add(path, "%s", err)
		return nil
	}
	return t
}

// schema reads one schema. known is its native type where the enclosing array tells it; the items of an array need no
// details of their own.
func (r *schemaReader) schema(path string, s *Schema, known *nativeType, depth int) *abiType {
	if r.full() {
		return nil
	}
	if depth > maxTypeDepth {
		r.add(path, "is nested deeper than %d levels", maxTypeDepth)
		return nil
	}
	native, ok := r.native(path, s, known)
	if !ok {
		return nil
	}
	// A string can stand for any integer or boolean in a request and does for integers in an answer, so a hand-made
	// schema may say so.
	want := native.jsonType()
	if s.Type != "" && s.Type != want && (s.Type != jsonString || want == jsonArray || want == jsonObject) {
		r.add(path+".type", "is %s, but the native type %s needs %s", quoteShort(s.Type), native, want)
		return nil
	}
	if r.fill {
		if s.Type == "" {
			s.Type = want
		}
		if s.Details == nil {
			s.Details = &Details{}
		}
		s.Details.Type = native.String()
	}
	switch {
	case len(native.dims) > 0:
		return r.array(path, s, native, depth)
	case native.base == tupleName:
		return r.tuple(path, s, depth)
	}
	elementary := native.elementary
	return &elementary
}

// native finds the native type of a schema.
func (r *schemaReader) native(path string, s *Schema, known *nativeType) (nativeType, bool) {
	if s.Details == nil || s.Details.Type == "" {
		if known != nil {
			return *known, true
		}
		r.add(path+".details.type", "is required: the native type, such as uint256")
		return nativeType{}, false
	}
	native, err := parseNative(s.Details.Type)
	if err != nil {
		r.add(path+".details.type", "%s %s", quoteShort(s.Details.Type), err)
		return nativeType{}, false
	}
	if known != nil && (native.base != known.base || !slices.Equal(native.dims, known.dims)) {
		r.add(path+".details.type", "is %s, but the enclosing array holds %s", native, *known)
		return nativeType{}, false
	}
	return native, true
}

func (r *schemaReader) array(path string, s *Schema, native nativeType, depth int) *abiType {
	if s.Items == nil {
		r.add(path+".items", "is required: the schema of the elements of %s", native)
		return nil
	}
	element := native.element()
	elem := r.schema(path+".items", s.Items, &element, depth+1)
	if elem == nil {
		return nil
	}
	t, err := newArray(elem, native.dims[len(native.dims)-1])
	if err != nil {
		r.add(path+".details.type", "%s", err)
		return nil
	}
	return t
}

func (r *schemaReader) tuple(path string, s *Schema, depth int) *abiType {
	names, ok := r.components(path, s)
	if !ok {
		return nil
	}
	types := make([]*abiType, len(names))
	for i, name := range names {
		types[i] = r.schema(path+".properties."+name, s.Properties[name], nil, depth+1)
		ok = ok && types[i] != nil
	}
	if !ok {
		return nil
	}
	t, err := newTuple(names, types)
	if err != nil {
		r.add(path, "%s", err)
		return nil
	}
	return t
}

// components returns a tuple's property names in the order of their index.
func (r *schemaReader) components(path string, s *Schema) ([]string, bool) {
	if len(s.Properties) == 0 {
		r.add(path+".properties", "is required: the components of the tuple")
		return nil, false
	}
	// Sorted, so that the same mistakes are always reported in the same order.
	sorted := make([]string, 0, len(s.Properties))
	for name := range s.Properties {
		sorted = append(sorted, name)
	}
	slices.Sort(sorted)
	names := make([]string, len(sorted))
	seen := make([]bool, len(sorted))
	ok := true
	for _, name := range sorted {
		at := path + ".properties." + name
		property := s.Properties[name]
		switch {
		case property == nil:
			r.add(at, "is required: the schema of the component")
			ok = false
		case property.Details == nil || property.Details.Index == nil:
			r.add(at+".details.index", "is required: the position within the tuple, from 0")
			ok = false
		default:
			index := *property.Details.Index
			switch {
			case index < 0 || index >= len(sorted):
				r.add(at+".details.index", "must be from 0 to %d", len(sorted)-1)
				ok = false
			case seen[index]:
				r.add(at+".details.index", "%d is also the index of %s", index, names[index])
				ok = false
			case (name == "" || !validParamName(name)) && name != strconv.Itoa(index):
				r.add(at, "is no name of a component: it must be printable, or its index where it has no name")
				ok = false
			default:
				seen[index], names[index] = true, name
			}
		}
		if r.full() {
			return nil, false
		}
	}
	return names, ok
}

// quoteShort quotes a text of the request for a message.
func quoteShort(s string) string {
	const longest = 80
	if len(s) > longest {
		s = s[:longest] + "…"
	}
	return strconv.Quote(s)
}
