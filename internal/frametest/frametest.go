// Package frametest holds the frames that tests see against openapi/asyncapi.yaml.
package frametest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/pactwire/pactwire/openapi"
)

const location = "asyncapi.json"

// document is asyncapi.yaml as JSON values, with its schemas by the type of the frames that they describe.
type document struct {
	root           map[string]any
	sent, received map[string]*jsonschema.Schema
	event          *jsonschema.Schema
}

var load = sync.OnceValues(func() (*document, error) {
	var raw any
	if err := yaml.Unmarshal(openapi.AsyncYAML, &raw); err != nil {
		return nil, fmt.Errorf("read asyncapi.yaml: %w", err)
	}
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, fmt.Errorf("encode asyncapi.yaml: %w", err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("decode asyncapi.yaml: %w", err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft7)
	compiler.AssertFormat()
	if err := compiler.AddResource(location, value); err != nil {
		return nil, fmt.Errorf("add asyncapi.yaml: %w", err)
	}
	d := &document{sent: map[string]*jsonschema.Schema{}, received: map[string]*jsonschema.Schema{}}
	d.root, _ = value.(map[string]any)
	for name, into := range map[string]struct {
		group map[string]*jsonschema.Schema
		kind  string
	}{
		"Start": {d.sent, "start"}, "Ack": {d.sent, "ack"}, "Nack": {d.sent, "nack"},
		"EventBatch": {d.received, "event_batch"}, "ProtocolError": {d.received, "protocol_error"}, "Event": {d.received, ""},
	} {
		if into.group[into.kind], err = compiler.Compile(location + "#/components/schemas/" + name); err != nil {
			return nil, fmt.Errorf("compile schema %s: %w", name, err)
		}
	}
	d.event = d.received[""]
	return d, nil
})

// Received tells what is wrong with a frame that the service sent.
func Received(frame []byte) error {
	d, err := load()
	if err != nil {
		return err
	}
	return d.check(frame, d.received, d.event)
}

// Sent tells what is wrong with a frame that an application sends.
func Sent(frame []byte) error {
	d, err := load()
	if err != nil {
		return err
	}
	return d.check(frame, d.sent, nil)
}

func (d *document) check(frame []byte, group map[string]*jsonschema.Schema, otherwise *jsonschema.Schema) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(frame))
	if err != nil {
		return fmt.Errorf("read the frame: %w", err)
	}
	object, _ := value.(map[string]any)
	kind, _ := object["type"].(string)
	schema := group[kind]
	if schema == nil {
		schema = otherwise
	}
	if schema == nil {
		return fmt.Errorf("there is no frame of type %q", kind)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("a frame of type %q: %w", kind, err)
	}
	return nil
}
