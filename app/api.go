package app

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/pactwire/pactwire/auth"
	"github.com/pactwire/pactwire/console"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/handlers"
	"github.com/pactwire/pactwire/webhook"
	"github.com/pactwire/pactwire/ws"
)

// newAPI mounts everything that clients reach: REST, WebSocket, Swagger UI.
func (s *service) newAPI(namespaces []handlers.Namespace, deliveries *delivery.Manager, webhooks *webhook.Server) (http.Handler, error) {
	server, err := handlers.New(handlers.Config{
		NodeName: s.cfg.OrgName, Version: s.opts.Version, SchemaVersion: s.schema, PublicURL: s.publicURL(), TrustedProxies: s.cfg.TrustedProxies,
		MaxBody: s.cfg.MaxBody, RequestTimeout: s.cfg.RequestTimeout, Registerer: s.registry, Authenticators: s.auth, Namespaces: namespaces,
		PingWebhook: webhooks.Ping,
		Page:        func(title, documentURL string) []byte { return console.Page(title, documentURL, s.basePath()) }, PagePolicy: console.Policy,
	}, s.db, deliveries, s.log)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it did
	}
	e := echo.New()
	e.HideBanner, e.HidePort = true, true
	if err := server.Register(e); err != nil {
		return nil, err //nolint:wrapcheck // it says what it did
	}
	writeError := func(w http.ResponseWriter, r *http.Request, err error) { handlers.WriteError(s.log, w, r, err) }
	s.mu.Lock()
	s.sockets = ws.New(ws.Config{WriteError: writeError, Registerer: s.registry}, deliveries, s.log)
	s.mu.Unlock()
	e.GET("/ws", s.serveSocket(server, func(c echo.Context) string { return c.QueryParam("namespace") }))
	e.GET("/api/v1/namespaces/:ns/ws", s.serveSocket(server, func(c echo.Context) string { return c.Param("ns") }))
	e.GET(console.AssetsPath+"*", echo.WrapHandler(console.Assets()))
	e.GET("/", func(c echo.Context) error { return c.Redirect(http.StatusFound, s.basePath()+"/api") })
	return e, nil
}

// basePath is the path under which a proxy serves us, where the public address has one.
func (s *service) basePath() string {
	if s.cfg.PublicURL == nil {
		return ""
	}
	return s.cfg.PublicURL.EscapedPath()
}

// serveSocket serves a WebSocket. Where people authenticate, a connection is bound to the namespace that it was allowed for; only those who see all
// namespaces may leave it open and choose later.
func (s *service) serveSocket(server *handlers.Server, namespace func(echo.Context) string) echo.HandlerFunc {
	return func(c echo.Context) error {
		fixed := c.Param("ns")
		if len(s.auth) > 0 {
			if fixed = namespace(c); fixed == "" {
				if err := server.Authorize(c.Request(), auth.RoleRead, auth.AllNamespaces); err != nil {
					return err //nolint:wrapcheck // an answer
				}
			} else if err := server.Authorize(c.Request(), auth.RoleRead, fixed); err != nil {
				return err //nolint:wrapcheck // an answer
			}
		}
		s.sockets.ServeNamespace(c.Response(), c.Request(), fixed)
		return nil
	}
}
