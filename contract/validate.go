package contract

import "strconv"

// Validate checks an interface before it is broadcast, hand-made or generated, and completes it: absent lists become
// empty ones, schema types and canonical native types are filled in. The error is a KindInvalid one that lists up to
// maxFields mistakes by their place, such as methods[0].params[1].schema.properties. A schema type may be absent, as in
// interfaces that FireFly generated.
func (i *Interface) Validate() error {
	r := &schemaReader{fill: true}
	if !ValidName(i.Name) {
		r.add("name", "must be 1 to %d letters, digits, dots, dashes or underscores, with a letter or digit at both ends", maxNameLength)
	}
	if !ValidVersion(i.Version) {
		r.add("version", "must be 1 to %d printable characters", maxVersionLength)
	}
	i.fillLists()
	if !r.sized("methods", len(i.Methods)) || !r.sized("events", len(i.Events)) || !r.sized("errors", len(i.Errors)) {
		return r.err()
	}
	seen := make(map[string]string)
	for n := range i.Methods {
		path := "methods[" + strconv.Itoa(n) + "]"
		params, _ := r.method(path, &i.Methods[n])
		r.unique(seen, path, "method", i.Methods[n].Name, params, "")
	}
	for n := range i.Events {
		e := &i.Events[n]
		path := "events[" + strconv.Itoa(n) + "]"
		r.unique(seen, path, "event", e.Name, r.event(path, e), indexedKey(e.Params, e.anonymous()))
	}
	for n := range i.Errors {
		path := "errors[" + strconv.Itoa(n) + "]"
		r.unique(seen, path, "error", i.Errors[n].Name, r.customError(path, &i.Errors[n]), "")
	}
	return r.err()
}

// sized bounds the work that one interface causes.
func (r *schemaReader) sized(path string, count int) bool {
	if count > maxEntries {
		r.add(path, "has more than %d entries", maxEntries)
		return false
	}
	return true
}

// fillLists makes absent lists empty, so that they are written as [].
func (i *Interface) fillLists() {
	if i.Methods == nil {
		i.Methods = []Method{}
	}
	if i.Events == nil {
		i.Events = []Event{}
	}
	if i.Errors == nil {
		i.Errors = []Error{}
	}
	for n := range i.Methods {
		fillParams(&i.Methods[n].Params)
		fillParams(&i.Methods[n].Returns)
	}
	for n := range i.Events {
		fillParams(&i.Events[n].Params)
	}
	for n := range i.Errors {
		fillParams(&i.Errors[n].Params)
	}
}

func fillParams(params *[]Param) {
	if *params == nil {
		*params = []Param{}
	}
}

// unique notes a signature that was there before.
func (r *schemaReader) unique(seen map[string]string, path, what, name string, params *abiType, variant string) {
	if params == nil {
		return // a mistake that is noted already
	}
	key := what + " " + name + params.String() + variant
	if first, again := seen[key]; again {
		r.add(path+".name", "%s%s is the same %s as %s", name, quoteTail(params.String()), what, first)
		return
	}
	seen[key] = path
}

// quoteTail bounds a long parameter list within a message.
func quoteTail(s string) string {
	const longest = 200
	if len(s) > longest {
		return s[:longest] + "…"
	}
	return s
}

// name checks what stands in a signature.
func (r *schemaReader) name(path, name string) {
	if !validIdentifier(name) {
		r.add(path+".name", "must be a Solidity identifier: letters, digits, _ and $, not starting with a digit")
	}
}

// list reads a parameter list after checking its length.
func (r *schemaReader) list(path string, params []Param, keys func([]Param) []string) *abiType {
	if len(params) > maxParams {
		r.add(path, "has more than %d parameters", maxParams)
		return nil
	}
	return r.params(path, params, keys(params))
}

// method checks a method and returns the types of its parameters and return values, nil where something is wrong.
func (r *schemaReader) method(path string, m *Method) (params, returns *abiType) {
	r.name(path, m.Name)
	if m.Details != nil {
		switch m.Details.StateMutability {
		case "", mutabilityPure, mutabilityView, mutabilityNonpayable, mutabilityPayable:
		default:
			r.add(path+".details.stateMutability", "must be pure, view, nonpayable or payable")
		}
	}
	return r.list(path+".params", m.Params, paramKeys), r.list(path+".returns", m.Returns, OutputNames)
}

// event checks an event and returns the type of its arguments.
func (r *schemaReader) event(path string, e *Event) *abiType {
	r.name(path, e.Name)
	params := r.list(path+".params", e.Params, paramKeys)
	limit := maxTopics - 1
	if e.anonymous() {
		limit = maxTopics
	}
	if count := countIndexed(e.Params); count > limit {
		r.add(path+".params", "has %d indexed arguments; at most %d fit a log", count, limit)
	}
	return params
}

// customError checks an error and returns the type of its arguments.
func (r *schemaReader) customError(path string, e *Error) *abiType {
	r.name(path, e.Name)
	return r.list(path+".params", e.Params, paramKeys)
}

// paramKeys is InputName for a whole list.
func paramKeys(params []Param) []string {
	names := make([]string, len(params))
	for i := range params {
		names[i] = params[i].Name
	}
	return inputNames(names)
}
