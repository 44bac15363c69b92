package openapi

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/pactwire/pactwire/contract"
)

// Subject is what a document is about.
type Subject struct {
	Name      string // of the API
	Namespace string
	Server    string // address of the API, such as http://host/api/v1/namespaces/default/apis/simple
	Located   bool   // the API has a location: requests bring none
	Interface contract.Interface
}

// Build makes the OpenAPI document of a contract API, as JSON.
func Build(s Subject) ([]byte, error) {
	compiled, err := contract.Compile(s.Interface)
	if err != nil {
		return nil, fmt.Errorf("compile the interface of API %s: %w", s.Name, err)
	}
	b := &builder{subject: s, paths: object{}, schemas: object{}, taken: map[string]bool{}}
	if err := borrow(b.schemas, "Error", "Invocation", "Operation", "ContractListener", "EventListenerInput", "Location"); err != nil {
		return nil, err
	}
	for name := range b.schemas {
		b.taken[fold(name)] = true
	}
	for _, m := range compiled.Methods() {
		b.method(m)
	}
	for _, e := range compiled.Events() {
		b.event(e)
	}
	raw, err := json.Marshal(b.document())
	if err != nil {
		return nil, fmt.Errorf("encode the document of API %s: %w", s.Name, err)
	}
	return raw, nil
}

type builder struct {
	subject Subject
	paths   object
	schemas object
	taken   map[string]bool // names given so far, folded
}

func (b *builder) document() object {
	description := b.subject.Interface.Description
	if description == "" {
		description = "REST API of the contract interface " + b.subject.Interface.Name + " " + b.subject.Interface.Version + "."
	}
	return object{
		"openapi": "3.0.3",
		"info": object{
			"title": b.subject.Name, "version": b.subject.Interface.Version, "description": description,
			"license": object{"name": "As the contract's", "url": b.subject.Server},
		},
		"servers":  []any{object{"url": b.subject.Server}},
		"security": []any{object{}, object{"basic": []any{}}, object{"bearer": []any{}}},
		"tags": []any{
			object{"name": "query", "description": "Read from the contract; the answer comes at once"},
			object{"name": "invoke", "description": "Send a transaction to the contract; the answer is the id of an operation"},
			object{"name": "listeners", "description": "Listen to the contract's events"},
		},
		"paths": b.paths,
		"components": object{
			"schemas": b.schemas,
			"securitySchemes": object{
				"basic": object{"type": "http", "scheme": "basic"}, "bearer": object{"type": "http", "scheme": "bearer"},
			},
			"responses": object{
				"Error": object{
					"description": "What went wrong, and what would be right",
					"content":     object{"application/problem+json": object{"schema": ref("Error")}},
				},
			},
		},
	}
}

func (b *builder) method(m *contract.CompiledMethod) {
	path, about := m.Method.Pathname, m.Method.Description
	if about == "" {
		about = "`" + m.Signature + "`"
	}
	names := inputNames(m.Method.Params)
	in := b.name(path + "_input")
	inputSchema := paramsSchema(m.Method.Params, names, input)
	if example := exampleInput(m.Method.Params, names); example != nil {
		inputSchema["example"] = example
	}
	b.schemas[in] = inputSchema

	out := b.name(path + "_output")
	b.schemas[out] = paramsSchema(m.Method.Returns, contract.OutputNames(m.Method.Returns), output)
	query := b.name("query_" + path)
	request := b.name(query + "_request")
	b.schemas[request] = b.request(m, in, object{
		"blockNumber": described("string", "A block number, or latest, pending, safe, finalized, earliest"),
	}, "Address that calls")
	b.paths["/query/"+path] = object{"post": operation("query", query, "Query "+path, about, request, object{
		"200": answer("What the method returned", ref(out)),
	})}
	if m.ReadOnly() {
		return
	}
	invoke := b.name("invoke_" + path)
	request = b.name(invoke + "_request")
	schema := b.request(m, in, object{"nonce": described("string", "Nonce of the transaction; given by the service when absent")}, "Address that signs")
	schema["properties"].(object)["idempotencyKey"] = described("string", "A repeat with the same key and body does nothing more")
	b.schemas[request] = schema
	post := operation("invoke", invoke, "Invoke "+path, about, request, object{
		"200": answer("The outcome, when the request asked to wait for it", ref("Operation")),
		"202": answer("Stored; it will be done whatever happens to this node", ref("Invocation")),
	})
	post["parameters"] = []any{object{
		"name": "confirm", "in": "query", "description": "Wait for the outcome", "schema": object{"type": "boolean"},
	}}
	b.paths["/invoke/"+path] = object{"post": post}
}

