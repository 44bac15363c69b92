package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
)

// Lease is the right to do what only one may do, across all replicas. Epoch grows with every new owner: writes made under the lease carry it.
type Lease struct {
	Name  string    `db:"name"`
	Owner uuid.UUID `db:"owner"`
	Epoch int64     `db:"epoch"`
}

// errLeaseLost is the cause with which WithLease cancels the context of a holder that could not renew in time.
var errLeaseLost = errors.New("the lease was lost")

// WithLease waits until the lease is free, runs fn while holding it, and gives it back. The context of fn ends when the lease is lost;
// WithLease then waits for the lease again. It returns what fn returned when fn ended of its own accord, and nil when ctx ended.
func (db *DB) WithLease(ctx context.Context, name string, fn func(context.Context, Lease) error) error {
	free := db.Subscribe(TopicLease(name))
	defer free.Close()
	for {
		owner, asked := uuid.New(), time.Now()
		lease, held, err := db.acquireLease(ctx, name, owner)
		switch {
		case ctx.Err() != nil:
			if err != nil || held { // the end may have come between the database's doing and our hearing of it
				db.giveBack(ctx, Lease{Name: name, Owner: owner})
			}
			return nil
		case err != nil:
			db.log.WarnContext(ctx, "acquire a lease", "lease", name, "error", err)
		case held:
			err, lost := db.hold(ctx, lease, asked, fn)
			if ctx.Err() != nil {
				return nil
			}
			if !lost {
				return err
			}
			db.log.WarnContext(ctx, "a lease was lost", "lease", name, "epoch", lease.Epoch)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-free.C:
		case <-time.After(db.leaseTTL / 4):
		}
	}
}

// hold runs fn while the lease is renewed beside it.
func (db *DB) hold(ctx context.Context, lease Lease, asked time.Time, fn func(context.Context, Lease) error) (err error, lost bool) { //nolint:revive // the error is the holder's own
	work, cancel := context.WithCancelCause(ctx)
	release := db.renewals.keep(lease, asked, func() { cancel(errLeaseLost) })
	err = fn(work, lease)
	lost = errors.Is(context.Cause(work), errLeaseLost) || errors.Is(err, ErrFenced)
	cancel(nil)
	release()
	db.giveBack(ctx, lease)
	return err, lost
}

// giveBack frees the lease even while the process stops, so that the next owner need not wait.
func (db *DB) giveBack(ctx context.Context, lease Lease) {
	release, stop := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer stop()
	if err := db.releaseLease(release, lease); err != nil {
		db.log.WarnContext(ctx, "release a lease", "lease", lease.Name, "error", err)
	}
}

func (db *DB) acquireLease(ctx context.Context, name string, owner uuid.UUID) (Lease, bool, error) {
	var got []Lease
	err := db.db.SelectContext(ctx, &got, `
		INSERT INTO leases (name, owner, epoch, expires) VALUES ($1, $2, 1, now() + $3 * interval '1 millisecond')
		ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, epoch = leases.epoch + 1, expires = excluded.expires
		WHERE leases.expires <= now()
		RETURNING name, owner, epoch`, name, owner, db.leaseTTL.Milliseconds())
	if err != nil {
		return Lease{}, false, wrap(err, "acquire lease "+name)
	}
	if len(got) == 0 {
		return Lease{}, false, nil
	}
	return got[0], true, nil
}

func (db *DB) releaseLease(ctx context.Context, lease Lease) error {
	_, err := db.db.ExecContext(ctx, `UPDATE leases SET expires = '-infinity' WHERE name = $1 AND owner = $2`, lease.Name, lease.Owner)
	if err == nil {
		db.Notify(TopicLease(lease.Name))
	}
	return wrap(err, "release lease "+lease.Name)
}

// ReleaseAllLeases frees every lease, for a process that knows itself to be the database's only user: after a crash it need not
// wait for the leases of its former self.
func (db *DB) ReleaseAllLeases(ctx context.Context) error {
	_, err := db.db.ExecContext(ctx, `UPDATE leases SET expires = '-infinity'`)
	return wrap(err, "release all leases")
}

// checkLease fails with ErrFenced unless the lease is still the owner's, and keeps it so until the transaction ends.
func checkLease(ctx context.Context, tx *sqlx.Tx, lease Lease) error {
	var epoch int64
	if err := tx.GetContext(ctx, &epoch, `SELECT epoch FROM leases WHERE name = $1 FOR SHARE`, lease.Name); err != nil {
		return fmt.Errorf("check lease %s: %w", lease.Name, err)
	}
	if epoch != lease.Epoch {
		return fmt.Errorf("lease %s: %w", lease.Name, ErrFenced)
	}
	return nil
}
