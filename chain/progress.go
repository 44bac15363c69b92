package chain

import (
	"context"
	"time"

	"github.com/pactwire/pactwire/store"
)

// The modes of a listener.
const (
	ModeCatchUp = "catchup" // it reads the chain's past
	ModeLive    = "live"    // it follows the head
)

// Progress tells how far a listener has read.
type Progress struct {
	Head       int64          // the newest block of the chain
	Checkpoint int64          // the first block that was not read yet
	Lag        int64          // blocks that are mined, have their confirmations, and are not read yet
	Mode       string         // ModeCatchUp or ModeLive
	Events     int64          // recorded so far
	Remaining  *time.Duration // estimated time until it is live, by its pace so far; nil when there is nothing to tell it by
}

// ListenerStatus tells how far a listener has read, whichever process reads for it.
func ListenerStatus(ctx context.Context, client *Client, db *store.DB, l store.Listener) (Progress, error) {
	head, err := client.Head(ctx)
	if err != nil {
		return Progress{}, err
	}
	chain, err := db.Chain(ctx, l.Chain)
	if err != nil {
		return Progress{}, err
	}
	position := l.Position(chain.NextBlock)
	p := Progress{Head: int64(head.Number), Checkpoint: position, Mode: ModeCatchUp, Events: l.Events} //nolint:gosec // no chain reaches 2^63 blocks
	p.Lag = max(0, p.Head-int64(client.Confirmations())-position+1)                                    //nolint:gosec // nor confirmations
	if l.Live {
		p.Mode = ModeLive
		return p, nil
	}
	done, elapsed := position-l.FirstBlock, time.Since(l.Created)
	if done > 0 && elapsed > 0 {
		remaining := time.Duration(float64(elapsed) / float64(done) * float64(p.Lag)).Round(time.Millisecond)
		p.Remaining = &remaining
	}
	return p, nil
}
