package app_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/google/uuid"
	"github.com/gorilla/websocket"
	"golang.org/x/crypto/bcrypt"

	"github.com/pactwire/pactwire/app"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/migrations"
)

func TestMain(m *testing.M) { pgtest.Main(m, chaintest.IgnoreLeaks()...) }

// served is a running service.
type served struct {
	url    string
	app    *app.App
	stop   context.CancelFunc
	ended  chan error
	client *http.Client

	mu  sync.Mutex
	log bytes.Buffer
}

// Write takes the log.
func (s *served) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(p) //nolint:wrapcheck // never fails
}

// keyFiles writes the chain's account 0 as a keystore with its password.
func keyFiles(t *testing.T, chain *chaintest.Chain) (key, password string) {
	t.Helper()
	account := chain.Accounts[0]
	encrypted, err := keystore.EncryptKey(&keystore.Key{Id: uuid.New(), Address: account.Address, PrivateKey: account.Key}, "pw", keystore.LightScryptN, keystore.LightScryptP)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	key, password = filepath.Join(dir, "key.json"), filepath.Join(dir, "password")
	for path, content := range map[string][]byte{key: encrypted, password: []byte("pw\n")} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return key, password
}

// serve starts `serve` with a keystore; it is stopped when the test ends, unless that has happened before.
func serve(t *testing.T, chain *chaintest.Chain, flags map[string]string) *served {
	t.Helper()
	key, password := keyFiles(t, chain)
	all := map[string]string{
		"listen": "127.0.0.1:0", "rpc-url": chain.WSURL(), "keystore": key, "password-file": password, "log-level": "debug", "drain-timeout": "20s",
	}
	for k, v := range flags {
		all[k] = v
	}
	s := &served{ended: make(chan error, 1), client: &http.Client{Transport: &http.Transport{}}}
	var err error
	if s.app, err = app.New(t.Context(), load(t, app.ModeServe, all), app.Options{Version: "test"}, slog.New(slog.NewTextHandler(s, nil))); err != nil {
		t.Fatal(err)
	}
	s.url = s.app.URLs()[0]
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	go func() { s.ended <- s.app.Run(ctx) }()
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		s.end(t)
	})
	return s
}

