package app

import (
	"cmp"
	"context"
	"fmt"

	"github.com/pactwire/pactwire/migrations"
	"github.com/pactwire/pactwire/store"
)

// openDatabase waits for the database and for its schema. In dev it brings the schema up to date itself, and in production where that is wanted.
func (s *service) openDatabase(starting context.Context) error {
	url := cmp.Or(s.embedded.DatabaseURL, s.cfg.DatabaseURL)
	latest, err := migrations.Latest()
	if err != nil {
		return err //nolint:wrapcheck // it says what it did
	}
	s.schema = latest
	for {
		part, why, err := s.tryDatabase(starting, url, latest)
		if err == nil && why == "" {
			return nil
		}
		if starting.Err() != nil {
			return starting.Err() //nolint:wrapcheck // the caller drops it
		}
		s.readiness.need(part, why)
		s.log.WarnContext(starting, "the database is not usable; trying again", "part", part, "reason", why, "error", err)
		if err := pause(starting); err != nil {
			return err
		}
	}
}

func (s *service) tryDatabase(ctx context.Context, url string, latest uint) (part, why string, err error) {
	const database, schema = "database", "migrations"
	look := migrations.Current
	if s.cfg.Mode == ModeDev || s.cfg.Migrate {
		look = migrations.Up
	}
	version, err := look(url)
	switch {
	case err != nil && version.Number == 0:
		return database, "it cannot be reached or migrated; the log says why", err
	case version.Dirty:
		return schema, fmt.Sprintf("migration %d stopped half way; a person must look", version.Number), err
	case version.Number < latest:
		return schema, fmt.Sprintf("the schema has version %d and needs %d; run `pactwire migrate up`", version.Number, latest), nil
	case version.Number > latest:
		return schema, fmt.Sprintf("the schema has version %d, this binary knows only %d", version.Number, latest), nil
	}
	s.readiness.have(schema)
	if s.db, err = store.Open(ctx, store.Config{URL: url, LeaseTTL: s.cfg.LeaseTime}, s.log); err != nil {
		return database, "it cannot be reached", err
	}
	if s.embedded.SoleUser {
		if err := s.db.ReleaseAllLeases(ctx); err != nil {
			_ = s.db.Close()
			return database, "it cannot be used; the log says why", err
		}
	}
	return "", "", nil
}
