package pgtest_test

import (
	"database/sql"
	"testing"

	_ "github.com/lib/pq"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

func open(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestEachTestHasItsOwnMigratedDatabase(t *testing.T) {
	t.Parallel()
	first, second := pgtest.New(t), pgtest.New(t)
	if first == second {
		t.Fatal("two calls gave the same database")
	}
	latest, err := migrations.Latest()
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{first, second} {
		version, err := migrations.Current(url)
		if err != nil {
			t.Fatal(err)
		}
		if version.Number != latest || version.Dirty {
			t.Errorf("schema is %+v, want %d", version, latest)
		}
	}
	if _, err := open(t, first).Exec("CREATE TABLE only_here (x int)"); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, second).Exec("SELECT * FROM only_here"); err == nil {
		t.Error("the databases are not isolated")
	}
}

func TestTheDatabaseIsDroppedWhenTheTestEnds(t *testing.T) {
	t.Parallel()
	var url string
	t.Run("inner", func(t *testing.T) {
		url = pgtest.New(t)
		db := open(t, url)
		if err := db.Ping(); err != nil {
			t.Fatal(err)
		}
	})
	if err := open(t, url).Ping(); err == nil {
		t.Error("the database is still there")
	}
}

func TestAnEmptyDatabaseMigratesUpDownUp(t *testing.T) {
	t.Parallel()
	url := pgtest.NewEmpty(t)
	version, err := migrations.Up(url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Down(url, int(version.Number)); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(url); err != nil {
		t.Fatal(err)
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		pgtest.New(b)
	}
}

func BenchmarkNewParallel(b *testing.B) {
	b.SetParallelism(4)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			pgtest.New(b)
		}
	})
}
