package multiparty

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/store"
)

// Config says in which network a namespace takes part, and as whom.
type Config struct {
	Namespace   string         // here
	NetworkName string         // the namespace's name in the network, the same at all members; Namespace when empty
	Chain       string         // name of the chain, as in the store
	Key         common.Address // this member's account; the submitter can sign with it
	PinContract common.Address
	Registerer  prometheus.Registerer // nil: no metrics
}

// Network is one namespace's part in a network of members.
type Network struct {
	cfg     Config
	db      *store.DB
	client  *chain.Client
	storage sharedstorage.Storage
	log     *slog.Logger
	abi     *abi.ABI
	errors  []contract.Error // the pin contract's, to tell why a pin reverted
	id      common.Hash
	author  string
	metrics metrics

	deferring   atomic.Bool  // something may be deferred
	memberUntil atomic.Int64 // in nanoseconds since 1970: until then this node counts as a member without being asked for
}

// New makes a Network. The pin contract must be known: see EnsurePinContract and CheckPinContract.
func New(cfg Config, db *store.DB, client *chain.Client, storage sharedstorage.Storage, log *slog.Logger) (*Network, error) {
	if cfg.NetworkName == "" {
		cfg.NetworkName = cfg.Namespace
	}
	description, err := contract.FromABI(contracts.Pactwire().ABI)
	if err != nil {
		return nil, fmt.Errorf("read the pin contract's ABI: %w", err)
	}
	n := &Network{
		cfg: cfg, db: db, client: client, storage: storage, log: log.With("namespace", cfg.Namespace), abi: pinABI(), errors: description.Errors,
		id: NetworkHash(cfg.NetworkName), author: store.Account(cfg.Key.Bytes()), metrics: newMetrics(),
	}
	if cfg.Registerer != nil {
		registerer := prometheus.WrapRegistererWith(prometheus.Labels{"namespace": cfg.Namespace}, cfg.Registerer)
		for _, collector := range n.metrics.all() {
			if err := registerer.Register(collector); err != nil {
				return nil, fmt.Errorf("register the metrics of namespace %s: %w", cfg.Namespace, err)
			}
		}
	}
	return n, nil
}

// Author is how this member's account stands in messages.
func (n *Network) Author() string { return n.author }

// Run sends what was broadcast and applies what was pinned until ctx ends. Several processes may run it for one namespace: one of them works.
func (n *Network) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return n.db.WithLease(ctx, "publisher/"+n.cfg.Namespace, func(ctx context.Context, lease store.Lease) error {
			return n.repeat(ctx, store.TopicMessages(n.cfg.Namespace), "publish", func(ctx context.Context) (bool, error) { return n.publish(ctx, lease) })
		})
	})
	group.Go(func() error {
		return n.db.WithLease(ctx, "aggregator/"+n.cfg.Namespace, func(ctx context.Context, lease store.Lease) error {
			applying, ctx := errgroup.WithContext(ctx)
			applying.Go(func() error {
				return n.repeat(ctx, store.TopicPins(n.cfg.Chain), "apply pins", func(ctx context.Context) (bool, error) { return n.aggregate(ctx, lease) })
			})
			applying.Go(func() error {
				return n.repeat(ctx, store.TopicPins(n.cfg.Chain), "apply deferred pins", func(ctx context.Context) (bool, error) { return n.retryDeferred(ctx, lease) })
			})
			return applying.Wait()
		})
	})
	return group.Wait() //nolint:wrapcheck // the parts say what they did
}

const (
	pollInterval = time.Second // a lost notification costs at most this
	firstPause   = 100 * time.Millisecond
	longestPause = 10 * time.Second
)

// repeat calls step again and again: at once while it finds work, else when the topic wakes it, and after a pause that grows while it fails.
// It ends with ctx, or when another owner has the lease.
func (n *Network) repeat(ctx context.Context, topic, what string, step func(context.Context) (more bool, err error)) error {
	wakeup := n.db.Subscribe(topic)
	defer wakeup.Close()
	pause := firstPause
	for ctx.Err() == nil {
		more, err := step(ctx)
		wait := pollInterval
		wake := wakeup.C
		switch {
		case errors.Is(err, store.ErrFenced):
			return err //nolint:wrapcheck // WithLease knows it
		case err != nil && ctx.Err() == nil:
			n.log.WarnContext(ctx, what, "error", err, "again_in", pause)
			n.metrics.failures.WithLabelValues(what).Inc()
			wait, wake = pause, nil // messages that come in meanwhile must not turn the pause into a busy loop
			pause = min(2*pause, longestPause)
		case more:
			pause = firstPause
			continue
		default:
			pause = firstPause
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-wake:
		case <-timer.C:
		}
		timer.Stop()
	}
	return nil
}

// metrics count what a namespace sends and applies.
type metrics struct {
	batches  *prometheus.CounterVec
	messages *prometheus.CounterVec
	failures *prometheus.CounterVec
	deferred prometheus.Gauge
}

func newMetrics() metrics {
	vec := func(name, help, label string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, []string{label})
	}
	return metrics{
		batches:  vec("pactwire_batches_total", "Batches by what became of them: sent, applied, refused, deferred, failed.", "outcome"),
		messages: vec("pactwire_messages_total", "Messages by what became of them: sent, confirmed, rejected.", "outcome"),
		failures: vec("pactwire_multiparty_failures_total", "Tries to publish or to apply pins that failed and are repeated.", "step"),
		deferred: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "pactwire_batches_waiting", Help: "Logs of the pin contract that wait for a payload, or for one that does.",
		}),
	}
}

func (m metrics) all() []prometheus.Collector {
	return []prometheus.Collector{m.batches, m.messages, m.failures, m.deferred}
}
