package e2e

import (
	"context"
	"crypto/ecdsa"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/pactwire/pactwire/app"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, chaintest.IgnoreLeaks()...) }

// readyLimit is how long a service may take to come up on a busy machine.
const readyLimit = 60 * time.Second

// start starts a service with a chain and a database of its own. It stops when the test ends.
func start(t testing.TB) *service {
	t.Helper()
	chain := chaintest.New(t)
	return startOn(t, chain, pgtest.New(t))
}

// startWith starts a service of its own with more configuration.
func startWith(t testing.TB, settings map[string]string) *service {
	t.Helper()
	return startService(t, &service{chain: chaintest.New(t), settings: settings}, pgtest.New(t))
}

// startOn starts a service on a chain and a database that are there.
func startOn(t testing.TB, chain *chaintest.Chain, database string) *service {
	t.Helper()
	return startService(t, &service{chain: chain}, database)
}

func startService(t testing.TB, s *service, database string) *service {
	t.Helper()
	s.run(t, database)
	t.Cleanup(func() { s.stop(t) })
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	t.Cleanup(transport.CloseIdleConnections)
	s.http = &http.Client{Transport: validating{t, transport}, Timeout: 130 * time.Second} // longer than the service takes
	client, err := gen.NewClientWithResponses(s.url+"/api/v1", gen.WithHTTPClient(s.http))
	must(t, err)
	s.client = client
	return s
}

// run starts the process's part.
func (s *service) run(t testing.TB, database string) {
	t.Helper()
	listen := "127.0.0.1:0"
	if s.listen != "" {
		listen = s.listen // a restart keeps its address
	}
	settings := map[string]string{"listen": listen}
	maps.Copy(settings, s.settings)
	mode := app.ModeDev
	if s.chain == nil { // the settings say where the chain is
		mode = app.ModeServe
		settings["database-url"] = database
	}
	cfg, err := app.Load(mode, settings, nil)
	must(t, err)
	log := slog.New(slog.NewTextHandler(logOutput(), &slog.HandlerOptions{Level: slog.LevelWarn}))
	ctx, cancel := context.WithCancel(context.Background())
	options := app.Options{Version: "test"}
	if s.chain != nil {
		options.Embedded = func(context.Context) (app.Embedded, error) {
			embedded := app.Embedded{
				DatabaseURL: database, SoleUser: true, RPCURLs: []string{s.chain.WSURL()}, Keys: []*ecdsa.PrivateKey{s.chain.Accounts[0].Key},
			}
			if s.attached {
				embedded.Attach = s.chain.Attach
			}
			return embedded, nil
		}
	}
	a, err := app.New(ctx, cfg, options, log)
	must(t, err)
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	s.stop = func(t testing.TB) {
		t.Helper()
		cancel()
		if done == nil {
			return
		}
		if err := <-done; err != nil {
			t.Errorf("the service ended with %v", err)
		}
		done = nil
	}
	s.url = a.URLs()[0]
	s.listen = s.url[len("http://"):]
	select {
	case <-a.Ready():
	case err := <-done:
		t.Fatalf("the service did not come up: %v", err)
	case <-time.After(readyLimit):
		t.Fatal("the service did not come up in time")
	}
}

// logOutput is where the services of the tests log: nowhere, unless PACTWIRE_TEST_LOG is set.
func logOutput() io.Writer {
	if os.Getenv("PACTWIRE_TEST_LOG") != "" {
		return os.Stderr
	}
	return io.Discard
}

// testDatabase is a migrated database of the test's own.
func testDatabase(t testing.TB) string { return pgtest.New(t) }
