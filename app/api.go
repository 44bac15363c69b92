package app

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/pactwire/pactwire/auth"
	"github.com/pactwire/pactwire/console"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/handlers"
	"github.com/pactwire/pactwire/sse"
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
	s.sockets = ws.New(ws.Config{WriteError: writeError, Authorize: mayReceive(server), Registerer: s.registry}, deliveries, s.log)
	s.streams = sse.New(sse.Config{WriteError: writeError, Authorize: mayReceive(server), Registerer: s.registry}, deliveries, s.log)
	s.mu.Unlock()
	socket := func(c echo.Context) error {
		s.sockets.ServeNamespace(c.Response(), c.Request(), c.Param("ns"))
		return nil
	}
	e.GET("/ws", socket)
	e.GET("/api/v1/namespaces/:ns/ws", socket)
	e.GET("/api/v1/namespaces/:ns/subscriptions/:nameOrId/stream", func(c echo.Context) error {
		s.streams.Serve(c.Response(), c.Request(), c.Param("ns"), c.Param("nameOrId"))
		return nil
	})
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

// mayReceive tells whether the sender of a request may receive events of a namespace. Without one, it must only be known who it is: whatever is started
// later is asked for again.
func mayReceive(server *handlers.Server) func(r *http.Request, namespace string) error {
	return func(r *http.Request, namespace string) error { return server.Authorize(r, auth.RoleRead, namespace) } //nolint:wrapcheck // an answer
}
