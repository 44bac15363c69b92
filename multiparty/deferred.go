package multiparty

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pactwire/pactwire/store"
)

const (
	firstFetch    = 2 * time.Second  // how long the others wait for a payload that is not on the chain
	laterFetch    = 15 * time.Second // and how long it may take when nobody waits
	shortestRetry = 250 * time.Millisecond
	longestRetry  = 15 * time.Second
	pageDeferred  = 20
)

// errMissing means that a payload cannot be had now. A later try may succeed.
var errMissing = errors.New("the payload cannot be had")

// dependent tells whether a log with these contexts has to wait for one that was deferred.
func (n *Network) dependent(ctx context.Context, pin *store.Pin, contexts [][]byte) (bool, error) {
	if pin.Deferred || !n.deferring.Load() {
		return false, nil
	}
	return n.db.MustWait(ctx, n.cfg.Namespace, contexts) //nolint:wrapcheck // it says what it did
}

// postpone keeps a log for later.
func (n *Network) postpone(ctx context.Context, lease store.Lease, pin *store.Pin, contexts [][]byte, reason string, pause time.Duration) error {
	next := store.Now().Add(pause)
	if pin.Deferred {
		return n.db.PostponePin(ctx, lease, n.cfg.Namespace, pin.Position, reason, next) //nolint:wrapcheck // it says what it did
	}
	n.deferring.Store(true)
	n.metrics.batches.WithLabelValues("deferred").Inc()
	return n.db.DeferPin(ctx, lease, n.cfg.Namespace, pin, contexts, reason, next) //nolint:wrapcheck // as above
}

// lookForDeferred notes whether anything is deferred, so that the usual case costs nothing.
func (n *Network) lookForDeferred(ctx context.Context) error {
	count, err := n.db.PinsDeferred(ctx, n.cfg.Namespace)
	if err != nil {
		return err //nolint:wrapcheck // it says what it did
	}
	// Only what applies pins in order defers, so that a stale "none" cannot be written over a new one.
	n.deferring.Store(count > 0)
	n.metrics.deferred.Set(float64(count))
	return nil
}

// retryDeferred tries the deferred logs whose turn it is.
func (n *Network) retryDeferred(ctx context.Context, lease store.Lease) (more bool, err error) {
	if !n.deferring.Load() {
		return false, nil
	}
	due, err := n.db.DuePins(ctx, n.cfg.Namespace, pageDeferred)
	if err != nil {
		return false, err //nolint:wrapcheck // it says what it did
	}
	for i := range due {
		pin := &due[i].Pin
		if _, err := n.apply(ctx, lease, pin); err != nil {
			return false, fmt.Errorf("apply the deferred log %d of block %d: %w", pin.LogIndex, pin.BlockNumber, err)
		}
	}
	return len(due) > 0, nil
}

// backOff is the pause before the next try.
func backOff(tries int) time.Duration {
	return min(longestRetry, shortestRetry<<min(tries, 16))
}