// request describes the body of an invoke or a query.
func (b *builder) request(m *contract.CompiledMethod, input string, options object, key string) object {
	options["gas"] = described("string", "Gas limit; estimated when absent")
	options["gasPrice"] = described("string", "Price of gas in wei, for a transaction before EIP-1559")
	options["maxFeePerGas"] = described("string", "The most to pay for gas in wei (EIP-1559)")
	options["maxPriorityFeePerGas"] = described("string", "The tip for gas in wei (EIP-1559)")
	if m.Payable() {
		options["value"] = described("string", "Native currency to send along, in wei")
	}
	properties := object{
		"input":   ref(input),
		"options": object{"type": "object", "properties": options, "additionalProperties": false},
		"key":     described("string", key),
	}
	var required []string
	if len(m.Method.Params) > 0 {
		required = append(required, "input")
	}
	if !b.subject.Located {
		properties["location"] = ref("Location")
		required = append(required, "location")
	}
	schema := object{"type": "object", "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	example := object{}
	if e, ok := b.schemas[input].(object)["example"]; ok || len(m.Method.Params) == 0 {
		if e == nil {
			e = object{}
		}
		example["input"] = e
		if !b.subject.Located {
			example["location"] = object{"address": "0x5fbdb2315678afecb367f032d93f642f64180aa3"}
		}
		schema["example"] = example
	}
	return schema
}

func (b *builder) event(e *contract.CompiledEvent) {
	path := e.Event.Pathname
	about := e.Event.Description
	if about == "" {
		about = "`" + e.Signature + "`"
	}
	listener := ref("ContractListener")
	b.paths["/listeners/"+path] = object{
		"get": object{
			"tags": []any{"listeners"}, "operationId": b.name("list_listeners_" + path), "summary": "List listeners of " + path, "description": about,
			"responses": responses(object{"200": answer("The listeners, newest first", object{"type": "array", "items": listener})}),
		},
		"post": operation("listeners", b.name("create_listener_"+path), "Listen to "+path, about, "EventListenerInput", object{
			"200": answer("The listener", listener),
		}),
	}
}

// name gives a name that stays unique when a generator makes an identifier of it, whatever it does with case and punctuation.
func (b *builder) name(wanted string) string {
	safe := strings.Map(func(r rune) rune {
		if r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_' // a dollar sign is a letter in Solidity
	}, wanted)
	name := safe
	for n := 2; b.taken[fold(name)]; n++ {
		name = safe + "_v" + strconv.Itoa(n)
	}
	b.taken[fold(name)] = true
	return name
}

func fold(name string) string {
	return strings.ToLower(strings.ReplaceAll(name, "_", ""))
}

func inputNames(params []contract.Param) []string {
	names := make([]string, len(params))
	for i := range params {
		names[i] = contract.InputName(params, i)
	}
	return names
}

// exampleInput is nil when some parameter has no example of a useful size.
func exampleInput(params []contract.Param, names []string) object {
	example := object{}
	for i := range params {
		value := contract.Example(params[i].Schema)
		if value == nil {
			return nil
		}
		example[names[i]] = stringify(params[i].Schema, value)
	}
	return example
}

// stringify fits an example to the schema of the value, where wide integers are strings.
func stringify(s *contract.Schema, value json.RawMessage) any {
	var decoded any
	d := json.NewDecoder(strings.NewReader(string(value)))
	d.UseNumber()
	if d.Decode(&decoded) != nil {
		return value
	}
	return fit(valueSchema(s, input), decoded)
}

func fit(schema object, value any) any {
	switch value := value.(type) {
	case json.Number:
		if schema["type"] == "string" {
			return value.String()
		}
	case []any:
		items, ok := schema["items"].(object)
		for i := range value {
			if ok {
				value[i] = fit(items, value[i])
			}
		}
	case map[string]any:
		properties, ok := schema["properties"].(object)
		for name := range value {
			if member, has := properties[name].(object); ok && has {
				value[name] = fit(member, value[name])
			}
		}
	}
	return value
}

func operation(tag, id, summary, description, request string, good object) object {
	return object{
		"tags": []any{tag}, "operationId": id, "summary": summary, "description": description,
		"requestBody": object{"required": true, "content": object{"application/json": object{"schema": ref(request)}}},
		"responses":   responses(good),
	}
}

func responses(good object) object {
	good["4XX"] = object{"$ref": "#/components/responses/Error"}
	good["default"] = object{"$ref": "#/components/responses/Error"}
	return good
}

func answer(description string, schema object) object {
	return object{"description": description, "content": object{"application/json": object{"schema": schema}}}
}

func described(kind, description string) object {
	return object{"type": kind, "description": description}
}

func ref(schema string) object { return object{"$ref": "#/components/schemas/" + schema} }
