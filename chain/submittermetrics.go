package chain

import (
	"context"
	"errors"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pactwire/pactwire/store"
)

type submitterMetrics struct {
	chain    string
	inflight *prometheus.GaugeVec
	unsent   *prometheus.GaugeVec
	unmined  *prometheus.GaugeVec
	sent     *prometheus.CounterVec
	finished *prometheus.CounterVec
	bumped   *prometheus.CounterVec
	orphans  *prometheus.GaugeVec
	orphaned *prometheus.GaugeVec
}

func newSubmitterMetrics(chain string, r prometheus.Registerer) *submitterMetrics {
	labels := []string{"chain", "key"}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return registered(r, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: "pactwire", Subsystem: "submitter", Name: name, Help: help}, labels))
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return registered(r, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "pactwire", Subsystem: "submitter", Name: name, Help: help}, labels))
	}
	return &submitterMetrics{
		chain:    chain,
		inflight: gauge("in_flight", "Transactions that have a nonce and are not finished."),
		unsent:   gauge("oldest_unsent_seconds", "Age of the oldest operation that waits for a nonce."),
		unmined:  gauge("oldest_unmined_seconds", "Age of the oldest nonce whose transaction is not finished."),
		orphans:  gauge("orphaned_operations", "Operations whose key no signer holds."),
		orphaned: gauge("oldest_orphaned_seconds", "Age of the oldest operation whose key no signer holds."),
		sent:     counter("sent_total", "Transactions that a node took, repeated ones included.", "chain", "key"),
		finished: counter("finished_total", "Operations that ended.", "chain", "key", "status"),
		bumped:   counter("bumped_total", "Transactions whose fee was raised.", "chain", "key"),
	}
}

// registered registers c, or finds the one that another chain's submitter has registered before.
func registered[T prometheus.Collector](r prometheus.Registerer, c T) T {
	if r == nil {
		return c
	}
	var before prometheus.AlreadyRegisteredError
	if err := r.Register(c); errors.As(err, &before) {
		if known, ok := before.ExistingCollector.(T); ok {
			return known
		}
	}
	return c
}

// forget removes what is only true of the key's present owner.
func (m *submitterMetrics) forget(key common.Address) {
	for _, g := range []*prometheus.GaugeVec{m.inflight, m.unsent, m.unmined} {
		g.DeleteLabelValues(m.chain, key.Hex())
	}
}

// measure brings the gauges up to date.
func (k *keySubmitter) measure(ctx context.Context, now time.Time) {
	set := func(g *prometheus.GaugeVec, v float64) { g.WithLabelValues(k.cfg.Chain, k.key.Hex()).Set(v) }
	age := func(since time.Time, some bool) float64 {
		if !some {
			return 0
		}
		return max(now.Sub(since).Seconds(), 0)
	}
	set(k.metrics.inflight, float64(k.state.count()))
	set(k.metrics.unmined, age(k.state.oldest()))
	if since, some, err := k.db.OldestUnassigned(ctx, k.cfg.Chain, k.key); err == nil {
		set(k.metrics.unsent, age(since, some))
	}
}

// orphan notes what waits for a key that no signer holds.
func (m *submitterMetrics) orphan(key *store.OutboxKey, now time.Time) {
	m.orphans.WithLabelValues(m.chain, key.Key.Hex()).Set(float64(key.Unsent + key.Unmined))
	oldest := now
	for _, at := range []*time.Time{key.OldestUnsent, key.OldestUnmined} {
		if at != nil && at.Before(oldest) {
			oldest = *at
		}
	}
	m.orphaned.WithLabelValues(m.chain, key.Key.Hex()).Set(now.Sub(oldest).Seconds())
}

func (m *submitterMetrics) notOrphan(key common.Address) {
	m.orphans.DeleteLabelValues(m.chain, key.Hex())
	m.orphaned.DeleteLabelValues(m.chain, key.Hex())
}
