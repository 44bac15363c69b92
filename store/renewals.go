package store

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// renewals renews all leases of a process together: one statement each quarter of their time, however many they are. It works while there are some.
//
// A lease that was not renewed in time is lost a quarter of its time before anybody else may take it, whatever holds the renewal up: its holder has a clock of
// its own, which needs neither the database nor this goroutine.
type renewals struct {
	db  *sqlx.DB
	ttl time.Duration
	log *slog.Logger

	mu         sync.Mutex
	held       map[uuid.UUID]*heldLease // by owner, which is new each time that a lease is taken
	stop       context.CancelFunc       // nil while there are none
	statements int                      // sent so far
}

type heldLease struct {
	lease  Lease
	expiry *time.Timer // calls lost
	lost   func()
}

func newRenewals(db *sqlx.DB, ttl time.Duration, log *slog.Logger) *renewals {
	return &renewals{db: db, ttl: ttl, log: log, held: map[uuid.UUID]*heldLease{}}
}

// trust is how long after a renewal was asked for the holder may rely on the lease.
func (r *renewals) trust(asked time.Time) time.Duration { return time.Until(asked.Add(r.ttl * 3 / 4)) }

// keep renews a lease that was asked for at that time, until release is called. lost is called when it could not be renewed in time.
func (r *renewals) keep(lease Lease, asked time.Time, lost func()) (release func()) {
	h := &heldLease{lease: lease, expiry: time.AfterFunc(r.trust(asked), lost), lost: lost}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held[lease.Owner] = h
	if r.stop == nil {
		ctx, stop := context.WithCancel(context.Background()) //nolint:contextcheck // it outlives the first holder
		r.stop = stop
		go r.run(ctx)
	}
	return func() {
		h.expiry.Stop()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.held, lease.Owner)
		if len(r.held) == 0 {
			r.stop()
			r.stop = nil
		}
	}
}

func (r *renewals) run(ctx context.Context) {
	pause := r.ttl / 4
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		done := make(chan error, 1)
		limited, stop := context.WithTimeout(ctx, r.ttl/2)
		go func() {
			defer stop()
			done <- r.renew(limited)
		}()
		select {
		case err := <-done:
			if pause = r.ttl / 4; err != nil {
				pause = r.ttl / 16 // there is time for a few more tries
				if ctx.Err() == nil {
					r.log.WarnContext(ctx, "renew leases", "error", err)
				}
			}
		case <-limited.Done(): // the connection hangs, perhaps beyond its context: the next try takes another one
			pause = 0
		}
	}
}

// A row that somebody else has locked is passed over, so that one transaction that hangs while it looks at its lease does not hold up all others.
const sqlRenewLeases = `
	WITH mine AS (
		SELECT l.name FROM leases l JOIN unnest(CAST($1 AS text[]), CAST($2 AS uuid[])) AS m (name, owner) ON l.name = m.name AND l.owner = m.owner
		WHERE l.expires > now() FOR NO KEY UPDATE OF l SKIP LOCKED
	)
	UPDATE leases l SET expires = now() + $3 * interval '1 millisecond' FROM mine WHERE l.name = mine.name RETURNING l.owner`

// renew renews all leases that are held. Those that the database does not know as ours any more are lost.
func (r *renewals) renew(ctx context.Context) error {
	r.mu.Lock()
	asked := make(map[uuid.UUID]*heldLease, len(r.held))
	names, owners := make([]string, 0, len(r.held)), make([]string, 0, len(r.held))
	for owner, h := range r.held {
		asked[owner] = h
		names, owners = append(names, h.lease.Name), append(owners, owner.String())
	}
	r.statements++
	r.mu.Unlock()
	at := time.Now()
	var renewed []uuid.UUID
	if err := r.db.SelectContext(ctx, &renewed, sqlRenewLeases, pq.Array(names), pq.Array(owners), r.ttl.Milliseconds()); err != nil {
		return wrap(err, "renew leases")
	}
	for _, owner := range renewed {
		r.prolong(asked[owner], at)
		delete(asked, owner)
	}
	for _, h := range asked { // locked by somebody, or lost: rare, so that each may have a statement of its own, which waits
		go r.renewOne(ctx, h)
	}
	return nil
}

// prolong moves the end of the holder's trust, unless it has come.
func (r *renewals) prolong(h *heldLease, asked time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.held[h.lease.Owner] == h && h.expiry.Stop() {
		h.expiry.Reset(r.trust(asked))
	}
}

func (r *renewals) renewOne(ctx context.Context, h *heldLease) {
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), r.ttl/2)
	defer stop()
	at := time.Now()
	result, err := r.db.ExecContext(ctx, `
		UPDATE leases SET expires = now() + $3 * interval '1 millisecond' WHERE name = $1 AND owner = $2 AND expires > now()`,
		h.lease.Name, h.lease.Owner, r.ttl.Milliseconds())
	if err != nil {
		return // the holder's own clock decides
	}
	if n, err := result.RowsAffected(); err == nil && n == 0 {
		h.lost()
	} else if err == nil {
		r.prolong(h, at)
	}
}
