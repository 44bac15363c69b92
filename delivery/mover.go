package delivery

import (
	"context"
	"time"

	"github.com/pactwire/pactwire/store"
)

// mover writes the positions of all subscriptions of this process. Those that gather while one write is under way go out together in the next: however
// many subscriptions there are, they keep one database connection busy, and no more.
type mover struct {
	asked chan asked
	quit  chan struct{}
}

type asked struct {
	move store.Move
	done chan<- error
}

func newMover() *mover { return &mover{asked: make(chan asked), quit: make(chan struct{})} }

const (
	movesTogether = 500
	moveTimeout   = 10 * time.Second
)

// run writes until quit is closed, also when ctx has ended: the last positions are written while everything else stops.
func (m *mover) run(ctx context.Context, db *store.DB) {
	ctx = context.WithoutCancel(ctx)
	var waiting []asked
	var moves []store.Move
	for {
		select {
		case <-m.quit:
			return
		case a := <-m.asked:
			waiting = append(waiting[:0], a)
		}
	gather:
		for len(waiting) < movesTogether {
			select {
			case a := <-m.asked:
				waiting = append(waiting, a)
			default:
				break gather
			}
		}
		moves = moves[:0]
		for _, a := range waiting {
			moves = append(moves, a.move)
		}
		limited, cancel := context.WithTimeout(ctx, moveTimeout)
		failed := db.MoveSubscriptions(limited, moves)
		cancel()
		for i, a := range waiting {
			a.done <- failed[i]
		}
		clear(waiting)
		clear(moves)
	}
}

// write keeps one position. When ctx ends first, the write may still happen; a later one comes after it.
func (m *mover) write(ctx context.Context, move store.Move) error {
	done := make(chan error, 1)
	select {
	case m.asked <- asked{move, done}:
	case <-m.quit:
		return errStopping()
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's own doing
	}
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's own doing
	}
}
