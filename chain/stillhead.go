package chain

import (
	"context"
	"sync"
	"time"
)

// The rhythm of watching whether the head moves, in looks at the node in use. Chains that make blocks only when there is something to do are silent for hours: then the
// other nodes are asked seldom, and nothing else comes of it.
const (
	headLook     = 5 * time.Second // between two looks
	stillLooks   = 6               // for so long the head stands still before the other nodes are asked
	certainLooks = 2               // for so long it must go on standing still once another node is ahead: a block may only be on its way
	longestLooks = 24              // between two questions to the other nodes; first it is two looks
	aheadBlocks  = 3               // by which another node is clearly ahead: less is the usual difference between nodes
)

// watchedHead is the head of one node.
type watchedHead struct {
	number uint64    // the highest one that it has told
	since  time.Time // since when
	askAt  time.Time // the other nodes are not asked before
	pause  time.Duration
	ahead  time.Time // since when another node is known to be ahead; zero when none is
}

// headWatch is what is known of the heads of the nodes that were in use. It does no I/O.
type headWatch struct {
	look  time.Duration
	nodes map[string]*watchedHead // by URL: one that is used again has stood still since it was seen last, unless it has moved

	mu      sync.Mutex // for what the metric reads
	highest uint64
	moved   time.Time // when the highest of all was first seen
}

func newHeadWatch(look time.Duration, now time.Time) *headWatch {
	return &headWatch{look: look, nodes: map[string]*watchedHead{}, moved: now}
}

// seen notes what the node in use tells. due says that it has stood still for so long that the other nodes should be asked now.
func (w *headWatch) seen(url string, number uint64, now time.Time) (due bool) {
	w.mu.Lock()
	if number > w.highest {
		w.highest, w.moved = number, now
	}
	w.mu.Unlock()
	n := w.nodes[url]
	if n == nil || number > n.number {
		w.nodes[url] = &watchedHead{number: number, since: now}
		return false
	}
	return now.Sub(n.since) >= stillLooks*w.look && !now.Before(n.askAt)
}

// compared notes whether one of the other nodes is ahead. enough says that the node has stood still beside it for long enough.
func (w *headWatch) compared(url string, ahead bool, now time.Time) (enough bool) {
	n := w.nodes[url]
	if !ahead {
		n.ahead = time.Time{}
		n.pause = min(max(2*n.pause, 2*w.look), longestLooks*w.look)
		n.askAt = now.Add(n.pause)
		return false
	}
	n.pause = 0
	if n.ahead.IsZero() {
		n.ahead, n.askAt = now, now.Add(certainLooks*w.look)
		return false
	}
	return true
}

// setAside forgets the suspicion: should the node be used again, it begins anew.
func (w *headWatch) setAside(url string) { w.nodes[url].ahead = time.Time{} }

// stillFor is how long the head has stood still.
func (w *headWatch) stillFor(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return now.Sub(w.moved)
}

// watchHead looks now and then whether the head of the node in use moves, also where another process reads the chain, until ctx ends.
func (r *Reader) watchHead(ctx context.Context) {
	for ctx.Err() == nil {
		r.lookAtHead(ctx)
		select {
		case <-ctx.Done():
		case <-time.After(r.cfg.headLook):
		}
	}
}

// lookAtHead sets the node in use aside when its head stands still while that of another one is clearly ahead.
func (r *Reader) lookAtHead(ctx context.Context) {
	url := r.client.url()
	head, err := r.client.Head(ctx)
	if err != nil || url == "" || r.client.url() != url { // others take care of a node that does not answer
		return
	}
	if !r.headWatch.seen(url, head.Number, time.Now()) {
		return
	}
	others := r.client.trustedBeside(url)
	if len(others) == 0 {
		return
	}
	ahead := ""
	for _, other := range others {
		number, err := r.client.headOf(ctx, other)
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			r.log.DebugContext(ctx, "ask another node for its head", "url", redact(other), "error", err)
			continue
		}
		if number >= head.Number+aheadBlocks {
			ahead = other
			break
		}
	}
	if !r.headWatch.compared(url, ahead != "", time.Now()) {
		return
	}
	if again, err := r.client.Head(ctx); err != nil || again.Number > head.Number { // it has moved while the others were asked
		return
	}
	if r.client.distrust(ctx, url, troubleStill, ahead) {
		r.headWatch.setAside(url)
		r.metrics.setAside.WithLabelValues(troubleStill).Inc()
	}
}
