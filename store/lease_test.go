package store

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/internal/pgtest"
)

func openForTest(t *testing.T, cfg Config) *DB {
	t.Helper()
	cfg.URL = pgtest.New(t)
	return openAt(t, cfg)
}

func openAt(t *testing.T, cfg Config) *DB {
	t.Helper()
	db, err := Open(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestLeasesOfAProcessAreRenewedTogether(t *testing.T) {
	t.Parallel()
	const leases, ttl = 300, time.Second
	db := openForTest(t, Config{LeaseTTL: ttl, MaxConns: 8})
	ctx, cancel := context.WithCancel(t.Context())
	var lost atomic.Int64
	var holding, held sync.WaitGroup
	held.Add(leases)
	for i := range leases {
		holding.Go(func() {
			var once sync.Once
			_ = db.WithLease(ctx, fmt.Sprintf("test/%d", i), func(ctx context.Context, _ Lease) error {
				once.Do(held.Done)
				<-ctx.Done()
				if context.Cause(ctx) == errLeaseLost { //nolint:errorlint // the cause itself
					lost.Add(1)
				}
				return nil
			})
		})
	}
	held.Wait()
	db.renewals.mu.Lock()
	before := db.renewals.statements
	db.renewals.mu.Unlock()
	time.Sleep(3 * ttl) // the leases' own time
	db.renewals.mu.Lock()
	sent := db.renewals.statements - before
	db.renewals.mu.Unlock()
	if sent < 4 || sent > 20 {
		t.Errorf("%d statements in %s", sent, 3*ttl)
	}
	if n := lost.Load(); n > 0 {
		t.Errorf("%d leases were lost", n)
	}
	cancel()
	holding.Wait()
	db.renewals.mu.Lock()
	defer db.renewals.mu.Unlock()
	if len(db.renewals.held) > 0 || db.renewals.stop != nil {
		t.Errorf("%d leases are still renewed", len(db.renewals.held))
	}
}

// TestATroubledLeaseDoesNotHoldUpTheOthers has one lease stolen and one whose row is locked.
func TestATroubledLeaseDoesNotHoldUpTheOthers(t *testing.T) {
	t.Parallel()
	const ttl = time.Second
	db := openForTest(t, Config{LeaseTTL: ttl})
	ctx, cancel := context.WithCancel(t.Context())
	var holding sync.WaitGroup
	took := map[string]chan struct{}{}
	lost := map[string]chan struct{}{}
	for _, name := range []string{"stolen", "locked", "sound"} {
		took[name], lost[name] = make(chan struct{}), make(chan struct{})
		var once, onceLost sync.Once
		holding.Go(func() {
			_ = db.WithLease(ctx, name, func(work context.Context, _ Lease) error {
				once.Do(func() { close(took[name]) })
				<-work.Done()
				if ctx.Err() == nil {
					onceLost.Do(func() { close(lost[name]) })
				}
				return nil
			})
		})
	}
	for _, c := range took {
		<-c
	}
	if _, err := db.db.ExecContext(ctx, `UPDATE leases SET owner = $1, epoch = epoch + 1 WHERE name = 'stolen'`, NewID()); err != nil {
		t.Fatal(err)
	}
	tx, err := db.db.BeginTxx(ctx, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tx.ExecContext(ctx, `SELECT 1 FROM leases WHERE name = 'locked' FOR SHARE`); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stolen", "locked"} {
		select {
		case <-lost[name]:
		case <-time.After(10 * ttl):
			t.Errorf("the lease %s was not lost", name)
		}
	}
	select {
	case <-lost["sound"]:
		t.Error("the sound lease was lost with the others")
	default:
	}
	_ = tx.Rollback()
	cancel()
	holding.Wait()
}

// TestNoStatementWaitsForEver has a server that gives no sign of life for longer than allowed.
func TestNoStatementWaitsForEver(t *testing.T) {
	t.Parallel()
	db := openForTest(t, Config{Silence: 300 * time.Millisecond})
	began := time.Now()
	_, err := db.db.ExecContext(t.Context(), `SELECT pg_sleep(20)`)
	err = wrap(err, "sleep")
	if took := time.Since(began); err == nil || took > 10*time.Second {
		t.Errorf("%v after %s", err, took)
	}
	if pactwire.KindOf(err) != pactwire.KindUnavailable {
		t.Errorf("it is a %v: %v", pactwire.KindOf(err), err)
	}
	if err := db.Ping(t.Context()); err != nil {
		t.Errorf("the next statement: %v", err)
	}
}

// TestPreparingDoesNotHoldUpTransactions has the only connection taken by a transaction, while somebody else waits for one to prepare a statement with.
func TestPreparingDoesNotHoldUpTransactions(t *testing.T) {
	t.Parallel()
	db := openForTest(t, Config{MaxConns: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	const known, other = `SELECT 1`, `SELECT 2`
	hot, err := db.prepareAll(ctx, known)
	if err != nil {
		t.Fatal(err)
	}
	var waiting sync.WaitGroup
	err = db.inTx(ctx, "test", func(tx *sqlx.Tx) error {
		waiting.Go(func() {
			if _, err := db.prepared(ctx, other); err != nil {
				t.Errorf("prepare: %v", err)
			}
		})
		for deadline := time.Now().Add(10 * time.Second); db.db.Stats().WaitCount == 0; {
			if time.Now().After(deadline) {
				t.Fatal("nobody waits for a connection")
			}
			time.Sleep(time.Millisecond) // polls a condition
		}
		var one int
		if err := hot.in(ctx, tx, known).GetContext(ctx, &one); err != nil {
			return err
		}
		_, err := db.prepared(ctx, known)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	waiting.Wait()
}

func TestMain(m *testing.M) { pgtest.Main(m) }
