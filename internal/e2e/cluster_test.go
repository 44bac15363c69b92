package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// clusterLease is how soon a replica of a test takes over from a dead one.
const clusterLease = 2 * time.Second

// cluster is several `pactwire serve` processes on one database and one chain, all of which can go away and come back.
type cluster struct {
	t        *testing.T
	chainDir string
	chain    *chaintest.Chain
	pgDir    string
	postgres *devnet.Postgres
	node     *faultyProxy // between the replicas and the chain
	database *faultyProxy // between the replicas and PostgreSQL
	replicas []*replica
	storage  common.Address // a SimpleStorage
	args     []string       // common to all replicas
}

// replica is one `pactwire serve`.
type replica struct {
	cluster *cluster
	listen  string
	front   *faultyProxy // between the consumers and it
	cmd     *exec.Cmd
	output  *lines
}

// newCluster starts everything, and makes a listener and the durable subscription "app" for the storage's events.
func newCluster(t *testing.T, replicas int) *cluster {
	t.Helper()
	c := &cluster{t: t, chainDir: t.TempDir(), pgDir: pgFolder(t)}
	c.chain = chaintest.New(t, chaintest.InFolder(c.chainDir))
	c.startPostgres()
	t.Cleanup(func() { c.stopPostgres() })
	must(t, c.postgres.EnsureDatabase(t.Context(), "pactwire"))
	pins := c.chain.DeployAs(t, 0, contracts.Pactwire(), "org", "")
	c.storage = c.chain.Deploy(t, contracts.SimpleStorage())
	c.node = newFaultyProxy(t, "tcp", c.chain.HTTPURL()[len("http://"):])
	c.database = newFaultyProxy(t, "unix", postgresSocket(t, c.postgres.URL("pactwire")))
	keys, password := t.TempDir(), filepath.Join(t.TempDir(), "password")
	must(t, os.WriteFile(password, []byte("secret\n"), 0o600))
	_, err := keystore.NewKeyStore(keys, keystore.LightScryptN, keystore.LightScryptP).ImportECDSA(c.chain.Accounts[0].Key, "secret")
	must(t, err)
	c.args = []string{
		"serve", "--database-url", fmt.Sprintf("postgres://pactwire@%s/pactwire?sslmode=disable", c.database.listen), "--rpc-url", "ws://" + c.node.listen,
		"--keystore", keys, "--password-file", password, "--pin-contract", pins.Hex(), "--lease-time", clusterLease.String(), "--log-level", "warn",
	}
	for range replicas {
		r := &replica{cluster: c, listen: freeAddress(t)}
		r.front = newFaultyProxy(t, "tcp", r.listen)
		c.replicas = append(c.replicas, r)
		r.begin()
		t.Cleanup(r.end)
	}
	for _, r := range c.replicas {
		r.awaitReady()
	}
	c.subscribe()
	return c
}

func (c *cluster) subscribe() {
	t := c.t
	s := &service{url: "http://" + c.replicas[0].listen}
	s.http = &http.Client{Transport: validating{t, &http.Transport{DisableKeepAlives: true}}, Timeout: time.Minute}
	var err error
	s.client, err = gen.NewClientWithResponses(s.url+"/api/v1", gen.WithHTTPClient(s.http))
	must(t, err)
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	address := c.storage.Hex()
	s.createAPI(t, "simple", *iface.ID, &address)
	listener, err := s.client.CreateContractAPIListenerWithResponse(t.Context(), ns, "simple", "Changed",
		gen.EventListenerInput{Options: &gen.ListenerOptions{FirstEvent: ptr("oldest")}})
	must(t, err)
	if listener.JSON200 == nil {
		t.Fatalf("listen: %s", listener.Body)
	}
	created, err := s.client.CreateSubscriptionWithResponse(t.Context(), ns, gen.SubscriptionInput{
		Name: "app", Filter: &gen.SubscriptionFilter{Events: ptr("^blockchain_event_received$")},
		Options: &gen.SubscriptionOptionsInput{FirstEvent: json.RawMessage(`"oldest"`), ReadAhead: ptr(readAhead)},
	})
	must(t, err)
	if created.JSON201 == nil {
		t.Fatalf("subscribe: %s", created.Body)
	}
}

// begin starts the program.
func (r *replica) begin() {
	t := r.cluster.t
	t.Helper()
	path, err := binary()
	must(t, err)
	if r.output == nil {
		r.output = &lines{}
	}
	r.cmd = exec.Command(path, append(r.cluster.args, "--listen", r.listen)...)
	r.cmd.Stdout, r.cmd.Stderr = r.output, r.output
	must(t, r.cmd.Start())
}

// ready tells whether the replica serves.
func (r *replica) ready() bool {
	client := http.Client{Timeout: 2 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + r.listen + "/readyz")
	if err != nil {
		return false
	}
	response.Body.Close()
	return response.StatusCode == http.StatusOK
}

func (r *replica) awaitReady() {
	r.cluster.t.Helper()
	eventually(r.cluster.t, readyLimit, "the replica is ready", r.ready, r.output)
}

// kill ends the program as a power cut would.
func (r *replica) kill() {
	if r.cmd == nil {
		return
	}
	must(r.cluster.t, r.cmd.Process.Kill())
	_ = r.cmd.Wait()
	r.cmd = nil
}

// end ends the program at the end of the test.
func (r *replica) end() {
	if r.cmd == nil {
		return
	}
	_ = r.cmd.Process.Signal(os.Interrupt)
	done := make(chan error, 1)
	go func() { done <- r.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			r.cluster.t.Errorf("the replica ended with %v\n%s", err, r.output)
		}
	case <-time.After(30 * time.Second):
		_ = r.cmd.Process.Kill()
		<-done
		r.cluster.t.Errorf("the replica did not end\n%s", r.output)
	}
	r.cmd = nil
	if r.cluster.t.Failed() {
		r.cluster.t.Logf("a replica logged\n%s", tailOf(r.output.String(), 6000))
	}
}

func tailOf(text string, n int) string { return text[max(0, len(text)-n):] }

func (c *cluster) startPostgres() {
	c.t.Helper()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var err error
	c.postgres, err = devnet.StartPostgres(ctx, devnet.PostgresConfig{Dir: c.pgDir}, slog.New(slog.DiscardHandler))
	must(c.t, err)
}

func (c *cluster) stopPostgres() {
	ctx, stop := context.WithTimeout(context.Background(), 20*time.Second)
	defer stop()
	if err := c.postgres.Stop(ctx); err != nil {
		c.t.Errorf("stop PostgreSQL: %v", err)
	}
}

// restartChain stops the node and starts it again at the same address.
func (c *cluster) restartChain() {
	c.t.Helper()
	address := c.chain.HTTPURL()[len("http://"):]
	c.chain.Stop(c.t)
	c.chain = chaintest.New(c.t, chaintest.InFolder(c.chainDir), chaintest.Listen(address))
}
