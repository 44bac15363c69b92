package e2e

import (
	"database/sql"
	"testing"

	_ "github.com/lib/pq" // the database driver
)

// openSQL looks into a service's database.
func openSQL(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", url)
	must(t, err)
	db.SetMaxIdleConns(0)
	return db
}
