package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/lib/pq"
)

// server is the one of this test binary; it ends with the process.
var server = sync.OnceValues(func() (running, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	used.Store(true)
	url, stop := os.Getenv(EnvURL), func() {}
	if url == "" {
		var err error
		if url, stop, err = StartServer(ctx, slog.New(slog.DiscardHandler)); err != nil {
			return running{}, err
		}
	}
	template, err := ensureTemplate(ctx, url)
	if err != nil {
		return running{}, err
	}
	db, err := sql.Open("postgres", url)
	if err != nil {
		return running{}, fmt.Errorf("open the test server: %w", err)
	}
	db.SetMaxIdleConns(0) // no connection outlives its statement: tests look for leaked goroutines
	var version int
	if err := db.QueryRowContext(ctx, "SELECT current_setting('server_version_num')::int").Scan(&version); err != nil {
		return running{}, fmt.Errorf("ask the test server's version: %w", err)
	}
	clone := "TEMPLATE " + pq.QuoteIdentifier(template)
	if version >= 150_000 {
		// Older servers know only this way; newer ones by default write the copy to the log, which takes three times as long.
		clone = "STRATEGY file_copy " + clone
	}
	return running{url: url, clone: clone, db: db, stop: stop}, nil
})

type running struct {
	url   string
	clone string // how CREATE DATABASE copies the migrated template
	db    *sql.DB
	stop  func()
}

var (
	used    atomic.Bool
	counter atomic.Uint64
)

// New makes a database with the newest schema for this test alone and returns its URL. It is dropped when the test ends.
func New(t testing.TB) string {
	t.Helper()
	s, err := server()
	if err != nil {
		t.Fatalf("no PostgreSQL to test with: %v", err)
	}
	return s.create(t, s.clone)
}

// NewEmpty makes a database without any schema, for tests of the migrations themselves.
func NewEmpty(t testing.TB) string {
	t.Helper()
	s, err := server()
	if err != nil {
		t.Fatalf("no PostgreSQL to test with: %v", err)
	}
	return s.create(t, "TEMPLATE template0 ENCODING 'UTF8'")
}

func (s running) create(t testing.TB, from string) string {
	t.Helper()
	name := databaseName(t.Name())
	if _, err := s.db.ExecContext(context.Background(), "CREATE DATABASE "+pq.QuoteIdentifier(name)+" "+from); err != nil {
		t.Fatalf("create the test's database: %v", err)
	}
	t.Cleanup(func() {
		// Connections that the test left open are cut.
		if _, err := s.db.ExecContext(context.Background(), "DROP DATABASE IF EXISTS "+pq.QuoteIdentifier(name)+" WITH (FORCE)"); err != nil {
			t.Errorf("drop the test's database: %v", err)
		}
	})
	url, err := withDatabase(s.url, name)
	if err != nil {
		t.Fatal(err)
	}
	return url
}

// databaseName tells a person which test a database belongs to, and is unique among the test binaries of a server.
func databaseName(test string) string {
	name := fmt.Sprintf("%s%d_%d_%s", testPrefix, os.Getpid(), counter.Add(1), strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r + 'a' - 'A'
		}
		return '_'
	}, test))
	const longest = 63 // PostgreSQL cuts longer names, silently
	return name[:min(len(name), longest)]
}
