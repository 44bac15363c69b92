package contract

import (
	"encoding/json"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	pactwire "github.com/pactwire/pactwire"
)

// Compiled is an interface made ready for work: everything is parsed and hashed once. It is immutable.
type Compiled struct {
	Errors  *ErrorTable // all custom errors, for reverts
	methods []*CompiledMethod
	events  []*CompiledEvent
	method  map[string]*CompiledMethod // by pathname and by signature
	event   map[string]*CompiledEvent
}

// CompiledMethod encodes calls of one method and decodes their answers. It is immutable.
type CompiledMethod struct {
	Method    Method      // the definition it was made from
	Selector  [4]byte     // first bytes of the call data
	Signature string      // such as transfer(address,uint256)
	Errors    *ErrorTable // decodes its reverts
	params    *abiType
	returns   *abiType
}

// Compile makes an interface ready for work. Definitions without a pathname get the one that AssignPathnames would
// give. The interface must not be changed afterwards. Errors are those of Validate, without its rules for names and
// versions of interfaces.
func Compile(i Interface) (*Compiled, error) {
	r := &schemaReader{}
	c := &Compiled{
		methods: make([]*CompiledMethod, 0, len(i.Methods)), method: make(map[string]*CompiledMethod, 2*len(i.Methods)),
		events: make([]*CompiledEvent, 0, len(i.Events)), event: make(map[string]*CompiledEvent, 2*len(i.Events)),
	}
	errors := make([]*compiledError, 0, len(i.Errors))
	for n := range i.Errors {
		errors = append(errors, compileError(r, "errors["+strconv.Itoa(n)+"]", i.Errors[n]))
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	c.Errors = newErrorTable(errors)
	for n := range i.Methods {
		c.methods = append(c.methods, compileMethod(r, "methods["+strconv.Itoa(n)+"]", i.Methods[n], c.Errors))
	}
	for n := range i.Events {
		c.events = append(c.events, compileEvent(r, "events["+strconv.Itoa(n)+"]", i.Events[n]))
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	c.fillPathnames()
	c.buildIndex()
	return c, nil
}

// fillPathnames names what a generated interface leaves without a pathname.
func (c *Compiled) fillPathnames() {
	var names Interface
	for _, m := range c.methods {
		names.Methods = append(names.Methods, Method{Name: m.Method.Name})
	}
	for _, e := range c.events {
		names.Events = append(names.Events, Event{Name: e.Event.Name})
	}
	names.AssignPathnames()
	for n, m := range c.methods {
		if m.Method.Pathname == "" {
			m.Method.Pathname = names.Methods[n].Pathname
		}
	}
	for n, e := range c.events {
		if e.Event.Pathname == "" {
			e.Event.Pathname = names.Events[n].Pathname
		}
	}
}

// buildIndex fills the maps. The first definition keeps a key; a pathname and a signature cannot be the same.
func (c *Compiled) buildIndex() {
	for _, m := range c.methods {
		for _, key := range [...]string{m.Method.Pathname, m.Signature} {
			if c.method[key] == nil {
				c.method[key] = m
			}
		}
	}
	for _, e := range c.events {
		for _, key := range [...]string{e.Event.Pathname, e.Signature} {
			if c.event[key] == nil {
				c.event[key] = e
			}
		}
	}
}

// CompileMethod makes one method ready for work, as inline requests need it; errs are the custom errors that it may
// revert with. Fields of errors start with method, such as method.params[0].schema.
func CompileMethod(m Method, errs []Error) (*CompiledMethod, error) {
	r := &schemaReader{}
	errors := make([]*compiledError, 0, len(errs))
	for n := range errs {
		errors = append(errors, compileError(r, "errors["+strconv.Itoa(n)+"]", errs[n]))
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	compiled := compileMethod(r, "method", m, newErrorTable(errors))
	if err := r.err(); err != nil {
		return nil, err
	}
	return compiled, nil
}

// CompileEvent makes one event ready for work. Fields of errors start with event.
func CompileEvent(e Event) (*CompiledEvent, error) {
	r := &schemaReader{}
	compiled := compileEvent(r, "event", e)
	if err := r.err(); err != nil {
		return nil, err
	}
	return compiled, nil
}

// compileMethod returns nil when it has noted a mistake.
func compileMethod(r *schemaReader, path string, m Method, errors *ErrorTable) *CompiledMethod {
	params, returns := r.method(path, &m)
	if params == nil || returns == nil {
		return nil
	}
	signature := m.Name + params.String()
	compiled := &CompiledMethod{Method: m, Signature: signature, Errors: errors, params: params, returns: returns}
	copy(compiled.Selector[:], crypto.Keccak256([]byte(signature)))
	return compiled
}

// compileEvent returns nil when it has noted a mistake.
func compileEvent(r *schemaReader, path string, e Event) *CompiledEvent {
	params := r.event(path, &e)
	if params == nil {
		return nil
	}
	compiled := &CompiledEvent{
		Event: e, Signature: e.Name + params.String(), Anonymous: e.anonymous(),
		NumIndexed: countIndexed(e.Params), params: params, indexed: make([]bool, len(e.Params)),
	}
	for i := range e.Params {
		compiled.indexed[i] = e.Params[i].indexed()
	}
	if !compiled.Anonymous {
		compiled.Topic0 = common.BytesToHash(crypto.Keccak256([]byte(compiled.Signature)))
	}
	return compiled
}

// Payable tells whether native currency may be sent along: the method is payable, or nothing is known (an inline method
// without details), and then the chain decides.
func (m *CompiledMethod) Payable() bool {
	mutability := m.mutability()
	return mutability == "" || mutability == mutabilityPayable
}

// ReadOnly tells that the method is known to change nothing: view or pure.
func (m *CompiledMethod) ReadOnly() bool {
	mutability := m.mutability()
	return mutability == mutabilityView || mutability == mutabilityPure
}

func (m *CompiledMethod) mutability() string {
	if m.Method.Details == nil {
		return ""
	}
	return m.Method.Details.StateMutability
}

// Encode makes the call data from an input object whose keys are the InputNames of the parameters. Without parameters
// the input may be absent or null. Mistakes are a KindInvalid error with one field each, up to maxFields.
func (m *CompiledMethod) Encode(input json.RawMessage) ([]byte, error) {
	return encodeArguments(m.Selector[:], m.params, input, false)
}

// EncodeArgs is Encode without the selector.
func (m *CompiledMethod) EncodeArgs(input json.RawMessage) ([]byte, error) {
	return encodeArguments(nil, m.params, input, false)
}

// DecodeOutput turns what a call returned into the answer of a query, an object whose keys are OutputNames:
// {"output":…} for one return value, {} for none.
func (m *CompiledMethod) DecodeOutput(data []byte) (json.RawMessage, error) {
	if len(m.returns.fields) == 0 {
		return json.RawMessage("{}"), nil
	}
	if len(data) == 0 && m.returns.size > 0 {
		const message = "the address holds no such contract: the call returned no data"
		return nil, &pactwire.Error{
			Kind: pactwire.KindInvalid, Code: "no_contract", Message: message,
			Fields: []pactwire.Field{{Path: "location.address", Message: message}},
		}
	}
	d := newDecoder(data)
	if err := d.at(m.returns, 0); err != nil {
		return nil, badData("bad_return_data", "what "+m.Method.Name+" returned does not fit its return types", err)
	}
	return d.out, nil
}

// badData is the error for bytes of the chain that are not what the interface says.
func badData(code, message string, err error) error {
	return pactwire.Errorf(pactwire.KindBadUpstream, code, "%s: %s", message, err)
}
