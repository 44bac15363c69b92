package e2e

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/migrations"
)

func (s *service) readyz(t testing.TB) int {
	t.Helper()
	r, err := http.Get(s.url + "/readyz")
	must(t, err)
	r.Body.Close()
	return r.StatusCode
}

func TestWithoutItsChainTheServiceSaysSoAndGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	dir, listen := t.TempDir(), freeAddress(t)
	chain := chaintest.New(t, chaintest.InFolder(dir), chaintest.Listen(listen))
	s := startOn(t, chain, testDatabase(t))
	address := strings.ToLower(chain.Deploy(t, contracts.SimpleStorage()).Hex())
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(t, "simple", *iface.ID, &address)
	s.invoke(t, "simple", "set", `{"newValue":1}`)

	chain.Stop(t)
	const path = "/api/v1/namespaces/default/apis/simple/"
	for _, call := range []string{"query/get", "invoke/set"} {
		status, problem := s.raw(t, "POST", path+call, "application/json", `{"input":`+map[bool]string{true: `{}`, false: `{"newValue":2}`}[call == "query/get"]+`}`)
		if status != http.StatusServiceUnavailable || problem.Code != "chain_unavailable" {
			t.Errorf("%s without the chain answered %d %s %s", call, status, problem.Code, problem.Detail)
		}
	}
	state, err := s.client.GetStatusWithResponse(t.Context(), ns)
	must(t, err)
	if state.JSON200 == nil || state.JSON200.Chain.Reachable {
		t.Errorf("the status is %s", state.Body)
	}
	if got := s.readyz(t); got != http.StatusServiceUnavailable {
		t.Errorf("readyz answered %d", got)
	}

	chaintest.New(t, chaintest.InFolder(dir), chaintest.Listen(listen))
	eventually(t, time.Minute, "the service is ready again", func() bool { return s.readyz(t) == http.StatusOK }, nothing{})
	if op := s.invoke(t, "simple", "set", `{"newValue":3}`); op.Status != "Succeeded" {
		t.Errorf("after the chain came back: %+v", op)
	}
}

type nothing struct{}

func (nothing) String() string { return "" }

func TestWithoutItsDatabaseTheServiceSaysSoAndGoesOnAfterwards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	begin := func() *devnet.Postgres {
		server, err := devnet.StartPostgres(context.Background(), devnet.PostgresConfig{Dir: dir, Fast: true}, log)
		must(t, err)
		return server
	}
	server := begin()
	must(t, server.EnsureDatabase(t.Context(), "test"))
	_, err := migrations.Up(server.URL("test"))
	must(t, err)
	chain := chaintest.New(t)
	s := startOn(t, chain, server.URL("test"))
	address := strings.ToLower(chain.Deploy(t, contracts.SimpleStorage()).Hex())
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(t, "simple", *iface.ID, &address)

	must(t, server.Stop(context.Background()))
	for _, request := range [][3]string{
		{"POST", "/apis/simple/query/get", `{}`},
		{"POST", "/apis/simple/invoke/set", `{"input":{"newValue":2}}`},
		{"GET", "/events", ``},
		{"GET", "/status", ``},
		{"POST", "/subscriptions", `{"name":"x"}`},
	} {
		status, problem := s.raw(t, request[0], "/api/v1/namespaces/default"+request[1], "application/json", request[2])
		if status != http.StatusServiceUnavailable || problem.Code != "database_unavailable" {
			t.Errorf("%s %s without the database answered %d %s %s", request[0], request[1], status, problem.Code, problem.Detail)
		}
	}
	if got := s.readyz(t); got != http.StatusServiceUnavailable {
		t.Errorf("readyz answered %d", got)
	}

	server = begin()
	t.Cleanup(func() { _ = server.Stop(context.Background()) })
	eventually(t, time.Minute, "the service is ready again", func() bool { return s.readyz(t) == http.StatusOK }, nothing{})
	var op gen.Operation
	eventually(t, time.Minute, "invokes work again", func() bool {
		op = s.invoke(t, "simple", "set", `{"newValue":3}`)
		return op.Status == "Succeeded"
	}, nothing{})
	s.stop(t) // before its database
}
