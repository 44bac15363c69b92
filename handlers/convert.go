package handlers

import (
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
)

// From the API's types to those of package contract, and back: From… reads what a client sent, to… makes what it gets.

func fromInterface(in gen.ContractInterfaceInput) contract.Interface {
	out := contract.Interface{
		Name: in.Name, Version: in.Version, Description: value(in.Description),
		Methods: make([]contract.Method, 0, len(in.Methods)), Events: make([]contract.Event, 0, len(in.Events)),
		Errors: fromErrors(in.Errors),
	}
	for _, m := range in.Methods {
		out.Methods = append(out.Methods, fromMethod(m))
	}
	for _, e := range in.Events {
		out.Events = append(out.Events, fromEvent(e))
	}
	return out
}

func fromMethod(in gen.MethodInput) contract.Method {
	out := contract.Method{
		Name: in.Name, Description: value(in.Description), Params: fromParams(in.Params), Returns: fromParams(in.Returns),
	}
	if in.Details != nil {
		out.Details = &contract.MethodDetails{StateMutability: value(in.Details.StateMutability)}
	}
	return out
}

func fromEvent(in gen.EventDefinitionInput) contract.Event {
	out := contract.Event{Name: in.Name, Description: value(in.Description), Params: fromParams(in.Params)}
	if in.Details != nil {
		out.Details = &contract.EventDetails{Anonymous: value(in.Details.Anonymous)}
	}
	return out
}

func fromErrors(in []gen.ErrorDefinitionInput) []contract.Error {
	out := make([]contract.Error, 0, len(in))
	for _, e := range in {
		out = append(out, contract.Error{Name: e.Name, Description: value(e.Description), Params: fromParams(e.Params)})
	}
	return out
}

func fromParams(in []gen.Param) []contract.Param {
	out := make([]contract.Param, 0, len(in))
	for i := range in {
		out = append(out, contract.Param{Name: in[i].Name, Schema: fromSchema(&in[i].Schema)})
	}
	return out
}

func fromSchema(in *gen.Schema) *contract.Schema {
	if in == nil {
		return nil
	}
	out := &contract.Schema{Type: value(in.Type), Description: value(in.Description), Items: fromSchema(in.Items)}
	if d := in.Details; d != nil {
		out.Details = &contract.Details{Type: value(d.Type), InternalType: value(d.InternalType), Indexed: value(d.Indexed), Index: d.Index}
	}
	if in.Properties != nil {
		out.Properties = make(map[string]*contract.Schema, len(in.Properties))
		for name := range in.Properties {
			member := in.Properties[name]
			out.Properties[name] = fromSchema(&member)
		}
	}
	return out
}

// toInterface makes the answer; children says whether methods, events and errors go with it.
func toInterface(in contract.Interface, children bool) gen.ContractInterface {
	out := gen.ContractInterface{
		ID: in.ID, Message: in.Message, Namespace: in.Namespace, Name: in.Name, Description: in.Description, Version: in.Version,
	}
	if !children {
		return out
	}
	methods := make([]gen.Method, 0, len(in.Methods))
	for _, m := range in.Methods {
		methods = append(methods, toMethod(m))
	}
	events := make([]gen.EventDefinition, 0, len(in.Events))
	for _, e := range in.Events {
		events = append(events, toEvent(e))
	}
	errors := make([]gen.ErrorDefinition, 0, len(in.Errors))
	for _, e := range in.Errors {
		errors = append(errors, gen.ErrorDefinition{
			ID: e.ID, Contract: e.Contract, Namespace: present(e.Namespace), Name: e.Name, Pathname: e.Pathname, Description: e.Description,
			Params: toParams(e.Params),
		})
	}
	out.Methods, out.Events, out.Errors = &methods, &events, &errors
	return out
}

func toMethod(m contract.Method) gen.Method {
	out := gen.Method{
		ID: m.ID, Contract: m.Contract, Namespace: present(m.Namespace), Name: m.Name, Pathname: m.Pathname, Description: m.Description,
		Params: toParams(m.Params), Returns: toParams(m.Returns),
	}
	if m.Details != nil {
		out.Details = &gen.MethodDetails{StateMutability: present(m.Details.StateMutability)}
	}
	return out
}

func toEvent(e contract.Event) gen.EventDefinition {
	return gen.EventDefinition{
		ID: e.ID, Contract: e.Contract, Namespace: present(e.Namespace), Name: e.Name, Pathname: e.Pathname, Description: e.Description,
		Params: toParams(e.Params), Details: toEventDetails(e.Details),
	}
}

func toEventDetails(d *contract.EventDetails) *gen.EventDetails {
	if d == nil || !d.Anonymous {
		return nil
	}
	return &gen.EventDetails{Anonymous: &d.Anonymous}
}

func toParams(in []contract.Param) []gen.Param {
	out := make([]gen.Param, 0, len(in))
	for _, p := range in {
		param := gen.Param{Name: p.Name}
		if s := toSchema(p.Schema); s != nil {
			param.Schema = *s
		}
		out = append(out, param)
	}
	return out
}

func toSchema(in *contract.Schema) *gen.Schema {
	if in == nil {
		return nil
	}
	out := &gen.Schema{Type: present(in.Type), Description: present(in.Description), Items: toSchema(in.Items)}
	if d := in.Details; d != nil {
		out.Details = &gen.SchemaDetails{Type: present(d.Type), InternalType: present(d.InternalType), Index: d.Index}
		if d.Indexed {
			out.Details.Indexed = &d.Indexed
		}
	}
	if in.Properties != nil {
		out.Properties = make(map[string]gen.Schema, len(in.Properties))
		for name, member := range in.Properties {
			if s := toSchema(member); s != nil {
				out.Properties[name] = *s
			}
		}
	}
	return out
}

// value is the zero value for nil.
func value[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}

// reference names an interface by its id.
func reference(id *uuid.UUID) *gen.InterfaceReference {
	if id == nil {
		return nil
	}
	return &gen.InterfaceReference{ID: id}
}
