package ws

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/prometheus/client_golang/prometheus"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
)

// Config configures a Server.
type Config struct {
	// WriteError answers a request that is not upgraded, with the service's one error body.
	WriteError func(w http.ResponseWriter, r *http.Request, err error)
	// Authorize tells whether whoever sent the request may receive events of the namespace; of none in particular when it is empty. It is asked for each
	// subscription that is started. nil: everybody may.
	Authorize  func(r *http.Request, namespace string) error
	Origins    []string              // of pages that may connect beside the service's own and those on loopback; "*" is any
	Registerer prometheus.Registerer // nil: no metrics are registered
}

// Server serves WebSocket connections.
type Server struct {
	cfg      Config
	manager  *delivery.Manager
	log      *slog.Logger
	upgrader websocket.Upgrader
	gauge    prometheus.Gauge

	mu       sync.Mutex
	conns    map[*conn]struct{}
	stopping bool
	running  sync.WaitGroup // one for each connection
}

// New makes a Server.
func New(cfg Config, manager *delivery.Manager, log *slog.Logger) *Server {
	s := &Server{cfg: cfg, manager: manager, log: log, conns: map[*conn]struct{}{}}
	s.upgrader = websocket.Upgrader{
		HandshakeTimeout: 10 * time.Second, ReadBufferSize: 4096, WriteBufferSize: 4096, WriteBufferPool: &sync.Pool{},
		CheckOrigin: func(r *http.Request) bool { return allowed(r, cfg.Origins) },
		Error: func(w http.ResponseWriter, r *http.Request, status int, reason error) {
			kind, code := pactwire.KindInvalid, "not_a_websocket_request"
			switch status {
			case http.StatusForbidden:
				kind, code = pactwire.KindForbidden, "origin_not_allowed"
			case http.StatusInternalServerError:
				kind, code = pactwire.KindInternal, "internal"
			}
			e := pactwire.Errorf(kind, code, "The request cannot become a WebSocket connection: %s.", reason)
			cfg.WriteError(w, r, e)
		},
	}
	s.gauge = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "pactwire", Subsystem: "ws", Name: "connections", Help: "Open WebSocket connections.",
	})
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(s.gauge)
	}
	return s
}

// Handler serves /ws.
func (s *Server) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.ServeNamespace(w, r, "") })
}

// ServeNamespace serves a connection whose address fixes the namespace, unless it is empty.
func (s *Server) ServeNamespace(w http.ResponseWriter, r *http.Request, namespace string) {
	request, starts, err := parseQuery(r.URL.Query(), namespace)
	authorize := s.authorizing(r)
	if err == nil {
		err = authorize(request.Namespace)
	}
	if err == nil && request.Namespace != "" {
		err = s.manager.CheckNamespace(r.Context(), request.Namespace)
	}
	var prepared *delivery.Prepared
	if err == nil && starts {
		prepared, err = s.manager.Prepare(r.Context(), request)
	}
	if err != nil {
		s.cfg.WriteError(w, r, err)
		return
	}
	c, ok := s.reserve(namespace, request.Namespace)
	if !ok {
		s.cfg.WriteError(w, r, pactwire.Unavailable("shutting_down", nil, "The service is stopping."))
		return
	}
	defer s.running.Done()
	h := &hijacker{ResponseWriter: w}
	socket, err := s.upgrader.Upgrade(h, r, nil)
	if err != nil {
		return // answered by the upgrader
	}
	c.socket, c.burst, c.authorize = socket, h.conn, authorize
	// The request's context ends with the connection's handler; a hijacked connection's is ours to end.
	c.serve(context.WithoutCancel(r.Context()), prepared)
}

func (s *Server) authorizing(r *http.Request) func(namespace string) error {
	if s.cfg.Authorize == nil {
		return func(string) error { return nil }
	}
	return func(namespace string) error { return s.cfg.Authorize(r, namespace) }
}

// reserve makes a connection known, so that Stop waits for it.
func (s *Server) reserve(fixed, namespace string) (*conn, bool) {
	c := newConn(s, fixed, namespace)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, false
	}
	s.running.Add(1)
	return c, true
}

// opened makes a connection one that Stop closes. It returns false when it is too late.
func (s *Server) opened(c *conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conns[c] = struct{}{}
	s.gauge.Inc()
	return !s.stopping
}

func (s *Server) closed(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c)
	s.gauge.Dec()
}

// Stop refuses new connections, closes the open ones, and waits until they are closed.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	open := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		open = append(open, c)
	}
	s.mu.Unlock()
	var closing sync.WaitGroup
	for _, c := range open {
		closing.Go(func() { c.closeWith(websocket.CloseGoingAway, "the service is stopping") })
	}
	closing.Wait()
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	for c := range s.conns {
		_ = c.burst.Conn.Close() // it does not answer: cut it off
	}
	s.mu.Unlock()
	<-done
	return errors.Join(errors.New("close the WebSocket connections in time"), ctx.Err())
}
