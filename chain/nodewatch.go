package chain

import (
	"context"
	"errors"
	"sync"
	"time"
)

// nodeWatch decides when the node in use has been wrong, behind or unwilling for long enough to be set aside for another one. Nothing is lost meanwhile: what a
// node says wrongly is never recorded, whichever node it is.
type nodeWatch struct {
	mu    sync.Mutex
	url   string
	since time.Time // of the first trouble after the last good answer
	wrong int       // answers since then that contradict each other or what is known
	hid   int       // blocks of which it left out logs
}

// The kinds of trouble, as metric and status tell them.
const (
	troubleBad     = "contradicts_final" // it contradicts what was final
	troubleForeign = "foreign_block"     // its answers do not belong to one chain
	troubleHidden  = "hidden_logs"       // it leaves out logs
	troubleBehind  = "behind"            // its head stays behind what is recorded
	troubleStill   = "head_stands_still" // its head does not move, and that of another node does
)

const (
	// wrongPatience is how many answers in a row may not fit together: each reorganisation in the middle of reading makes one.
	wrongPatience = 5
	// hiddenPatience is of how many blocks a node may leave out logs.
	hiddenPatience = 3
	// missingPatience is how long a node may not have a block that it should have.
	missingPatience = 10 * time.Second
	// refusalPatience is how long a node may refuse everything.
	refusalPatience = 30 * time.Second
)

// kindOfTrouble names an error of the node.
func kindOfTrouble(err error) string {
	switch {
	case errors.Is(err, errBadNode):
		return troubleBad
	case errors.Is(err, errForeignBlock):
		return troubleForeign
	}
	return kindOfRefusal(err).String()
}

// troubled takes an error of the node into account.
func (r *Reader) troubled(ctx context.Context, kind string) {
	w := &r.watch
	url := r.client.url()
	w.mu.Lock()
	if url != w.url {
		w.url, w.since, w.wrong, w.hid = url, time.Time{}, 0, 0
	}
	if w.since.IsZero() {
		w.since = time.Now()
	}
	lasted := time.Since(w.since)
	enough := false
	switch kind {
	case troubleBad, troubleBehind: // whoever says so has waited already
		enough = true
	case troubleForeign:
		w.wrong++
		enough = w.wrong >= wrongPatience
	case troubleHidden: // no good answer makes up for that
		w.hid++
		enough = w.hid >= hiddenPatience
	case refusedMissing.String():
		enough = lasted > missingPatience
	default:
		enough = lasted > refusalPatience
	}
	w.mu.Unlock()
	if enough && url != "" && r.client.distrust(ctx, url, kind, "") {
		r.metrics.setAside.WithLabelValues(kind).Inc()
	}
}

// wellServed notes that the node in use has given what was asked for.
func (r *Reader) wellServed() {
	r.watch.mu.Lock()
	defer r.watch.mu.Unlock()
	r.watch.since, r.watch.wrong = time.Time{}, 0
}
