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
}

type document struct {
	body json.RawMessage
	tag  string
}

// document builds the OpenAPI document of an API, or takes it from the cache.
func (s *Server) document(ctx context.Context, api store.API) (document, error) {
	key := documentKey{
		namespace: api.Namespace, server: apiURL(ctx, api.Namespace, api.Name), iface: api.Interface, located: api.Location != nil,
	}
	if doc, ok := s.documents.Get(key); ok {
		return doc, nil
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
		Name: api.Name, Namespace: api.Namespace, Server: key.server, Located: key.located, Interface: definition,
	})
	if err != nil {
		return document{}, fmt.Errorf("build the document of API %s: %w", api.Name, err)
	}
	doc := document{body: body, tag: etag(body)}
	s.documents.Add(key, doc)
	return doc, nil
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
