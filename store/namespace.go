package store

import (
	"context"
	"time"
)

// Namespace is one namespace of the configuration, with the head of its history.
type Namespace struct {
	Name     string    `db:"name"`
	Chain    string    `db:"chain"`
	Sequence int64     `db:"sequence"` // the highest sequence given so far; 0 when the history is empty
	Created  time.Time `db:"created"`
}

// EnsureNamespace makes the namespace known, bound to its chain.
func (db *DB) EnsureNamespace(ctx context.Context, name, chain string) error {
	_, err := db.db.ExecContext(ctx, `
		INSERT INTO namespaces (name, chain) VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET chain = excluded.chain`, name, chain)
	return wrap(err, "register namespace "+name)
}

// Namespace returns one namespace.
func (db *DB) Namespace(ctx context.Context, name string) (Namespace, error) {
	var n Namespace
	err := db.db.GetContext(ctx, &n, `SELECT name, chain, sequence, created FROM namespaces WHERE name = $1`, name)
	return n, missing(err, "namespace", name, "read namespace "+name)
}
