package chain

import (
	"context"
	"fmt"
	"sync"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// Accept stores an operation: once it returns, the operation will end. A repeat with the same idempotency key and the same body returns the operation of the first
// time, and true; with another body it is a conflict.
//
// Where the owner of the key is in this process and nothing waits before it, the operation is stored with its nonce and its signature, in one statement with all that
// are accepted at the same time. Otherwise it waits in the outbox.
func (s *Submitter) Accept(ctx context.Context, n store.NewOperation) (store.Operation, bool, error) {
	if n.ID == uuid.Nil {
		n.ID = store.NewID()
	}
	if owner := s.owner(n.Key); owner != nil && n.Options.Nonce == nil {
		if a := owner.accepting.put(ctx, n); a != nil {
			select {
			case <-ctx.Done():
				return store.Operation{}, false, fmt.Errorf("accept an operation: %w", ctx.Err())
			case <-a.done:
			}
			switch a.result {
			case acceptStored:
				return a.operation, false, nil
			case acceptFailed:
				return store.Operation{}, false, a.err
			case acceptRepeated, acceptElsewhere: // the outbox decides
			}
		}
	}
	return s.db.CreateOperation(ctx, n) //nolint:wrapcheck // it says what was being done
}

func (s *Submitter) owner(key common.Address) *keySubmitter {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owners[key]
}

// own makes the owner known to Accept until the returned function is called.
func (s *Submitter) own(k *keySubmitter) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.owners[k.key] = k
	return func() {
		s.mu.Lock()
		delete(s.owners, k.key)
		s.mu.Unlock()
		k.accepting.close()
	}
}

// acceptance is an operation that a client waits to have accepted.
type acceptance struct {
	ctx    context.Context //nolint:containedctx // it belongs to this one call, which lives no longer
	new    store.NewOperation
	done   chan struct{}
	result acceptResult // this and what follows is written before done is closed

	operation store.Operation
	err       error
}

type acceptResult int

const (
	acceptElsewhere acceptResult = iota // the owner cannot take it now
	acceptStored
	acceptRepeated // its idempotency key has been used before
	acceptFailed
)

func (a *acceptance) settle(result acceptResult) {
	a.result = result
	close(a.done)
}

// acceptQueue holds the operations that wait for the owner of their key.
type acceptQueue struct {
	mu      sync.Mutex
	waiting []*acceptance
	closed  bool
	full    bool // the owner has as many in flight as it may
	wake    chan struct{}
}

func newAcceptQueue() *acceptQueue { return &acceptQueue{wake: make(chan struct{}, 1)} }

// put returns nil when the owner takes none.
func (q *acceptQueue) put(ctx context.Context, n store.NewOperation) *acceptance {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.full {
		return nil
	}
	a := &acceptance{ctx: ctx, new: n, done: make(chan struct{})}
	q.waiting = append(q.waiting, a)
	signal(q.wake)
	return a
}

// take removes up to limit operations whose callers are still there, and sends all others that wait to the outbox. With a limit of zero it does so with those that
// come, too, until the next time.
func (q *acceptQueue) take(limit int) []*acceptance {
	q.mu.Lock()
	waiting := q.waiting
	q.waiting, q.full = nil, limit <= 0
	q.mu.Unlock()
	var taken []*acceptance
	for _, a := range waiting {
		switch {
		case a.ctx.Err() != nil: // nobody waits for it any more
		case len(taken) < limit:
			taken = append(taken, a)
		default:
			a.settle(acceptElsewhere)
		}
	}
	return taken
}

// close sends all that wait, and all that come, to the outbox.
func (q *acceptQueue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.take(0)
}
