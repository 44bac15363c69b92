package openapi

import (
	_ "embed" // for the document
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
)

// YAML is the service's document as it was written.
//
//go:embed openapi.yaml
var YAML []byte

// object is a piece of a document. Its members are written in the order of their names.
type object = map[string]any

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

// borrow copies the named schemas of the service's document, and all that they refer to, into schemas.
func borrow(schemas object, names ...string) error {
	doc, err := service()
	if err != nil {
		return err
	}
	all := doc["components"].(object)["schemas"].(object)
	for _, name := range names {
		if _, have := schemas[name]; have {
			continue
		}
		schema, ok := all[name]
		if !ok {
			return fmt.Errorf("borrow schema %s: openapi.yaml has none", name)
		}
		schemas[name] = schema
		if err := borrow(schemas, references(schema)...); err != nil {
			return err
		}
	}
	return nil
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
