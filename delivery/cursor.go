package delivery

import (
	"context"
	"errors"
	"time"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// cursor keeps a durable subscription's position in the store: one write at a time, always of the newest state.
type cursor struct {
	feed  *feed
	epoch int64

	position, acks int64 // of the last write
}

// run writes until ctx ends. It fails when this process may not move the subscription any more.
func (c *cursor) run(ctx context.Context) error {
	c.feed.mu.Lock()
	c.position, c.acks = c.feed.written, c.feed.window.acks
	c.feed.mu.Unlock()
	// Foreign events alone move the position without waking anybody; what they add up to is written now and then.
	now := time.NewTicker(5 * time.Second)
	defer now.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-c.feed.dirty:
		case <-now.C:
		}
		err := c.write(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, store.ErrFenced), gone(err):
			return err
		case err != nil:
			c.feed.trouble(ctx, "keep the position", err)
			wait(ctx, 200*time.Millisecond)
			signal(c.feed.dirty)
		}
	}
}

// flush writes what is left when the dispatcher has stopped, even if ctx has ended. A database that does not answer only costs redeliveries.
func (c *cursor) flush(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	return c.write(ctx)
}

func (c *cursor) write(ctx context.Context) error {
	f := c.feed
	f.mu.Lock()
	position, acks, letters := f.window.position(), f.window.acks, f.letters
	if position == c.position && acks == c.acks && len(letters) == 0 {
		f.mu.Unlock()
		return nil
	}
	move := store.Move{ID: f.ref.ID, Epoch: c.epoch, Position: position, Beyond: f.window.beyond()}
	f.mu.Unlock()
	var err error
	if len(letters) > 0 { // what they are acknowledged by is their being kept
		err = f.m.db.MoveWithDeadLetters(ctx, move, letters)
	} else {
		err = f.m.mover.write(ctx, move)
	}
	if err != nil {
		return err //nolint:wrapcheck // the store has said what it was doing
	}
	f.m.metrics.moves.Inc()
	c.position, c.acks = position, acks
	f.mu.Lock()
	f.written = position
	if f.letters = f.letters[len(letters):]; len(f.letters) == 0 && f.kept != nil {
		f.letters = nil
		close(f.kept)
		f.kept = nil
	}
	f.mu.Unlock()
	return nil
}

// gone tells whether err says that the subscription does not exist.
func gone(err error) bool { return err != nil && pactwire.KindOf(err) == pactwire.KindNotFound }
