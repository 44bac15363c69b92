//go:build unix

package devnet

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lib/pq"
)

// PostgresConfig says where a private PostgreSQL server keeps its data.
type PostgresConfig struct {
	Dir    string // the folder of the cluster; made when missing
	BinDir string // where initdb and postgres are; empty means: find them
	Fast   bool   // give durability up for speed; for tests only
}

// Postgres is a running private server. It ends with this process, at the latest.
type Postgres struct {
	log     *slog.Logger
	cluster *cluster
	process *os.Process
	done    chan struct{} // closed when the server has ended
	lock    *os.File
}

const (
	postgresUser  = "pactwire"
	readyTimeout  = 30 * time.Second // recovery after a crash is part of it
	pollInterval  = 2 * time.Millisecond
	stopFast      = syscall.SIGINT  // roll back, write everything out, go
	stopImmediate = syscall.SIGQUIT // go; the next start recovers
)

// StartPostgres starts the private server of a folder, making the cluster first where there is none, and returns when it
// takes connections. A server that a killed process left behind is stopped first.
func StartPostgres(ctx context.Context, cfg PostgresConfig, log *slog.Logger) (*Postgres, error) {
	c, err := openCluster(cfg)
	if err != nil {
		return nil, err
	}
	lock, err := lockFolder(c.dir)
	if err != nil {
		return nil, err
	}
	p := &Postgres{log: log, cluster: c, lock: lock}
	if err := p.start(ctx, cfg.Fast); err != nil {
		_ = lock.Close()
		return nil, err
	}
	return p, nil
}

func (p *Postgres) start(ctx context.Context, fast bool) error {
	if err := p.cluster.stopLeftover(ctx, p.log); err != nil {
		return err
	}
	if err := p.cluster.initialise(p.log); err != nil {
		return err
	}
	begin := time.Now()
	// Workers of a server that was killed notice it within moments, but until then they keep a new one from starting.
	const inUse = "pre-existing shared memory block"
	for {
		err := p.launch(ctx, fast)
		if err == nil {
			break
		}
		if !strings.Contains(err.Error(), inUse) || time.Since(begin) > readyTimeout || ctx.Err() != nil {
			return err
		}
	}
	p.log.Debug("PostgreSQL is ready", "folder", p.cluster.dir, "pid", p.process.Pid, "took", time.Since(begin))
	return nil
}

func (p *Postgres) launch(ctx context.Context, fast bool) error {
	server, err := p.cluster.launch(fast)
	if err != nil {
		return err
	}
	p.process, p.done = server.process, make(chan struct{})
	go func(done chan struct{}) {
		<-server.done
		close(done)
	}(p.done)
	if err := p.awaitReady(ctx); err != nil {
		_ = p.process.Signal(stopImmediate)
		<-p.done
		return err
	}
	return nil
}

// awaitReady waits for the word "ready" that the server writes into its own pid file.
func (p *Postgres) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		if state, err := p.cluster.readPID(); err == nil && state.pid == p.process.Pid && state.ready {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for PostgreSQL to take connections: %w; its log ends with:\n%s", context.Cause(ctx), p.cluster.logTail())
		case <-p.done:
			return fmt.Errorf("start PostgreSQL: the server ended; its log ends with:\n%s", p.cluster.logTail())
		case <-tick.C:
		}
	}
}

// URL is the connection string of one database of the server, for lib/pq and any libpq program.
func (p *Postgres) URL(database string) string {
	query := url.Values{"host": {p.cluster.socketDir}, "port": {"5432"}, "user": {postgresUser}, "sslmode": {"disable"}}
	return (&url.URL{Scheme: "postgres", Path: "/" + database, RawQuery: query.Encode()}).String()
}

// EnsureDatabase makes the database if it does not exist yet.
func (p *Postgres) EnsureDatabase(ctx context.Context, name string) error {
	db, err := sql.Open("postgres", p.URL("postgres"))
	if err != nil {
		return fmt.Errorf("open the maintenance database: %w", err)
	}
	defer db.Close()
	const duplicate = "42P04"
	_, err = db.ExecContext(ctx, "CREATE DATABASE "+pq.QuoteIdentifier(name))
	if pgErr := (*pq.Error)(nil); errors.As(err, &pgErr) && pgErr.Code == duplicate {
		return nil
	}
	if err != nil {
		return fmt.Errorf("create the database %s: %w", name, err)
	}
	return nil
}

// Done is closed when the server has ended, whoever ended it.
func (p *Postgres) Done() <-chan struct{} { return p.done }

// Stop ends the server: quickly and cleanly, and when ctx ends first, at once (the next start then recovers). Nothing is
// lost either way. It returns when the server is gone; stopping twice is fine.
func (p *Postgres) Stop(ctx context.Context) error {
	defer p.lock.Close()
	defer p.cluster.removeShortSocketDir()
	if p.endsBy(ctx, stopFast) {
		return nil
	}
	for _, signal := range []syscall.Signal{stopImmediate, syscall.SIGKILL} {
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		gone := p.endsBy(limit, signal)
		cancel()
		if gone {
			return fmt.Errorf("stop PostgreSQL in time: %w", context.Cause(ctx))
		}
	}
	return fmt.Errorf("stop PostgreSQL: process %d does not end", p.process.Pid)
}

// endsBy sends the signal and reports whether the server is gone before ctx ends.
func (p *Postgres) endsBy(ctx context.Context, signal syscall.Signal) bool {
	_ = p.process.Signal(signal) // fails only when it has ended already
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// logTail is the end of the server's log, for an error message.
func (c *cluster) logTail() string {
	text, err := os.ReadFile(filepath.Join(c.dir, "postgres.log"))
	if err != nil {
		return "(no log)"
	}
	if len(text) > 2000 {
		text = text[len(text)-2000:]
	}
	return strings.TrimSpace(string(text))
}
