package handlers

import (
	"fmt"
	"net/http"
	"runtime/debug"

	"github.com/labstack/echo/v4"

	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/openapi"
)

// apiBase is the prefix of all paths of openapi.yaml.
const apiBase = "/api/v1"

// Register mounts the REST API, its document and its Swagger UI on e, and makes the Server write all its errors.
func (s *Server) Register(e *echo.Echo) error {
	doc, err := gen.GetSpec()
	if err != nil {
		return fmt.Errorf("read the embedded document: %w", err)
	}
	v, err := newValidator(doc, apiBase, s.cfg.MaxBody)
	if err != nil {
		return err
	}
	e.HTTPErrorHandler = s.handleError
	e.Use(s.recover)
	api := e.Group(apiBase, s.measure, s.limitTime, s.authenticate, s.knownNamespace, s.addressRequest, v.middleware)
	gen.RegisterHandlers(api, gen.NewStrictHandler(s, nil))

	yaml, asJSON := openapi.YAML, []byte(nil)
	if asJSON, err = openapi.JSON(); err != nil {
		return fmt.Errorf("read the service's document: %w", err)
	}
	e.GET("/api/openapi.yaml", static("application/yaml", yaml))
	e.GET("/api/openapi.json", static(echo.MIMEApplicationJSON, asJSON))
	e.GET("/api/asyncapi.yaml", static("application/yaml", openapi.AsyncYAML))
	page := func(c echo.Context) error {
		c.Response().Header().Set("Content-Security-Policy", s.cfg.PagePolicy)
		return c.HTMLBlob(http.StatusOK, s.cfg.Page("Pactwire", "/api/openapi.json"))
	}
	e.GET("/api", page)
	return nil
}

// static serves bytes of the binary with an entity tag.
func static(contentType string, body []byte) echo.HandlerFunc {
	tag := etag(body)
	return func(c echo.Context) error {
		c.Response().Header().Set("ETag", tag)
		if matches(c.Request().Header.Get("If-None-Match"), tag) {
			return c.NoContent(http.StatusNotModified)
		}
		return c.Blob(http.StatusOK, contentType, body)
	}
}

// recover turns a panic of a handler into an internal error, and logs where it happened.
func (s *Server) recover(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) (err error) {
		defer func() {
			if r := recover(); r != nil {
				if r == http.ErrAbortHandler { //nolint:errorlint // net/http asks for exactly this value
					panic(r)
				}
				s.log.ErrorContext(c.Request().Context(), "a handler panicked", "path", c.Path(), "panic", r, "stack", string(debug.Stack()))
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		return next(c)
	}
}
