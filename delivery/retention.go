package delivery

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pactwire/pactwire/store"
)

// RetentionConfig says what is kept of each namespace's history. Namespaces whose retention is not enabled keep everything and are only measured.
type RetentionConfig struct {
	Keep       map[string]store.Retention // by namespace
	Interval   time.Duration              // between two looks; 1 min when zero
	Registerer prometheus.Registerer
}

// Retention lets old events go, piece by piece, so that nobody who appends or reads waits long for it. Several processes may do so at once: a lease leaves it
// to one of them.
type Retention struct {
	cfg     RetentionConfig
	db      *store.DB
	log     *slog.Logger
	events  *prometheus.GaugeVec
	held    *prometheus.GaugeVec
	removed *prometheus.CounterVec
	bytes   prometheus.Gauge
}

// NewRetention makes the retention of some namespaces. Run does the work.
func NewRetention(cfg RetentionConfig, db *store.DB, log *slog.Logger) *Retention {
	if cfg.Interval == 0 {
		cfg.Interval = time.Minute
	}
	gauge := func(name, help string) prometheus.GaugeOpts {
		return prometheus.GaugeOpts{Namespace: "pactwire", Subsystem: "history", Name: name, Help: help}
	}
	r := &Retention{
		cfg: cfg, db: db, log: log,
		events: prometheus.NewGaugeVec(gauge("events", "Events in the history."), []string{"namespace"}),
		held: prometheus.NewGaugeVec(gauge("held_back_events", "Events that are due to go and that a durable subscription has not passed."),
			[]string{"namespace"}),
		removed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "pactwire", Subsystem: "history", Name: "removed_events_total", Help: "Old events that this process has removed.",
		}, []string{"namespace"}),
		bytes: prometheus.NewGauge(gauge("bytes", "Size of all histories in the database, with their indexes.")),
	}
	if cfg.Registerer != nil {
		cfg.Registerer.MustRegister(r.events, r.held, r.removed, r.bytes)
	}
	return r
}

// Run looks now and then until ctx ends. No error of the database ends it.
func (r *Retention) Run(ctx context.Context) error {
	enabled := false
	for _, keep := range r.cfg.Keep {
		enabled = enabled || keep.Enabled()
	}
	pruned := make(chan struct{})
	go func() {
		defer close(pruned)
		for enabled && ctx.Err() == nil {
			if err := r.db.WithLease(ctx, "retention", r.prune); err != nil {
				r.log.WarnContext(ctx, "remove old events", "error", err)
			}
		}
	}()
	for ctx.Err() == nil {
		r.measure(ctx)
		wait(ctx, r.cfg.Interval)
	}
	<-pruned
	return nil
}

// prune removes what is due, in every namespace, until ctx ends.
func (r *Retention) prune(ctx context.Context, _ store.Lease) error {
	for ctx.Err() == nil {
		for namespace, keep := range r.cfg.Keep {
			if err := r.pruneNamespace(ctx, namespace, keep); err != nil && ctx.Err() == nil {
				r.log.WarnContext(ctx, "remove old events", "namespace", namespace, "error", err)
			}
		}
		wait(ctx, r.cfg.Interval)
	}
	return nil
}

func (r *Retention) pruneNamespace(ctx context.Context, namespace string, keep store.Retention) error {
	if !keep.Enabled() {
		return nil
	}
	for more := true; more && ctx.Err() == nil; {
		piece, err := r.db.PruneHistory(ctx, namespace, keep)
		r.removed.WithLabelValues(namespace).Add(float64(piece.Removed))
		if err != nil {
			return err //nolint:wrapcheck // the store has said what it was doing
		}
		r.held.WithLabelValues(namespace).Set(float64(piece.HeldBack))
		more = piece.More
	}
	return nil
}

func (r *Retention) measure(ctx context.Context) {
	for namespace := range r.cfg.Keep {
		if n, err := r.db.HistoryEvents(ctx, namespace); err == nil {
			r.events.WithLabelValues(namespace).Set(float64(n))
		}
	}
	if size, err := r.db.HistorySize(ctx); err == nil {
		r.bytes.Set(float64(size))
	}
}
