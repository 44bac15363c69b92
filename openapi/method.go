package openapi

import (
	"encoding/json"
	"maps"

	"github.com/pactwire/pactwire/contract"
)

const exampleAddress = "0x5fbdb2315678afecb367f032d93f642f64180aa3"

// sharedSchemas are the options of requests, the same for all contracts. A method that is not payable takes no value.
var sharedSchemas = map[string]object{
	"QueryOptions":         options(queryOption),
	"PayableQueryOptions":  options(queryOption, valueOption),
	"InvokeOptions":        options(invokeOption),
	"PayableInvokeOptions": options(invokeOption, valueOption),
}

var (
	queryOption = object{"blockNumber": object{
		"type": "string", "pattern": "^(0x[0-9a-fA-F]+|[0-9]+|latest|pending|safe|finalized|earliest)$",
		"description": "A block number, or latest, pending, safe, finalized, earliest",
	}}
	invokeOption = object{"nonce": integerText("Nonce of the transaction; given by the service when absent")}
	valueOption  = object{"value": integerText("Native currency to send along, in wei")}
)

// What is the same in all requests is encoded once.
var (
	confirmParameter = json.RawMessage(appendJSON(nil, ordered{
		{"name", "confirm"}, {"in", "query"}, {"description", "Wait for the outcome"}, {"schema", ordered{{"type", "boolean"}}},
	}))
	caller         = json.RawMessage(appendJSON(nil, described("string", "Address that calls")))
	signer         = json.RawMessage(appendJSON(nil, described("string", "Address that signs")))
	idempotencyKey = member{"idempotencyKey", json.RawMessage(appendJSON(nil, ordered{
		{"type", "string"}, {"maxLength", 256}, {"description", "A repeat with the same key and body does nothing more"},
	}))}
)

// options describes the options of a request: those that all have, and more.
func options(more ...object) object {
	properties := object{
		"gas":                  integerText("Gas limit; estimated when absent"),
		"gasPrice":             integerText("Price of gas in wei, for a transaction before EIP-1559"),
		"maxFeePerGas":         integerText("The most to pay for gas in wei (EIP-1559)"),
		"maxPriorityFeePerGas": integerText("The tip for gas in wei (EIP-1559)"),
	}
	for _, m := range more {
		maps.Copy(properties, m)
	}
	return object{"type": "object", "properties": properties, "additionalProperties": false}
}

func integerText(description string) object {
	return object{"type": "string", "pattern": "^(0x[0-9a-fA-F]+|[0-9]+)$", "description": description}
}

// method adds the paths of one method: query always, invoke where it may change something.
func (b *builder) method(m *contract.CompiledMethod, query, invoke string) {
	path, about := m.Method.Pathname, describe(m.Method.Description, m.Signature)
	if d := m.Method.Details; d != nil && d.StateMutability != "" {
		about += "\n\nState mutability: " + d.StateMutability + "."
	}
	names := inputNames(m.Method.Params)
	in, out := b.components.unique(path+"_input"), b.components.unique(path+"_output")
	b.schemas[in] = b.params(m.Method.Params, names, input)
	b.schemas[out] = b.params(m.Method.Returns, contract.OutputNames(m.Method.Returns), output)
	example := b.example(m.Method.Params, names)

	kind := "QueryOptions"
	if m.Payable() {
		kind = "PayableQueryOptions"
	}
	request := b.components.unique(query + "_request")
	b.schemas[request] = b.request(m, in, kind, caller)
	b.paths = append(b.paths, member{"/query/" + path, ordered{{"post", operation("query", query, "Query "+path, about, nil,
		body(request, example), ordered{{"200", answer("What the method returned", ref(out))}})}}})
	if invoke == "" {
		return
	}
	kind = "InvokeOptions"
	if m.Payable() {
		kind = "PayableInvokeOptions"
	}
	request = b.components.unique(invoke + "_request")
	b.schemas[request] = b.request(m, in, kind, signer, idempotencyKey)
	b.paths = append(b.paths, member{"/invoke/" + path, ordered{{"post", operation("invoke", invoke, "Invoke "+path, about, []any{confirmParameter},
		body(request, example), ordered{
			{"200", answer("The outcome, when the request asked to wait for it", b.ref("Operation"))},
			{"202", answer("Stored; it will be done whatever happens to this node", b.ref("Invocation"))},
		})}}})
}

// request describes the body of an invoke or a query.
func (b *builder) request(m *contract.CompiledMethod, input, options string, key any, more ...member) ordered {
	properties := ordered{{"input", ref(input)}}
	var required []string
	if len(m.Method.Params) > 0 {
		required = append(required, "input")
	}
	if !b.subject.Located {
		properties = append(properties, member{"location", b.ref("Location")})
		required = append(required, "location")
	}
	properties = append(append(properties, member{"options", b.ref(options)}, member{"key", key}), more...)
	schema := ordered{{"type", "object"}}
	if len(required) > 0 {
		schema = append(schema, member{"required", required})
	}
	return append(schema, member{"properties", properties})
}

// example is a request that works when sent as it is; nil when some parameter has no example of a useful size.
func (b *builder) example(params []contract.Param, names []string) ordered {
	arguments, ok := exampleInput(params, names)
	if !ok {
		return nil
	}
	example := ordered{{"input", arguments}}
	if !b.subject.Located {
		example = append(example, member{"location", ordered{{"address", exampleAddress}}})
	}
	return example
}

func body(request string, example ordered) ordered {
	content := ordered{{"schema", ref(request)}}
	if example != nil {
		content = append(content, member{"example", example})
	}
	return content
}

func describe(description, signature string) string {
	if description == "" {
		return "`" + signature + "`"
	}
	return description + "\n\n`" + signature + "`"
}
