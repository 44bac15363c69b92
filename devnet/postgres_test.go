package devnet_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "github.com/lib/pq"

	"github.com/pactwire/pactwire/devnet"
)

func startPostgres(t *testing.T, cfg devnet.PostgresConfig) *devnet.Postgres {
	t.Helper()
	begin := time.Now()
	server, err := devnet.StartPostgres(context.Background(), cfg, discard)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("start took %s", time.Since(begin))
	t.Cleanup(func() { stopPostgres(t, server) })
	return server
}

func stopPostgres(t *testing.T, server *devnet.Postgres) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := server.Stop(ctx); err != nil {
		t.Error(err)
	}
}

func openDatabase(t *testing.T, url string) *sql.DB {
	t.Helper()
	db, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func TestPostgresStartsStopsAndStartsAgain(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	server := startPostgres(t, devnet.PostgresConfig{Dir: dir})
	for range 2 { // the second time it is there already
		if err := server.EnsureDatabase(context.Background(), "pactwire"); err != nil {
			t.Fatal(err)
		}
	}
	db := openDatabase(t, server.URL("pactwire"))
	if _, err := db.Exec("CREATE TABLE kept (x int); INSERT INTO kept VALUES (42)"); err != nil {
		t.Fatal(err)
	}
	if _, err := devnet.StartPostgres(context.Background(), devnet.PostgresConfig{Dir: dir}, discard); !errors.Is(err, devnet.ErrFolderInUse) {
		t.Errorf("a second start in the same folder: %v, want ErrFolderInUse", err)
	}
	_ = db.Close()
	stopPostgres(t, server)
	select {
	case <-server.Done():
	default:
		t.Error("Done is not closed after Stop")
	}
	server = startPostgres(t, devnet.PostgresConfig{Dir: dir})
	var x int
	if err := openDatabase(t, server.URL("pactwire")).QueryRow("SELECT x FROM kept").Scan(&x); err != nil || x != 42 {
		t.Errorf("read %d, %v", x, err)
	}
	for setting, want := range map[string]string{"fsync": "on", "listen_addresses": "", "max_connections": "200", "server_encoding": "UTF8"} {
		var got string
		if err := openDatabase(t, server.URL("postgres")).QueryRow("SELECT current_setting($1)", setting).Scan(&got); err != nil || got != want {
			t.Errorf("%s is %q, want %q (%v)", setting, got, want, err)
		}
	}
}

// actPostgres is the process that dies: it prints each row that was committed.
func actPostgres(folder string) {
	server, err := devnet.StartPostgres(context.Background(), devnet.PostgresConfig{Dir: folder}, discard)
	if err != nil {
		fail(err)
	}
	db, err := sql.Open("postgres", server.URL("postgres"))
	if err != nil {
		fail(err)
	}
	if _, err := db.Exec("CREATE TABLE IF NOT EXISTS rows (id bigserial)"); err != nil {
		fail(err)
	}
	for {
		var id int64
		if err := db.QueryRow("INSERT INTO rows DEFAULT VALUES RETURNING id").Scan(&id); err != nil {
			fail(err)
		}
		fmt.Printf("row %d.\n", id)
	}
}

func TestPostgresSurvivesSuddenDeath(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	committed := map[string]bool{}
	for round := range 3 {
		for _, line := range startVictim(t, "postgres", dir).killAfter(t, 50+30*round) {
			if id, whole := strings.CutSuffix(strings.TrimPrefix(line, "row "), "."); whole {
				committed[id] = true
			}
		}
	}
	server := startPostgres(t, devnet.PostgresConfig{Dir: dir})
	rows, err := openDatabase(t, server.URL("postgres")).Query("SELECT id::text FROM rows")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		delete(committed, id)
	}
	if rows.Err() != nil || len(committed) > 0 {
		t.Errorf("lost %d committed rows (%v)", len(committed), rows.Err())
	}
}

func TestStopWithoutTimeStillStops(t *testing.T) {
	t.Parallel()
	server := startPostgres(t, devnet.PostgresConfig{Dir: filepath.Join(t.TempDir(), "pg")})
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	// Whether the server was quick enough is open; that it is gone is not.
	if err := server.Stop(ended); err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-server.Done():
	default:
		t.Error("the server still runs")
	}
}

// As root the server runs as another user, who cannot walk into a private folder of root's.
func TestPostgresInAFolderThatOnlyItsOwnerMayEnter(t *testing.T) {
	t.Parallel()
	private := filepath.Join(t.TempDir(), "private")
	if err := os.Mkdir(private, 0o700); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(private, "data dir", "pg")
	server := startPostgres(t, devnet.PostgresConfig{Dir: dir})
	if err := openDatabase(t, server.URL("postgres")).Ping(); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(private)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the private folder's mode was changed to %v (%v)", info.Mode(), err)
	}
}

func TestPostgresInAFolderTooDeepForASocket(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("deep", 15), strings.Repeat("deeper", 12))
	server := startPostgres(t, devnet.PostgresConfig{Dir: dir})
	if err := openDatabase(t, server.URL("postgres")).Ping(); err != nil {
		t.Fatal(err)
	}
	stopPostgres(t, server)
	parsed, err := url.Parse(server.URL("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	socket := parsed.Query().Get("host")
	if !strings.HasPrefix(socket, "/tmp/") {
		t.Errorf("the socket is at %s", socket)
	}
	if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket's folder %s was left behind", socket)
	}
}

func TestMissingPostgresSaysWhatToType(t *testing.T) {
	t.Parallel()
	_, err := devnet.StartPostgres(context.Background(), devnet.PostgresConfig{Dir: t.TempDir(), BinDir: t.TempDir()}, discard)
	var missing *devnet.MissingPostgresError
	if !errors.As(err, &missing) {
		t.Fatalf("got %v, want a MissingPostgresError", err)
	}
	if missing.Install == "" || !strings.Contains(err.Error(), missing.Install) || !strings.Contains(err.Error(), "--database-url") {
		t.Errorf("the error does not help: %v", err)
	}
}

func TestABrokenClusterFailsWithItsLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pg")
	stopPostgres(t, startPostgres(t, devnet.PostgresConfig{Dir: dir}))
	if err := os.Remove(filepath.Join(dir, "data", "global", "pg_control")); err != nil {
		t.Fatal(err)
	}
	_, err := devnet.StartPostgres(context.Background(), devnet.PostgresConfig{Dir: dir}, discard)
	if err == nil || !strings.Contains(err.Error(), "pg_control") && !strings.Contains(err.Error(), "database system") {
		t.Errorf("error %v does not say why", err)
	}
}
