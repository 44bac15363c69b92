package handlers

import (
	"errors"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/auth"
)

// authenticate refuses requests whose sender is unknown or may not do what they ask for. Without authenticators everybody may do everything.
func (s *Server) authenticate(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := s.Authorize(c.Request(), requiredRole(c.Request().Method, c.Path()), c.Param("ns")); err != nil {
			return err
		}
		return next(c)
	}
}

// Authorize tells whether the request's sender has the role in the namespace; the WebSocket asks it as well.
func (s *Server) Authorize(r *http.Request, role auth.Role, namespace string) error {
	if len(s.cfg.Authenticators) == 0 {
		return nil
	}
	principal, err := auth.First(s.cfg.Authenticators, r)
	switch {
	case errors.Is(err, auth.ErrNoCredentials):
		return pactwire.Errorf(pactwire.KindUnauthorized, "unauthorized", "This service wants to know who you are: send basic credentials or a bearer token.")
	case errors.Is(err, auth.ErrWrongCredentials):
		return pactwire.Errorf(pactwire.KindUnauthorized, "unauthorized", "The credentials are wrong.")
	case err != nil:
		return err //nolint:wrapcheck // an internal error as it is
	}
	if !principal.May(role, namespace) {
		return pactwire.Errorf(pactwire.KindForbidden, "forbidden", "%s may not do this: it takes the role %s in namespace %q.", principal.Name, role, namespace)
	}
	return nil
}

// requiredRole is the role that a route takes.
func requiredRole(method, path string) auth.Role {
	switch {
	case method == http.MethodGet, strings.Contains(path, "/query"), strings.HasSuffix(path, "/interfaces/generate"):
		return auth.RoleRead
	case strings.Contains(path, "/invoke"), strings.HasSuffix(path, "/messages/broadcast"), strings.Contains(path, "/operations/"):
		return auth.RoleInvoke
	default:
		return auth.RoleAdmin
	}
}
