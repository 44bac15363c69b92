package handlers

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
	"github.com/labstack/echo/v4"

	pactwire "github.com/pactwire/pactwire"
)

// maxDepth bounds the nesting of a request's JSON; ABIs nest a tuple two levels deeper each.
const maxDepth = 200

// validator checks each request against openapi.yaml before a handler sees it. It finds the operation by the route that echo has matched
// already, so that nothing is routed twice.
type validator struct {
	routes  map[string]*routers.Route          // "METHOD /echo/:path"
	lists   map[*routers.Route]map[string]bool // of routes that answer with pages: the query parameters that they know
	byPath  routers.Router                     // tells a path that does not exist from one that does not take the method
	options *openapi3filter.Options
	maxBody int64
}

func newValidator(doc *openapi3.T, base string, maxBody int64) (*validator, error) {
	v := &validator{routes: map[string]*routers.Route{}, lists: map[*routers.Route]map[string]bool{}, maxBody: maxBody}
	for path, item := range doc.Paths.Map() {
		pattern := base + echoPath(path)
		for method, operation := range item.Operations() {
			// The route's item carries the parameters that all operations of the path share.
			route := &routers.Route{Spec: doc, Path: path, PathItem: item, Method: method, Operation: operation}
			v.routes[method+" "+pattern] = route
			if known := queryNames(operation); known["limit"] {
				v.lists[route] = known
			}
		}
	}
	if len(v.routes) == 0 {
		return nil, errors.New("read the document: it has no paths")
	}
	allowNull(doc)
	doc.Servers = openapi3.Servers{{URL: base}}
	var err error
	if v.byPath, err = gorillamux.NewRouter(doc); err != nil {
		return nil, fmt.Errorf("read the document's paths: %w", err)
	}
	v.options = &openapi3filter.Options{
		// Credentials are looked at before the request is read at all, in authenticate.
		AuthenticationFunc: openapi3filter.NoopAuthenticationFunc,
		// Without it the body would be decoded a second time, with names compared case-insensitively, and could smuggle values.
		KeepValidatedValue: true,
		SchemaValidationOptions: []openapi3.SchemaValidationOption{
			openapi3.WithStringFormatValidator("uuid", openapi3.NewRegexpFormatValidator(
				`^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}$`)),
		},
	}
	v.options.WithCustomSchemaErrorFunc(func(err *openapi3.SchemaError) string { return err.Reason })
	return v, nil
}

// allowNull lets null through where the document allows any value. In OpenAPI 3.0 a schema without a type says nothing about null; the validating
// library takes it for forbidden.
func allowNull(doc *openapi3.T) {
	for _, schema := range doc.Components.Schemas {
		for _, property := range schema.Value.Properties {
			if property.Ref == "" && property.Value.Type == nil {
				property.Value.Nullable = true
			}
		}
	}
}

// queryNames are the names of an operation's query parameters.
func queryNames(operation *openapi3.Operation) map[string]bool {
	names := map[string]bool{}
	for _, p := range operation.Parameters {
		if p.Value != nil && p.Value.In == openapi3.ParameterInQuery {
			names[p.Value.Name] = true
		}
	}
	return names
}

// echoPath writes /a/{b} as /a/:b.
func echoPath(path string) string {
	return strings.NewReplacer("{", ":", "}", "").Replace(path)
}

func (v *validator) middleware(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		route := v.routes[r.Method+" "+c.Path()]
		if route == nil {
			return v.notRouted(c)
		}
		if err := v.readBody(r, route.Operation); err != nil {
			return err
		}
		names, values := c.ParamNames(), c.ParamValues()
		params := make(map[string]string, len(names))
		for i, name := range names {
			params[name] = values[i]
		}
		input := &openapi3filter.RequestValidationInput{
			Request: r, PathParams: params, Route: route, Options: v.options, QueryParams: r.URL.Query(),
		}
		if err := openapi3filter.ValidateRequest(r.Context(), input); err != nil {
			return requestError(err)
		}
		if known := v.lists[route]; known != nil {
			ctx, err := withListQuery(r.Context(), r.URL.Query(), known)
			if err != nil {
				return err
			}
			// The request must stay the one that was validated: its body carries the validated value.
			c.SetRequest(r.WithContext(ctx))
		}
		return next(c)
	}
}

// notRouted answers for a request that no operation takes: 405 with the methods that the path takes (RFC 9110, section 15.5.6), or 404.
func (v *validator) notRouted(c echo.Context) error {
	asked := c.Request().Clone(c.Request().Context())
	var allowed []string
	for _, asked.Method = range []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodDelete} {
		if _, _, err := v.byPath.FindRoute(asked); err == nil {
			allowed = append(allowed, asked.Method)
		}
	}
	if len(allowed) == 0 {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("Allow", strings.Join(allowed, ", "))
	return echo.ErrMethodNotAllowed
}

// readBody reads a request's body whole, within the limit, and checks what JSON schemas cannot say.
func (v *validator) readBody(r *http.Request, operation *openapi3.Operation) error {
	if operation.RequestBody == nil {
		r.Body = http.NoBody
		return nil
	}
	if !operation.RequestBody.Value.Required && r.ContentLength == 0 {
		r.Body = http.NoBody
		return nil
	}
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		if r.ContentLength == 0 {
			return pactwire.Invalid("", "the request needs a JSON body")
		}
		return pactwire.Errorf(pactwire.KindInvalid, "unsupported_media_type", "The request body must be application/json.")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, v.maxBody))
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) || r.Context().Err() != nil {
			return err //nolint:wrapcheck // classified as it is
		}
		return pactwire.Invalid("", "the request body could not be read to its end")
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return pactwire.Invalid("", "the request needs a JSON body")
	}
	if err := checkJSON(body); err != nil {
		return err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.ContentLength = int64(len(body))
	return nil
}

// requestError words what openapi3filter says, in terms of the request's fields.
func requestError(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return err
	}
	var request *openapi3filter.RequestError
	if !errors.As(err, &request) {
		return pactwire.Invalid("", "%s", err.Error())
	}
	var schema *openapi3.SchemaError
	if errors.As(request.Err, &schema) {
		path := fieldPath(schema.JSONPointer())
		if request.Parameter != nil {
			path = request.Parameter.Name
		}
		return pactwire.Invalid(path, "%s", strings.TrimSuffix(schema.Reason, "."))
	}
	reason := request.Reason
	if request.Err != nil {
		reason = request.Err.Error()
	}
	if request.Parameter != nil {
		return pactwire.Invalid(request.Parameter.Name, "%s", reason)
	}
	return pactwire.Invalid("", "the request body is not as described: %s", reason)
}

// fieldPath writes a JSON pointer as people write it: input.items[2].price.
func fieldPath(pointer []string) string {
	var b strings.Builder
	for _, part := range pointer {
		if part != "" && strings.Trim(part, "0123456789") == "" {
			fmt.Fprintf(&b, "[%s]", part)
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(part)
	}
	return b.String()
}
