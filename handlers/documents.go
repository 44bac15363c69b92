package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/openapi"
	"github.com/pactwire/pactwire/store"
)

// documentKey is all that a contract API's document depends on.
type documentKey struct {
	namespace, server string
	iface             uuid.UUID
	located           bool
	form              documentForm
}

// documentForm says which of the forms of an API's document a caller wants.
type documentForm struct {
	yaml  bool // instead of JSON
	views bool // invoke paths for view methods too
}

type document struct {
	body json.RawMessage // or YAML
	kind string          // of content
	tag  string
}

// document builds the OpenAPI document of an API, or takes it from the cache.
func (s *Server) document(ctx context.Context, api store.API, form documentForm) (document, error) {
	key := documentKey{
		namespace: api.Namespace, server: apiURL(ctx, api.Namespace, api.Name), iface: api.Interface, located: api.Location != nil, form: form,
	}
	if doc, ok := s.documents.Get(key); ok {
		return doc, nil
	}
	doc, err := s.buildDocument(ctx, api, key)
	if err != nil {
		return document{}, err
	}
	s.documents.Add(key, doc)
	return doc, nil
}

func (s *Server) buildDocument(ctx context.Context, api store.API, key documentKey) (document, error) {
	if key.form.yaml {
		doc, err := s.document(ctx, api, documentForm{views: key.form.views})
		if err != nil {
			return document{}, err
		}
		body, err := openapi.ToYAML(doc.body)
		if err != nil {
			return document{}, fmt.Errorf("write the document of API %s as YAML: %w", api.Name, err)
		}
		return document{body: body, kind: "application/yaml", tag: etag(body)}, nil
	}
	record, err := s.db.Interface(ctx, api.Namespace, api.Interface)
	if err != nil {
		return document{}, fmt.Errorf("read the interface of API %s: %w", api.Name, err)
	}
	definition, err := record.Contract()
	if err != nil {
		return document{}, fmt.Errorf("read the interface of API %s: %w", api.Name, err)
	}
	body, err := openapi.Build(openapi.Subject{
		Name: api.Name, Namespace: api.Namespace, Server: key.server, Located: key.located, Views: key.form.views, Interface: definition,
	})
	if err != nil {
		return document{}, fmt.Errorf("build the document of API %s: %w", api.Name, err)
	}
	return document{body: body, kind: "application/json", tag: etag(body)}, nil
}

// etag is a strong entity tag (RFC 9110, section 8.8.3).
func etag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:16]) + `"`
}

// matches tells whether an If-None-Match header names the tag.
func matches(header, tag string) bool {
	for candidate := range strings.SplitSeq(header, ",") {
		candidate = strings.TrimPrefix(strings.TrimSpace(candidate), "W/")
		if candidate == "*" || candidate == tag {
			return true
		}
	}
	return false
}
