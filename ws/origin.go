package ws

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// allowed decides whether a page of the request's origin may connect. Browsers do not stop a foreign page from opening a WebSocket, and send the user's
// credentials along; other clients have no origin.
func allowed(r *http.Request, origins []string) bool {
	origin := r.Header.Get("Origin")
	if origin == "" || slices.Contains(origins, "*") || slices.Contains(origins, origin) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if strings.EqualFold(u.Host, r.Host) || strings.EqualFold(u.Hostname(), "localhost") {
		return true
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}
