package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
)

// ToYAML writes a JSON document as YAML: the same values in the same order.
func ToYAML(document []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(document))
	decoder.UseNumber()
	root, err := readNode(decoder)
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read the document: something stands behind its end")
	}
	var out bytes.Buffer
	encoder := yaml.NewEncoder(&out)
	encoder.SetIndent(2)
	if err := encoder.Encode(root); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	if err := encoder.Close(); err != nil {
		return nil, fmt.Errorf("write the document: %w", err)
	}
	return out.Bytes(), nil
}

// readNode reads one value. JSON is almost YAML, but not in its escapes and control characters: the YAML library does not read it.
func readNode(decoder *json.Decoder) (*yaml.Node, error) {
	token, err := decoder.Token()
	if err != nil {
		return nil, err //nolint:wrapcheck // the caller says what was read
	}
	switch token := token.(type) {
	case json.Delim:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		if token == '{' {
			n.Kind, n.Tag = yaml.MappingNode, "!!map"
		}
		// Names and values alternate in a mapping, as in its node.
		for decoder.More() {
			child, err := readNode(decoder)
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, child)
		}
		_, err := decoder.Token()
		return n, err //nolint:wrapcheck // the caller says what was read
	case string:
		n := &yaml.Node{}
		n.SetString(token)
		return n, nil
	case json.Number:
		n := &yaml.Node{Kind: yaml.ScalarNode, Value: token.String(), Tag: "!!int"}
		if bytes.ContainsAny([]byte(n.Value), ".eE") {
			n.Tag = "!!float"
		}
		return n, nil
	case bool:
		return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: fmt.Sprint(token)}, nil
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Value: "null"}, nil
}
