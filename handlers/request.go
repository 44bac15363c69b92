package handlers

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	pactwire "github.com/pactwire/pactwire"
)

// limitTime gives a request its time limit: the configured one, or less when the header Request-Timeout says so.
func (s *Server) limitTime(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		limit := s.cfg.RequestTimeout
		if asked := c.Request().Header.Get("Request-Timeout"); asked != "" {
			d, err := parseTimeout(asked)
			if err != nil {
				return err
			}
			limit = min(limit, d)
		}
		ctx, cancel := context.WithTimeout(c.Request().Context(), limit)
		defer cancel()
		c.SetRequest(c.Request().WithContext(ctx))
		return next(c)
	}
}

func parseTimeout(s string) (time.Duration, error) {
	if seconds, err := strconv.ParseFloat(s, 64); err == nil && seconds > 0 && seconds < 1e6 {
		return time.Duration(seconds * float64(time.Second)), nil
	}
	if d, err := time.ParseDuration(s); err == nil && d > 0 {
		return d, nil
	}
	return 0, pactwire.Invalid("Request-Timeout", "must be a number of seconds above 0, or a duration such as 500ms")
}

// knownNamespace answers for an unknown namespace before anything else of the request is looked at.
func (s *Server) knownNamespace(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		if strings.HasPrefix(c.Path(), apiBase+"/namespaces/:ns") {
			if _, err := s.namespace(c.Param("ns")); err != nil {
				return err
			}
		}
		return next(c)
	}
}

type baseURLKey struct{}

// addressRequest notes under which address the caller reached the service, for the addresses in answers.
func (s *Server) addressRequest(next echo.HandlerFunc) echo.HandlerFunc {
	return func(c echo.Context) error {
		r := c.Request()
		c.SetRequest(r.WithContext(context.WithValue(r.Context(), baseURLKey{}, s.baseURL(r))))
		return next(c)
	}
}

// baseURL is the configured public address, or else the one that the request was sent to. What a proxy says of it counts only when the
// proxy is trusted: anybody can send X-Forwarded headers.
func (s *Server) baseURL(r *http.Request) string {
	if s.cfg.PublicURL != "" {
		return strings.TrimSuffix(s.cfg.PublicURL, "/")
	}
	scheme, host, prefix := "http", r.Host, ""
	if r.TLS != nil {
		scheme = "https"
	}
	if s.fromTrustedProxy(r) {
		if proto := first(r.Header.Get("X-Forwarded-Proto")); proto == "http" || proto == "https" {
			scheme = proto
		}
		if forwarded := first(r.Header.Get("X-Forwarded-Host")); forwarded != "" {
			host = forwarded
		}
		if p := first(r.Header.Get("X-Forwarded-Prefix")); strings.HasPrefix(p, "/") {
			prefix = strings.TrimSuffix(p, "/")
		}
	}
	return scheme + "://" + host + prefix
}

func first(list string) string {
	value, _, _ := strings.Cut(list, ",")
	return strings.TrimSpace(value)
}

func (s *Server) fromTrustedProxy(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	for _, prefix := range s.cfg.TrustedProxies {
		if prefix.Contains(address.Unmap()) {
			return true
		}
	}
	return false
}

// base is the address that addressRequest has noted.
func base(ctx context.Context) string {
	url, _ := ctx.Value(baseURLKey{}).(string)
	return url
}
