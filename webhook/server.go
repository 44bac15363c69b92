package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pactwire/pactwire/delivery"
)

// Config configures a Server.
type Config struct {
	Targets    Targets
	Namespaces []string                             // whose new subscriptions are heard of at once; others within a second
	After      func(time.Duration) <-chan time.Time // how pauses pass; nil: as they do. For tests
	Registerer prometheus.Registerer                // nil: no metrics are registered
}

// Server posts the events of all subscriptions with the transport webhooks.
type Server struct {
	cfg     Config
	manager *delivery.Manager
	log     *slog.Logger
	client  *http.Client
	metrics metrics
}

type metrics struct {
	requests *prometheus.CounterVec
	duration prometheus.Histogram
}

const (
	tlsTimeout  = 10 * time.Second
	idleTimeout = 90 * time.Second
	maxIdle     = 256
	maxHeader   = 64 << 10 // of an answer
)

// New makes a Server. Nothing is posted before Run runs.
func New(cfg Config, manager *delivery.Manager, log *slog.Logger) *Server {
	if cfg.After == nil {
		cfg.After = time.After
	}
	s := &Server{cfg: cfg, manager: manager, log: log}
	s.client = &http.Client{
		Transport: &http.Transport{
			DialContext: cfg.Targets.dial, ForceAttemptHTTP2: true, TLSHandshakeTimeout: tlsTimeout, MaxIdleConns: maxIdle, IdleConnTimeout: idleTimeout,
			MaxResponseHeaderBytes: maxHeader,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	s.metrics = metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "pactwire", Subsystem: "webhook", Name: "requests_total", Help: "Requests to webhooks, by the class of the answer.",
		}, []string{"answer"}),
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Namespace: "pactwire", Subsystem: "webhook", Name: "request_seconds", Help: "How long webhooks take to answer.",
			Buckets: []float64{.001, .005, .01, .05, .1, .5, 1, 5, 10, 30},
		}),
	}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(s.metrics.requests, s.metrics.duration)
	}
	return s
}

// Run posts until ctx ends.
func (s *Server) Run(ctx context.Context) error {
	defer s.client.CloseIdleConnections()
	return s.manager.Attend(ctx, delivery.TransportWebhooks, s.cfg.Namespaces, s.push) //nolint:wrapcheck // it does not fail
}

// push posts until the receiver takes it, the tries are used up, or ctx ends.
func (s *Server) push(ctx context.Context, p delivery.Push) error {
	w := p.Options.Webhook
	if w == nil {
		return &delivery.Undeliverable{Attempt: delivery.Attempt{Reason: "the subscription says no address"}}
	}
	m := pack(p)
	tried := p.Tried
	if tried.Count > 0 { // by a process that has died: its pause goes on
		if err := s.wait(ctx, time.Until(tried.Next)); err != nil {
			return err
		}
	}
	first, most := w.Delays()
	for {
		a := s.post(ctx, w, m)
		if a.reason == "" {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx) // the request was cut off: it does not count
		}
		tried.Count++
		tried.Reason, tried.Status = a.reason, a.status
		if tried.Count >= w.Tries() {
			return &delivery.Undeliverable{Attempt: tried}
		}
		d := max(pause(tried.Count, first, most), a.after)
		tried.Next = time.Now().Add(d)
		s.log.WarnContext(ctx, "a webhook did not take an event", "subscription", p.Subscription.ID, "target", w.RedactedURL(), "webhook_id", m.id,
			"reason", a.reason, "tries", tried.Count, "next_in", d)
		p.Report(ctx, tried)
		if err := s.wait(ctx, d); err != nil {
			return err
		}
	}
}

func (s *Server) wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.cfg.After(d):
		return nil
	}
}
