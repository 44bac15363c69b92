package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"

	"github.com/pactwire/pactwire/gen"
)

var document = sync.OnceValues(func() (routers.Router, error) {
	doc, err := gen.GetSpec()
	if err != nil {
		return nil, err
	}
	for _, schema := range doc.Components.Schemas {
		for _, property := range schema.Value.Properties {
			if property.Ref == "" && property.Value.Type == nil { // any value, null too
				property.Value.Nullable = true
			}
		}
	}
	doc.Servers = openapi3.Servers{{URL: "/api/v1"}}
	openapi3filter.RegisterBodyDecoder("application/vnd.pactwire.page+json", openapi3filter.JSONBodyDecoder)
	openapi3filter.RegisterBodyDecoder("text/html", openapi3filter.PlainBodyDecoder)
	return gorillamux.NewRouter(doc)
})

// validating is a transport that holds every answer against openapi.yaml, and fails the test where they differ.
type validating struct {
	t    testing.TB
	next http.RoundTripper
}

func (v validating) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := v.next.RoundTrip(r)
	if err != nil || !strings.HasPrefix(r.URL.Path, "/api/v1/") {
		return response, err
	}
	body, err := io.ReadAll(response.Body)
	response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	if response.StatusCode >= http.StatusInternalServerError {
		v.t.Logf("%s %s answered %d: %s", r.Method, r.URL.Path, response.StatusCode, body)
	}
	v.check(r, response, body)
	return response, nil
}

func (v validating) check(r *http.Request, response *http.Response, body []byte) {
	v.t.Helper()
	router, err := document()
	if err != nil {
		v.t.Errorf("read the document: %v", err)
		return
	}
	asked := &http.Request{Method: r.Method, URL: &url.URL{Path: r.URL.Path, RawPath: r.URL.RawPath, RawQuery: r.URL.RawQuery}, Header: r.Header}
	route, params, err := router.FindRoute(asked)
	if err != nil {
		// A path that the document does not have must be answered with a problem all the same.
		if got := response.Header.Get("Content-Type"); got != "application/problem+json" {
			v.t.Errorf("%s %s is not described, and answered %d with %s", r.Method, r.URL.Path, response.StatusCode, got)
		}
		return
	}
	input := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: &openapi3filter.RequestValidationInput{Request: asked, PathParams: params, Route: route},
		Status:                 response.StatusCode, Header: response.Header,
		Options: &openapi3filter.Options{IncludeResponseStatus: true, MultiError: true},
	}
	input.SetBodyBytes(body)
	if err := openapi3filter.ValidateResponse(context.Background(), input); err != nil {
		v.t.Errorf("%s %s answered %d, which the document does not describe so: %v\n%s", r.Method, r.URL.Path, response.StatusCode, err, body)
	}
}
