package store

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/lib/pq"
)

// awaitPoll is how often those who wait for operations look for themselves: the word from another process may get lost.
const awaitPoll = time.Second

// awaiting knows who in this process waits for which operations to end. Whoever ends one here hands it over; when another process has ended some, or the poll is
// due, one of those who wait looks for all of them.
type awaiting struct {
	mu      sync.Mutex
	waiting map[uuid.UUID]map[*Awaited]struct{}

	elsewhere *atomic.Uint64 // how often another process has said that operations have ended

	looking sync.Mutex // held by the one that looks; the others need not look again after it
	looked  time.Time  // when it was last done
	upTo    uint64     // elsewhere at that time
}

// Awaited is an operation that somebody waits for.
type Awaited struct {
	db    *DB
	id    uuid.UUID
	ended chan Operation
}

// Await begins to wait for the operation with the id. Begun before the operation is accepted, it cannot miss the end. Close it in any case.
func (db *DB) Await(id uuid.UUID) *Awaited {
	a := &Awaited{db: db, id: id, ended: make(chan Operation, 1)}
	w := &db.awaiting
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[id] == nil {
		w.waiting[id] = map[*Awaited]struct{}{}
	}
	w.waiting[id][a] = struct{}{}
	return a
}

// Close ends the waiting.
func (a *Awaited) Close() {
	w := &a.db.awaiting
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting[a.id], a)
	if len(w.waiting[a.id]) == 0 {
		delete(w.waiting, a.id)
	}
}

// Outcome returns the operation once it has ended.
func (a *Awaited) Outcome(ctx context.Context) (Operation, error) {
	elsewhere := a.db.Subscribe(TopicOutcomes)
	defer elsewhere.Close()
	poll := time.NewTicker(awaitPoll)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return Operation{}, fmt.Errorf("wait for operation %s: %w", a.id, ctx.Err())
		case op := <-a.ended:
			return op, nil
		case <-elsewhere.C:
		case <-poll.C:
		}
		if err := a.db.lookForOutcomes(ctx); err != nil {
			return Operation{}, err
		}
	}
}

// AwaitOperation waits for an operation that was accepted before, and may have ended.
func (db *DB) AwaitOperation(ctx context.Context, id uuid.UUID) (Operation, error) {
	a := db.Await(id)
	defer a.Close()
	if err := db.handOverEnded(ctx, []string{id.String()}); err != nil {
		return Operation{}, err
	}
	return a.Outcome(ctx)
}

// lookForOutcomes hands over what has ended of all that is waited for, unless somebody has just done so.
func (db *DB) lookForOutcomes(ctx context.Context) error {
	w := &db.awaiting
	w.looking.Lock()
	defer w.looking.Unlock()
	upTo, now := w.elsewhere.Load(), time.Now()
	if upTo == w.upTo && now.Sub(w.looked) < awaitPoll/2 {
		return nil
	}
	w.mu.Lock()
	ids := make([]string, 0, len(w.waiting))
	for id := range w.waiting {
		ids = append(ids, id.String())
	}
	w.mu.Unlock()
	// It is done for others too, and goes on when this caller has left.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
	defer stop()
	if err := db.handOverEnded(ctx, ids); err != nil {
		return err
	}
	w.looked, w.upTo = now, upTo
	return nil
}

// handOverEnded hands over those of the operations that have ended.
func (db *DB) handOverEnded(ctx context.Context, ids []string) error {
	var rows []operationRow
	err := db.db.SelectContext(ctx, &rows, sqlOperation+` WHERE o.id = ANY (CAST($1 AS uuid[])) AND o.status IN ('Succeeded', 'Failed')`, pq.Array(ids))
	if err != nil {
		return wrap(err, "look for the ends of operations")
	}
	operations := make([]Operation, len(rows))
	for i := range rows {
		if operations[i], err = rows[i].operation(); err != nil {
			return err
		}
	}
	db.handOver(operations)
	return nil
}

// handOver gives ended operations to those in this process who wait for them.
func (db *DB) handOver(operations []Operation) {
	w := &db.awaiting
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := range operations {
		for a := range w.waiting[operations[i].ID] {
			select {
			case a.ended <- operations[i]:
			default: // it was told before
			}
		}
	}
}