// end stops the service and waits for it.
func (s *served) end(t *testing.T) {
	t.Helper()
	s.stop()
	select {
	case err := <-s.ended:
		s.ended <- nil // for the next who asks
		if err != nil {
			t.Errorf("run: %v", err)
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("it does not end:\n%s", s.log.String())
	}
}

func (s *served) awaitReady(t *testing.T) {
	t.Helper()
	select {
	case <-s.app.Ready():
	case err := <-s.ended:
		t.Fatalf("run: %v", err)
	case <-time.After(30 * time.Second):
		s.mu.Lock()
		defer s.mu.Unlock()
		t.Fatalf("not ready:\n%s", s.log.String())
	}
	if status, body := s.do(t, http.MethodGet, "/readyz", "", ""); status != http.StatusOK {
		t.Errorf("/readyz after it became ready: %d %s", status, body)
	}
}

func (s *served) do(t *testing.T, method, path, body, token string) (int, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	if token != "" {
		request.SetBasicAuth(token, token)
	}
	response, err := s.client.Do(request)
	if err != nil {
		t.Error(err)
		return 0, ""
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Error(err)
	}
	return response.StatusCode, string(content)
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	for limit := time.Now().Add(20 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

func problem(t *testing.T, body string) (code string, missing []string) {
	t.Helper()
	var p struct {
		Code   string
		Fields []struct{ Path string }
	}
	if err := json.Unmarshal([]byte(body), &p); err != nil {
		t.Fatalf("%v: %s", err, body)
	}
	for _, f := range p.Fields {
		missing = append(missing, f.Path)
	}
	return p.Code, missing
}

// pinContractOf is where the chain's account 9 deploys with its first transaction.
func pinContractOf(chain *chaintest.Chain) common.Address {
	return crypto.CreateAddress(chain.Accounts[9].Address, 0)
}

func TestServeWaitsForDatabaseSchemaChainAndPinContract(t *testing.T) {
	t.Parallel()
	database := pgtest.NewEmpty(t)
	chain := chaintest.New(t)
	// A port that nobody listens at: the chain comes later.
	hole, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := hole.Addr().String()
	_ = hole.Close()
	s := serve(t, chain, map[string]string{"database-url": database, "migrate": "false", "rpc-url": "http://" + address, "pin-contract": pinContractOf(chain).Hex()})
	ready := func(want string) func() bool {
		return func() bool {
			if status, body := s.do(t, http.MethodGet, "/livez", "", ""); status != http.StatusOK || body != "ok\n" {
				t.Fatalf("/livez: %d %s", status, body)
			}
			status, body := s.do(t, http.MethodGet, "/readyz", "", "")
			if status != http.StatusServiceUnavailable {
				t.Fatalf("/readyz: %d %s", status, body)
			}
			code, missing := problem(t, body)
			return code == "not_ready" && strings.Contains(strings.Join(missing, ","), want)
		}
	}
	eventually(t, "migrations are missing", ready("migrations"))
	status, body := s.do(t, http.MethodGet, "/api/v1/namespaces", "", "")
	if code, _ := problem(t, body); status != http.StatusServiceUnavailable || code != "not_ready" {
		t.Errorf("the API before it is ready: %d %s", status, body)
	}
	if _, err := migrations.Up(database); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the chain is missing", ready("chain default"))
	late := chaintest.New(t, chaintest.Listen(address))
	eventually(t, "the pin contract is missing", ready("pin contract of chain default"))
	if got := late.Deploy(t, contracts.Pactwire(), "me", ""); got != pinContractOf(late) {
		t.Fatalf("deployed at %s", got)
	}
	s.awaitReady(t)
	if status, body := s.do(t, http.MethodGet, "/api/v1/namespaces", "", ""); status != http.StatusOK || !strings.Contains(body, `"default"`) {
		t.Errorf("the API: %d %s", status, body)
	}
	if status, body := s.do(t, http.MethodGet, "/metrics", "", ""); status != http.StatusOK || !strings.Contains(body, "pactwire_ws_connections 0") {
		t.Errorf("/metrics: %d %.300s", status, body)
	}
	late.Stop(t)
	eventually(t, "the chain is gone", ready("chain default"))
}

// network is a served network with its pin contract, whose only member is account 0.
func network(t *testing.T, flags map[string]string) (*served, *chaintest.Chain) {
	t.Helper()
	chain := chaintest.New(t)
	pin := chain.DeployAs(t, 0, contracts.Pactwire(), "me", "")
	all := map[string]string{"database-url": pgtest.New(t), "pin-contract": pin.Hex()}
	for k, v := range flags {
		all[k] = v
	}
	s := serve(t, chain, all)
	s.awaitReady(t)
	return s, chain
}

func TestRequestsUnderWayFinishWhenTheServiceStops(t *testing.T) {
	t.Parallel()
	s, chain := network(t, nil)
	socket, response, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/ws?namespace=default&ephemeral&autoack", nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	defer socket.Close()
	chain.SetAutomine(false)
	answered := make(chan int, 1)
	go func() {
		status, _ := s.do(t, http.MethodPost, "/api/v1/namespaces/default/messages/broadcast?confirm=true", `{"data":[{"value":1}]}`, "")
		answered <- status
	}()
	eventually(t, "the message is sent", func() bool {
		_, body := s.do(t, http.MethodGet, "/api/v1/namespaces/default/messages", "", "")
		return strings.Contains(body, `"sent"`)
	})
	s.stop()
	_ = socket.SetReadDeadline(time.Now().Add(20 * time.Second))
	if _, _, err := socket.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseGoingAway) {
		t.Errorf("the socket ends with %v, want 1001", err)
	}
	select {
	case status := <-answered:
		t.Fatalf("answered %d before the message could be confirmed", status)
	case err := <-s.ended:
		t.Fatalf("ended (%v) with a request under way", err)
	default:
	}
	chain.SetAutomine(true)
	chain.Mine(1)
	if status := <-answered; status != http.StatusOK {
		t.Errorf("the request under way was answered %d", status)
	}
	s.end(t)
}

func TestStoppingIsBounded(t *testing.T) {
	t.Parallel()
	s, chain := network(t, map[string]string{"drain-timeout": "300ms"})
	chain.SetAutomine(false)
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/api/v1/namespaces/default/messages/broadcast?confirm=true", strings.NewReader(`{"data":[{"value":1}]}`))
		if err != nil {
			return
		}
		request.Header.Set("Content-Type", "application/json")
		if response, err := s.client.Do(request); err == nil {
			_ = response.Body.Close()
		}
	}()
	eventually(t, "the message is sent", func() bool {
		_, body := s.do(t, http.MethodGet, "/api/v1/namespaces/default/messages", "", "")
		return strings.Contains(body, `"sent"`)
	})
	began := time.Now()
	s.end(t)
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("stopping took %s", took)
	}
	<-answered
}

