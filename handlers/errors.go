package handlers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/labstack/echo/v4"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/gen"
)

// statuses is the one table from the classes of errors to HTTP (decisions, section 2).
var statuses = map[pactwire.Kind]int{
	pactwire.KindInvalid:      http.StatusBadRequest,
	pactwire.KindUnauthorized: http.StatusUnauthorized,
	pactwire.KindForbidden:    http.StatusForbidden,
	pactwire.KindNotFound:     http.StatusNotFound,
	pactwire.KindTimeout:      http.StatusRequestTimeout,
	pactwire.KindConflict:     http.StatusConflict,
	pactwire.KindTooLarge:     http.StatusRequestEntityTooLarge,
	pactwire.KindReverted:     http.StatusUnprocessableEntity,
	pactwire.KindRateLimited:  http.StatusTooManyRequests,
	pactwire.KindBadUpstream:  http.StatusBadGateway,
	pactwire.KindUnavailable:  http.StatusServiceUnavailable,
	pactwire.KindInternal:     http.StatusInternalServerError,
}

// problem turns any error into the status and the body that a client sees. What is no *pactwire.Error shows nothing of itself.
func problem(err error) (int, gen.Error, *pactwire.Error) {
	known := classify(err)
	status := statuses[known.Kind]
	if known.Code == "unsupported_media_type" {
		status = http.StatusUnsupportedMediaType
	}
	if known.Code == "method_not_allowed" {
		status = http.StatusMethodNotAllowed
	}
	body := gen.Error{
		Type: "about:blank", Title: http.StatusText(status), Status: status, Detail: known.Message, Error: known.Message, Code: known.Code,
	}
	for _, f := range known.Fields {
		body.Fields = append(body.Fields, gen.FieldError{Path: f.Path, Message: f.Message})
	}
	if known.Revert != nil {
		body.Revert = toRevert(known.Revert)
	}
	return status, body, known
}

func classify(err error) *pactwire.Error {
	var known *pactwire.Error
	var large *http.MaxBytesError
	var framework *echo.HTTPError
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &large):
		return pactwire.Errorf(pactwire.KindTooLarge, "body_too_large", "The request body is larger than %d bytes.", large.Limit)
	case errors.Is(err, context.DeadlineExceeded):
		return pactwire.Errorf(pactwire.KindTimeout, "request_timeout",
			"The request took longer than its time limit. What it had already stored stays stored.")
	case errors.Is(err, context.Canceled):
		return pactwire.Errorf(pactwire.KindTimeout, "request_cancelled", "The caller went away.")
	case errors.As(err, &framework):
		return fromFramework(framework)
	default:
		return &pactwire.Error{Kind: pactwire.KindInternal, Code: "internal", Message: "Something went wrong inside Pactwire; its log says what.", Err: err}
	}
}

// fromFramework words the errors that echo and the generated wrappers raise themselves.
func fromFramework(err *echo.HTTPError) *pactwire.Error {
	switch err.Code {
	case http.StatusNotFound:
		return pactwire.NotFound("route", "There is no such path. The paths are described at /api/openapi.yaml.")
	case http.StatusMethodNotAllowed:
		return pactwire.Errorf(pactwire.KindInvalid, "method_not_allowed", "This path does not take this HTTP method.")
	case http.StatusRequestEntityTooLarge:
		return pactwire.Errorf(pactwire.KindTooLarge, "body_too_large", "The request body is too large.")
	case http.StatusUnsupportedMediaType:
		return pactwire.Errorf(pactwire.KindInvalid, "unsupported_media_type", "The request body must be application/json.")
	case http.StatusBadRequest:
		message := "The request is malformed."
		if text, ok := err.Message.(string); ok && text != "" {
			message = text
		}
		return pactwire.Errorf(pactwire.KindInvalid, "invalid_request", "%s", message)
	default:
		return &pactwire.Error{Kind: pactwire.KindInternal, Code: "internal", Message: "Something went wrong inside Pactwire; its log says what.", Err: err}
	}
}

// WriteError answers with the problem body for err. It is the only place that writes error bodies, for REST and for what happens
// before a WebSocket stands.
func WriteError(log *slog.Logger, w http.ResponseWriter, r *http.Request, err error) {
	status, body, known := problem(err)
	if status >= http.StatusInternalServerError && !errors.Is(err, context.Canceled) {
		log.ErrorContext(r.Context(), "request not served", "method", r.Method, "path", r.URL.Path, "status", status, "error", err)
	}
	h := w.Header()
	if known.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(max(1, int(known.RetryAfter.Seconds()))))
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Basic realm="pactwire", charset="UTF-8"`)
	}
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	if err := json.NewEncoder(w).Encode(body); err != nil {
		log.DebugContext(r.Context(), "write an error body", "error", err)
	}
}

// handleError is echo's error handler.
func (s *Server) handleError(err error, c echo.Context) {
	if c.Response().Committed {
		s.log.WarnContext(c.Request().Context(), "an answer broke off", "path", c.Request().URL.Path, "error", err)
		return
	}
	WriteError(s.log, c.Response(), c.Request(), err)
}

func toRevert(r *pactwire.Revert) *gen.Revert {
	out := &gen.Revert{
		Name: present(r.Name), Signature: present(r.Signature), Reason: present(r.Reason), Data: present(r.Data),
	}
	if r.Args != nil {
		// Arguments are an object of values that the contract package encoded; anything else has no place in the document.
		if raw, err := json.Marshal(r.Args); err == nil {
			_ = json.Unmarshal(raw, &out.Args)
		}
	}
	return out
}

// present is nil for the empty string, for members that are left out when empty.
func present(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
