package openapi

import (
	"encoding/json"
	"fmt"

	"github.com/pactwire/pactwire/contract"
)

// Subject is what a document is about.
type Subject struct {
	Name      string // of the API
	Namespace string
	Server    string // address of the API, such as http://host/api/v1/namespaces/default/apis/simple
	Located   bool   // the API has a location: requests bring none
	Views     bool   // view methods get invoke paths too
	Interface contract.Interface
}

// Build makes the OpenAPI document of a contract API, as JSON.
func Build(s Subject) ([]byte, error) {
	compiled, err := contract.Compile(s.Interface)
	if err != nil {
		return nil, fmt.Errorf("compile the interface of API %s: %w", s.Name, err)
	}
	pool, err := lend()
	if err != nil {
		return nil, err
	}
	b := &builder{
		subject: s, pool: pool, schemas: object{}, parameters: object{}, headers: object{}, structs: map[string]string{},
		operations: newNames(), components: newNames(),
	}
	// The names of operations come first and those of the service's own schemas next: generators make types of all of them.
	queries, invokes := make([]string, len(compiled.Methods())), make([]string, len(compiled.Methods()))
	for i, m := range compiled.Methods() {
		queries[i] = b.operations.operation("query_" + m.Method.Pathname)
		if !m.ReadOnly() || s.Views {
			invokes[i] = b.operations.operation("invoke_" + m.Method.Pathname)
		}
	}
	lists, creates := make([]string, len(compiled.Events())), make([]string, len(compiled.Events()))
	for i, e := range compiled.Events() {
		lists[i] = b.operations.operation("list_listeners_" + e.Event.Pathname)
		creates[i] = b.operations.operation("create_listener_" + e.Event.Pathname)
	}
	b.components.follow(b.operations)
	for name := range pool.schemas {
		b.components.reserve(name)
	}
	for name := range sharedSchemas {
		b.components.reserve(name)
	}
	for i, m := range compiled.Methods() {
		b.method(m, queries[i], invokes[i])
	}
	for i, e := range compiled.Events() {
		b.event(e, lists[i], creates[i])
	}
	return appendJSON(make([]byte, 0, 16<<10+len(compiled.Methods())*4<<10), b.document()), nil
}

// builder collects the parts of one document.
type builder struct {
	subject    Subject
	pool       *lending
	paths      ordered
	schemas    object
	parameters object
	headers    object
	structs    map[string]string // content of a struct's schema, after its wanted name -> the name it has
	operations *names
	components *names
}

func (b *builder) document() ordered {
	components := object{
		"schemas": b.schemas,
		"securitySchemes": object{
			"basic": object{"type": "http", "scheme": "basic"}, "bearer": object{"type": "http", "scheme": "bearer"},
		},
	}
	if len(b.paths) > 0 {
		components["responses"] = object{
			"Error": object{
				"description": "What went wrong, and what would be right",
				"content":     object{"application/problem+json": object{"schema": b.ref("Error")}},
			},
		}
	}
	if len(b.parameters) > 0 {
		components["parameters"], components["headers"] = b.parameters, b.headers
	}
	return ordered{
		{"openapi", "3.0.3"},
		{"info", b.info()},
		{"servers", []any{object{"url": b.subject.Server}}},
		{"security", []any{object{}, object{"basic": []any{}}, object{"bearer": []any{}}}},
		{"tags", []any{
			object{"name": "query", "description": "Read from the contract; the answer comes at once"},
			object{"name": "invoke", "description": "Send a transaction to the contract; the answer is the id of an operation"},
			object{"name": "listeners", "description": "Listen to the contract's events"},
		}},
		{"paths", b.paths},
		{"components", components},
	}
}

func (b *builder) info() ordered {
	about := b.subject.Interface
	description, version := about.Description, about.Version
	if description == "" {
		description = "REST API of the contract interface " + about.Name + " " + version + "."
	}
	if version == "" {
		version = "0" // an interface that was never broadcast; the document must have one
	}
	return ordered{
		{"title", b.subject.Name},
		{"version", version},
		{"description", description},
		// An ABI does not tell what its contract may be used for. This is how SPDX says so.
		{"license", object{"name": "NOASSERTION", "url": "https://spdx.github.io/spdx-spec/v2.3/package-information/"}},
	}
}

// ref refers to a schema that the service's document or sharedSchemas has, and takes it into this document with all that it needs.
func (b *builder) ref(name string) json.RawMessage {
	if _, have := b.schemas[name]; !have {
		if shared, ok := sharedSchemas[name]; ok {
			b.schemas[name] = shared
			return ref(name)
		}
		s := b.pool.schemas[name]
		b.schemas[name] = s.text
		for _, needed := range s.needs {
			b.ref(needed)
		}
	}
	return ref(name)
}

// operation describes what all operations have; body is nil for one without a request body.
func operation(tag, id, summary, description string, parameters []any, body, good ordered) ordered {
	o := make(ordered, 0, 7)
	o = append(o, member{"tags", []string{tag}}, member{"operationId", id}, member{"summary", summary}, member{"description", description})
	if parameters != nil {
		o = append(o, member{"parameters", parameters})
	}
	if body != nil {
		o = append(o, member{"requestBody", ordered{{"required", true}, {"content", ordered{{"application/json", body}}}}})
	}
	return append(o, member{"responses", append(good, member{"4XX", errorAnswer}, member{"default", errorAnswer})})
}

// errorAnswer is the answer to every request that fails.
var errorAnswer = json.RawMessage(`{"$ref":"#/components/responses/Error"}`)

func answer(description string, schema any) ordered {
	return ordered{{"description", description}, {"content", ordered{{"application/json", ordered{{"schema", schema}}}}}}
}

func described(kind, description string) object {
	return object{"type": kind, "description": description}
}

// ref refers to a schema of the document; its name needs no escaping.
func ref(schema string) json.RawMessage {
	return json.RawMessage(`{"$ref":"#/components/schemas/` + schema + `"}`)
}

// inputNames are the names of parameters in an input object.
func inputNames(params []contract.Param) []string {
	names := make([]string, len(params))
	for i := range params {
		names[i] = contract.InputName(params, i)
	}
	return names
}
