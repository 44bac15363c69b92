// Package migrations holds the database schema as numbered SQL files, each with its way back, and brings a database up to date.
package migrations

import (
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/golang-migrate/migrate/v4"
	"github.com/golang-migrate/migrate/v4/database/postgres"
	"github.com/golang-migrate/migrate/v4/source/iofs"
	_ "github.com/lib/pq" // the database driver
)

//go:embed *.sql
var files embed.FS

// Version is a schema version, as the numbers of the files count.
type Version struct {
	Number uint
	Dirty  bool // a migration stopped half way; a person must look
}

// Up brings the database at url to the newest schema. It is safe to call from several processes at once.
func Up(url string) (Version, error) {
	return with(url, func(m *migrate.Migrate) error { return m.Up() })
}

// Down takes back the given number of migrations.
func Down(url string, steps int) (Version, error) {
	return with(url, func(m *migrate.Migrate) error { return m.Steps(-steps) })
}

// Current tells the schema version of the database at url, without changing it. A database without a schema has version 0.
func Current(url string) (Version, error) {
	return with(url, func(*migrate.Migrate) error { return nil })
}

// Latest is the number of the newest migration in this binary.
func Latest() (uint, error) {
	source, err := iofs.New(files, ".")
	if err != nil {
		return 0, fmt.Errorf("read the migrations: %w", err)
	}
	defer source.Close()
	version, err := source.First()
	if err != nil {
		return 0, fmt.Errorf("find the first migration: %w", err)
	}
	for {
		next, err := source.Next(version)
		if err != nil {
			return version, nil //nolint:nilerr // the source says "no more" with an error
		}
		version = next
	}
}

func with(url string, do func(*migrate.Migrate) error) (Version, error) {
	db, err := sql.Open("postgres", url)
	if err != nil {
		return Version{}, fmt.Errorf("open the database: %w", err)
	}
	driver, err := postgres.WithInstance(db, &postgres.Config{})
	if err != nil {
		_ = db.Close()
		return Version{}, fmt.Errorf("prepare the database for migration: %w", err)
	}
	source, err := iofs.New(files, ".")
	if err != nil {
		_ = driver.Close()
		return Version{}, fmt.Errorf("read the migrations: %w", err)
	}
	m, err := migrate.NewWithInstance("embedded", source, "postgres", driver)
	if err != nil {
		_ = driver.Close()
		return Version{}, fmt.Errorf("prepare the migrations: %w", err)
	}
	defer m.Close()
	if err := do(m); err != nil && !errors.Is(err, migrate.ErrNoChange) {
		return Version{}, fmt.Errorf("migrate the database: %w", err)
	}
	number, dirty, err := m.Version()
	if err != nil && !errors.Is(err, migrate.ErrNilVersion) {
		return Version{}, fmt.Errorf("read the schema version: %w", err)
	}
	return Version{Number: number, Dirty: dirty}, nil
}
