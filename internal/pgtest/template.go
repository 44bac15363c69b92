package pgtest

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"strings"

	"github.com/lib/pq"

	"github.com/pactwire/pactwire/migrations"
)

const (
	testPrefix     = "pwtest_"
	templatePrefix = "pwtemplate_"
)

// withDatabase is the URL with another database name in it.
func withDatabase(server, name string) (string, error) {
	parsed, err := url.Parse(server)
	if err != nil || !strings.HasPrefix(parsed.Scheme, "postgres") {
		return "", fmt.Errorf("read the test database URL: it must have the form postgres://user@host/database (%w)", err)
	}
	parsed.Path = "/" + name
	return parsed.String(), nil
}

// ensureTemplate makes the migrated template of this build's migrations, once per server, whoever comes first.
func ensureTemplate(ctx context.Context, server string) (name string, err error) {
	sum, err := migrations.Checksum()
	if err != nil {
		return "", err
	}
	name = templatePrefix + sum[:16]
	db, err := sql.Open("postgres", server)
	if err != nil {
		return "", fmt.Errorf("open the test server: %w", err)
	}
	defer db.Close()
	conn, err := db.Conn(ctx) // the lock belongs to the connection
	if err != nil {
		return "", fmt.Errorf("connect to the test server: %w", err)
	}
	defer conn.Close()
	const lockKey = 0x70677465 // any number that nobody else takes
	if _, err := conn.ExecContext(ctx, "SELECT pg_advisory_lock($1)", lockKey); err != nil {
		return "", fmt.Errorf("wait for the template: %w", err)
	}
	defer func() {
		_, _ = conn.ExecContext(context.WithoutCancel(ctx), "SELECT pg_advisory_unlock($1)", lockKey)
	}()
	var there bool
	if err := conn.QueryRowContext(ctx, "SELECT EXISTS (SELECT 1 FROM pg_database WHERE datname = $1)", name).Scan(&there); err != nil {
		return "", fmt.Errorf("look for the template: %w", err)
	}
	if there {
		return name, nil
	}
	// Migrated under another name and renamed, so that a template with the right name is always complete.
	unfinished := name + "_new"
	for _, statement := range []string{
		"DROP DATABASE IF EXISTS " + pq.QuoteIdentifier(unfinished) + " WITH (FORCE)",
		"CREATE DATABASE " + pq.QuoteIdentifier(unfinished) + " TEMPLATE template0 ENCODING 'UTF8'",
	} {
		if _, err := conn.ExecContext(ctx, statement); err != nil {
			return "", fmt.Errorf("make the template: %w", err)
		}
	}
	target, err := withDatabase(server, unfinished)
	if err != nil {
		return "", err
	}
	if _, err := migrations.Up(target); err != nil {
		return "", err
	}
	if _, err := conn.ExecContext(ctx, "ALTER DATABASE "+pq.QuoteIdentifier(unfinished)+" RENAME TO "+pq.QuoteIdentifier(name)); err != nil {
		return "", fmt.Errorf("put the template in place: %w", err)
	}
	return name, nil
}

// dropLeftovers removes what killed test binaries left on a private server: test databases, and templates of other builds.
func dropLeftovers(ctx context.Context, server string) error {
	db, err := sql.Open("postgres", server)
	if err != nil {
		return fmt.Errorf("open the test server: %w", err)
	}
	defer db.Close()
	sum, err := migrations.Checksum()
	if err != nil {
		return err
	}
	var names []string
	err = db.QueryRowContext(ctx, `SELECT coalesce(array_agg(datname::text), '{}') FROM pg_database
		WHERE starts_with(datname, $1) OR starts_with(datname, $2) AND datname <> $2 || $3`,
		testPrefix, templatePrefix, sum[:16]).Scan(pq.Array(&names))
	if err != nil {
		return fmt.Errorf("look for leftover test databases: %w", err)
	}
	for _, name := range names {
		if _, err := db.ExecContext(ctx, "DROP DATABASE IF EXISTS "+pq.QuoteIdentifier(name)+" WITH (FORCE)"); err != nil {
			return fmt.Errorf("drop a leftover test database: %w", err)
		}
	}
	return nil
}
