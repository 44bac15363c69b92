package openapi

import (
	_ "embed" // for the document
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// YAML is the service's document as it was written.
//
//go:embed openapi.yaml
var YAML []byte

// AsyncYAML describes the frames of WebSockets and streams, as it was written (AsyncAPI 3.0).
//
//go:embed asyncapi.yaml
var AsyncYAML []byte

// service reads the service's document once, without the hints to the code generator.
var service = sync.OnceValues(func() (object, error) {
	var doc object
	if err := yaml.Unmarshal(YAML, &doc); err != nil {
		return nil, fmt.Errorf("read openapi.yaml: %w", err)
	}
	withoutHints(doc)
	return doc, nil
})

// JSON is the service's document as JSON, without the hints to the code generator.
func JSON() ([]byte, error) {
	doc, err := service()
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(doc)
	if err != nil {
		return nil, fmt.Errorf("encode the document: %w", err)
	}
	return raw, nil
}

func withoutHints(v any) {
	switch v := v.(type) {
	case object:
		for key, member := range v {
			if strings.HasPrefix(key, "x-go-") {
				delete(v, key)
				continue
			}
			withoutHints(member)
		}
	case []any:
		for _, item := range v {
			withoutHints(item)
		}
	}
}

// locatedListenerInput is EventListenerInput without the location.
const locatedListenerInput = "LocatedEventListenerInput"

// lending is what the documents of contract APIs take from the service's document, encoded once.
type lending struct {
	schemas                 map[string]lent
	limit, after, nextAfter json.RawMessage
}

// lent is a schema, with the names of the schemas that it refers to.
type lent struct {
	text  json.RawMessage
	needs []string
}

var lend = sync.OnceValues(func() (*lending, error) {
	doc, err := service()
	if err != nil {
		return nil, err
	}
	components := doc["components"].(object)
	parameters := components["parameters"].(object)
	all := components["schemas"].(object)
	located := maps.Clone(all["EventListenerInput"].(object))
	located["properties"] = maps.Clone(located["properties"].(object))
	delete(located["properties"].(object), "location")
	pool := &lending{
		schemas:   map[string]lent{locatedListenerInput: lentSchema(located)},
		limit:     appendJSON(nil, parameters["Limit"]),
		after:     appendJSON(nil, parameters["After"]),
		nextAfter: appendJSON(nil, components["headers"].(object)["NextAfter"]),
	}
	wanted := []string{"Error", "Invocation", "Operation", "ContractListener", "EventListenerInput", "Location"}
	for len(wanted) > 0 {
		name := wanted[0]
		wanted = wanted[1:]
		if _, have := pool.schemas[name]; have {
			continue
		}
		schema, ok := all[name]
		if !ok {
			return nil, fmt.Errorf("borrow schema %s: openapi.yaml has none", name)
		}
		pool.schemas[name] = lentSchema(schema)
		wanted = append(wanted, pool.schemas[name].needs...)
	}
	return pool, nil
})

func lentSchema(schema any) lent {
	return lent{text: appendJSON(nil, schema), needs: references(schema)}
}

// references lists the schemas that v refers to.
func references(v any) []string {
	var found []string
	switch v := v.(type) {
	case object:
		if ref, ok := v["$ref"].(string); ok {
			if name, ok := strings.CutPrefix(ref, "#/components/schemas/"); ok {
				found = append(found, name)
			}
		}
		for _, member := range v {
			found = append(found, references(member)...)
		}
	case []any:
		for _, item := range v {
			found = append(found, references(item)...)
		}
	}
	return found
}
