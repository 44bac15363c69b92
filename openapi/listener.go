package openapi

import "github.com/pactwire/pactwire/contract"

// event adds the path of an event's listeners.
func (b *builder) event(e *contract.CompiledEvent, list, create string) {
	path, about := e.Event.Pathname, describe(e.Event.Description, e.Signature)
	listener := b.ref("ContractListener")
	request := "EventListenerInput"
	if b.subject.Located {
		request = locatedListenerInput
	}
	b.parameters["Limit"], b.parameters["After"], b.headers["NextAfter"] = b.pool.limit, b.pool.after, b.pool.nextAfter
	page := answer("The listeners, newest first", object{"type": "array", "items": listener})
	page = append(page, member{"headers", object{"X-Next-After": object{"$ref": "#/components/headers/NextAfter"}}})
	b.paths = append(b.paths, member{"/listeners/" + path, ordered{
		{"get", operation("listeners", list, "List listeners of "+path, about,
			[]any{object{"$ref": "#/components/parameters/Limit"}, object{"$ref": "#/components/parameters/After"}}, nil,
			ordered{{"200", page}})},
		{"post", operation("listeners", create, "Listen to "+path, about, nil,
			ordered{{"schema", b.ref(request)}, {"example", object{"options": object{"firstEvent": "oldest"}}}},
			ordered{{"200", answer("The listener", listener)}})},
	}})
}
