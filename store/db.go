package store

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// Config says which database to use and how hard.
type Config struct {
	URL      string
	MaxConns int           // open connections; 40 when zero
	LeaseTTL time.Duration // how long a lease outlives its owner; 10 s when zero
	Silence  time.Duration // how long the server may leave a statement without a sign of life; 30 s when zero
}

// DB is the database with the notifications that go with it.
type DB struct {
	*Notifier
	db       *sqlx.DB
	log      *slog.Logger
	leaseTTL time.Duration
	renewals *renewals
	awaiting awaiting
	acceptor acceptor

	mu         sync.Mutex
	statements map[string]*sqlx.Stmt
}

// Open connects to a database whose schema is up to date. Close it after everything that uses it has stopped.
func Open(ctx context.Context, cfg Config, log *slog.Logger) (*DB, error) {
	if cfg.MaxConns == 0 {
		cfg.MaxConns = 40
	}
	if cfg.LeaseTTL == 0 {
		cfg.LeaseTTL = 10 * time.Second
	}
	if cfg.Silence == 0 {
		cfg.Silence = 30 * time.Second
	}
	connecting, err := pq.NewConnector(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("open the database: %w", err)
	}
	connecting.Dialer(dialer{silence: cfg.Silence})
	db := sqlx.NewDb(sql.OpenDB(connector{connecting}), "postgres")
	db.SetMaxOpenConns(cfg.MaxConns)
	db.SetMaxIdleConns(cfg.MaxConns)
	db.SetConnMaxIdleTime(5 * time.Minute)
	if err := db.PingContext(ctx); err != nil {
		_ = db.Close()
		return nil, wrap(err, "reach the database")
	}
	notifier := newNotifier(cfg.URL, db, log)
	opened := &DB{
		Notifier: notifier, db: db, log: log, leaseTTL: cfg.LeaseTTL, renewals: newRenewals(db, cfg.LeaseTTL, log),
		awaiting: awaiting{waiting: map[uuid.UUID]map[*Awaited]struct{}{}, elsewhere: notifier.Changes(TopicOutcomes)}, statements: map[string]*sqlx.Stmt{},
	}
	opened.acceptor.db = opened
	return opened, nil
}

// Close ends all connections.
func (db *DB) Close() error {
	if err := db.db.Close(); err != nil {
		return fmt.Errorf("close the database: %w", err)
	}
	return nil
}

// Ping tells whether the database answers.
func (db *DB) Ping(ctx context.Context) error {
	return wrap(db.db.PingContext(ctx), "reach the database")
}

// Stats is the state of the connection pool.
func (db *DB) Stats() sql.DBStats { return db.db.Stats() }

// NewID returns a new UUID, version 7 (RFC 9562): ids made one after the other lie side by side in an index.
func NewID() uuid.UUID { return uuid.Must(uuid.NewV7()) }

// Now is the time as the database keeps it: UTC, microseconds.
func Now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }

// inTx runs fn in one transaction: committed when fn returns nil, rolled back otherwise. doing goes into the error.
func (db *DB) inTx(ctx context.Context, doing string, fn func(*sqlx.Tx) error) error {
	tx, err := db.db.BeginTxx(ctx, nil)
	if err != nil {
		return wrap(err, doing)
	}
	defer tx.Rollback() //nolint:errcheck // after a commit it has nothing to do
	if err := fn(tx); err != nil {
		return wrap(err, doing)
	}
	return wrap(tx.Commit(), doing)
}

// prepared returns the prepared form of a hot statement: lib/pq spends one more round trip on each unprepared one with arguments.
// query must be a constant: prepared statements are kept until Close. Preparing takes a connection, so it must not be done inside a transaction, which
// holds one while all others may be taken by transactions that want the same: a transaction uses a statements value, made before it begins.
func (db *DB) prepared(ctx context.Context, query string) (*sqlx.Stmt, error) {
	db.mu.Lock()
	s := db.statements[query]
	db.mu.Unlock()
	if s != nil {
		return s, nil
	}
	s, err := db.db.PreparexContext(ctx, query) // without the lock: whoever waits for a connection must not hold up those who have one
	if err != nil {
		return nil, fmt.Errorf("prepare a statement: %w", err)
	}
	db.mu.Lock()
	defer db.mu.Unlock()
	if first := db.statements[query]; first != nil { // somebody was faster
		_ = s.Close()
		return first, nil
	}
	db.statements[query] = s
	return s, nil
}

// statements are prepared statements for use in a transaction.
type statements map[string]*sqlx.Stmt

// prepareAll prepares what a transaction is about to use.
func (db *DB) prepareAll(ctx context.Context, queries ...string) (statements, error) {
	all := make(statements, len(queries))
	for _, query := range queries {
		s, err := db.prepared(ctx, query)
		if err != nil {
			return nil, err
		}
		all[query] = s
	}
	return all, nil
}

// in returns one of the statements as part of the transaction, on the transaction's own connection.
func (s statements) in(ctx context.Context, tx *sqlx.Tx, query string) *sqlx.Stmt {
	return tx.StmtxContext(ctx, s[query])
}

// missing turns "no rows" into a pactwire.KindNotFound about the resource, and says what was being done for anything else.
func missing(err error, resource, key, doing string) error {
	if err == sql.ErrNoRows { //nolint:errorlint // database/sql returns it bare
		return pactwire.NotFound(resource, "There is no %s %q.", resource, key)
	}
	return wrap(err, doing)
}
