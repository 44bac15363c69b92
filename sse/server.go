package sse

import (
	"context"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
)

// Config configures a Server.
type Config struct {
	// WriteError answers a request that does not become a stream, with the service's one error body.
	WriteError func(w http.ResponseWriter, r *http.Request, err error)
	// Authorize tells whether whoever sent the request may receive events of the namespace. nil: everybody may.
	Authorize  func(r *http.Request, namespace string) error
	Heartbeat  time.Duration         // between two comments; 15 s when zero
	Registerer prometheus.Registerer // nil: no metrics are registered
}

// Server serves streams.
type Server struct {
	cfg      Config
	manager  *delivery.Manager
	log      *slog.Logger
	gauge    prometheus.Gauge
	once     sync.Once
	stopping chan struct{}
}

// defaultReadAhead is how many events a stream carries without acknowledgement where the query does not say.
const defaultReadAhead = 500

// New makes a Server.
func New(cfg Config, manager *delivery.Manager, log *slog.Logger) *Server {
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	s := &Server{cfg: cfg, manager: manager, log: log, stopping: make(chan struct{})}
	s.gauge = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: "pactwire", Subsystem: "sse", Name: "streams", Help: "Open streams of server-sent events.",
	})
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(s.gauge)
	}
	return s
}

// Stop ends all streams: their clients come back, to whoever serves then. The HTTP server waits for them.
func (s *Server) Stop() { s.once.Do(func() { close(s.stopping) }) }

// Serve answers a request with the stream of a subscription, until one of the two ends it.
func (s *Server) Serve(w http.ResponseWriter, r *http.Request, namespace, nameOrID string) {
	if err := s.serve(w, r, namespace, nameOrID); err != nil {
		s.cfg.WriteError(w, r, err)
	}
}

// serve fails only as long as nothing has been written.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, namespace, nameOrID string) error {
	if s.cfg.Authorize != nil {
		if err := s.cfg.Authorize(r, namespace); err != nil {
			return err
		}
	}
	request, err := parse(r)
	if err != nil {
		return err
	}
	request.Namespace, request.Name = namespace, nameOrID
	prepared, err := s.manager.Prepare(r.Context(), request)
	if err != nil {
		return err //nolint:wrapcheck // it is worded for the client
	}
	select {
	case <-s.stopping:
		return pactwire.Unavailable("shutting_down", nil, "The service is stopping.")
	default:
	}
	st := &stream{w: w, control: http.NewResponseController(w), over: make(chan struct{})}
	if !request.AutoAck {
		st.left = *request.Options.ReadAhead
	}
	if err := st.begin(); err != nil {
		s.log.DebugContext(r.Context(), "a stream broke", "error", err)
		return nil
	}
	s.gauge.Inc()
	defer s.gauge.Dec()
	session, err := prepared.Start(r.Context(), delivery.Consumer{DeliverEvents: st.deliver, Ended: func(error) { st.end() }})
	if err != nil {
		return nil //nolint:nilerr // the service is stopping; the client comes back
	}
	defer session.Close()
	defer st.end() // before the session is closed: nothing is written once the request is over
	s.tend(r.Context(), st)
	return nil
}

// tend writes heartbeats until the stream is over.
func (s *Server) tend(ctx context.Context, st *stream) {
	beat := time.NewTicker(s.cfg.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.stopping:
			return
		case <-st.over:
			return
		case <-beat.C:
			if st.comment("heartbeat") != nil {
				return
			}
		}
	}
}

// parse reads what the request says beside the subscription.
func parse(r *http.Request) (delivery.StartRequest, error) {
	query := r.URL.Query()
	request := delivery.StartRequest{NoBatches: true}
	request.AutoAck = query.Has("autoack") && !strings.EqualFold(query.Get("autoack"), "false")
	last := r.Header.Get("Last-Event-ID")
	if last == "" {
		last = query.Get("lasteventid") // an EventSource cannot send the header with its first request
	}
	if last != "" {
		n, err := strconv.ParseInt(last, 10, 64)
		if err != nil || n < 0 {
			return request, pactwire.Invalid("Last-Event-ID", "must be the sequence of an event")
		}
		request.AckedThrough = n
	}
	ahead := query.Get("readahead")
	if ahead == "" {
		ahead = strconv.Itoa(defaultReadAhead)
	}
	if err := request.Options.SetReadAhead(ahead); err != nil {
		return request, err //nolint:wrapcheck // it is worded for the client
	}
	*request.Options.ReadAhead = max(1, *request.Options.ReadAhead)
	return request, nil
}