func TestAuthenticationHoldsForRESTAndWebSocket(t *testing.T) {
	t.Parallel()
	var users strings.Builder
	for name, rest := range map[string]string{"ann": ":admin", "bob": ":read:default", "eve": ":admin:other"} {
		hash, err := bcrypt.GenerateFromPassword([]byte(name), bcrypt.MinCost)
		if err != nil {
			t.Fatal(err)
		}
		users.WriteString(name + ":" + string(hash) + rest + "\n")
	}
	s, _ := network(t, map[string]string{"auth-users-file": write(t, users.String())})
	for _, c := range []struct {
		method, path, user string
		want               int
	}{
		{http.MethodGet, "/api/v1/namespaces/default/status", "", http.StatusUnauthorized},
		{http.MethodGet, "/api/v1/namespaces/default/status", "bob", http.StatusOK},
		{http.MethodGet, "/api/v1/namespaces/default/status", "eve", http.StatusForbidden},
		{http.MethodPost, "/api/v1/namespaces/default/messages/broadcast", "bob", http.StatusForbidden},
		{http.MethodPost, "/api/v1/namespaces/default/messages/broadcast", "ann", http.StatusAccepted},
		{http.MethodGet, "/ws?namespace=default&ephemeral", "", http.StatusUnauthorized},
		{http.MethodGet, "/ws?namespace=default&ephemeral", "eve", http.StatusForbidden},
		{http.MethodGet, "/ws", "", http.StatusUnauthorized},
		{http.MethodGet, "/ws", "bob", http.StatusBadRequest}, // allowed, but no upgrade; what is started is asked for again
		{http.MethodGet, "/api/v1/namespaces/default/subscriptions/none/stream", "", http.StatusUnauthorized},
		{http.MethodGet, "/api/v1/namespaces/default/subscriptions/none/stream", "eve", http.StatusForbidden},
		{http.MethodGet, "/api/v1/namespaces/default/subscriptions/none/stream", "bob", http.StatusNotFound},
		{http.MethodGet, "/api/v1/namespaces/default/ws", "eve", http.StatusForbidden},
		{http.MethodGet, "/api/v1/namespaces/default/ws", "bob", http.StatusBadRequest},
		{http.MethodGet, "/livez", "", http.StatusOK},
		{http.MethodGet, "/readyz", "", http.StatusOK},
	} {
		if status, body := s.do(t, c.method, c.path, `{"data":[{"value":1}]}`, c.user); status != c.want {
			t.Errorf("%s %s as %q: %d, want %d: %s", c.method, c.path, c.user, status, c.want, body)
		}
	}
}

// Each start frame is held against who opened the connection.
func TestStartFramesAreAuthorised(t *testing.T) {
	t.Parallel()
	hash, err := bcrypt.GenerateFromPassword([]byte("eve"), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := network(t, map[string]string{"auth-users-file": write(t, "eve:"+string(hash)+":read:other\n")})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("eve", "eve")
	socket, response, err := websocket.DefaultDialer.DialContext(t.Context(), "ws"+strings.TrimPrefix(s.url, "http")+"/ws", request.Header)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	defer socket.Close()
	if err := socket.WriteMessage(websocket.TextMessage, []byte(`{"type":"start","namespace":"default","ephemeral":true}`)); err != nil {
		t.Fatal(err)
	}
	_, frame, err := socket.ReadMessage()
	if err != nil || !strings.Contains(string(frame), `"protocol_error"`) || !strings.Contains(string(frame), "role read") {
		t.Errorf("eve got %s, %v", frame, err)
	}
	if _, frame, err := socket.ReadMessage(); err == nil {
		t.Errorf("the connection stays open: %s", frame)
	}
}

// dev runs `dev` on a database and a chain until it is ready or fails.
func dev(t *testing.T, database string, chain *chaintest.Chain) error {
	t.Helper()
	options := app.Options{Embedded: func(context.Context) (app.Embedded, error) {
		return app.Embedded{DatabaseURL: database, SoleUser: true, RPCURLs: []string{chain.WSURL()}, Keys: []*ecdsa.PrivateKey{chain.Accounts[0].Key}}, nil
	}}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	a, err := app.New(ctx, load(t, app.ModeDev, map[string]string{"listen": "127.0.0.1:0"}), options, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	go func() {
		select {
		case <-a.Ready():
		case <-ctx.Done():
		}
		cancel()
	}()
	return a.Run(ctx)
}

func TestStartFailsForGoodWhereWaitingIsOfNoUse(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	s := serve(t, chain, map[string]string{
		"database-url": pgtest.New(t),
		"config":       write(t, "namespaces: [{name: default, default-key: \"0x70997970C51812dc3A010C7d01b50e0d17dc79C8\"}]"),
	})
	select {
	case err := <-s.ended:
		s.ended <- nil
		if err == nil || !strings.Contains(err.Error(), "0x70997970C51812dc3A010C7d01b50e0d17dc79C8") {
			t.Errorf("a default key that nobody holds: %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("it goes on with a default key that nobody holds")
	}
	database := pgtest.New(t)
	for _, want := range []string{"", "another development chain"} {
		err := dev(t, database, chaintest.New(t))
		if (want == "") != (err == nil) || (err != nil && !strings.Contains(err.Error(), want)) {
			t.Errorf("a database with a new chain: %v; want %q", err, want)
		}
	}
	c := load(t, app.ModeDev, map[string]string{"listen": strings.TrimPrefix(chain.HTTPURL(), "http://")})
	if _, err := app.New(t.Context(), c, app.Options{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--listen") {
		t.Errorf("a port in use: %v", err)
	}
}
