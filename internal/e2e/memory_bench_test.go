package e2e

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/accounts/keystore"
	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
)

// BenchmarkMemory measures the memory of `pactwire serve`, as a program of its own, at its highest: after it has caught up with 200,000 events, delivered all of them to
// an application that acknowledges each, delivered new ones as they come, and carried 5,000 invokes of 64 clients.
//
//	go test ./internal/e2e -run '^$' -bench Memory -benchtime 1x
func BenchmarkMemory(b *testing.B) {
	const blocks, perBlock, live, invokes = 1000, 200, 500, 5000
	chain := chaintest.New(b)
	pins := chain.DeployAs(b, 0, contracts.Pactwire(), "org", "")
	zoo := chain.Deploy(b, contracts.Zoo(), "zoo")
	storage := chain.Deploy(b, contracts.SimpleStorage()).Hex()
	for range blocks {
		chain.Transact(b, 2, zoo, contracts.Zoo(), "emitMany", big.NewInt(perBlock))
	}
	keys, password := b.TempDir(), filepath.Join(b.TempDir(), "password")
	must(b, os.WriteFile(password, []byte("secret\n"), 0o600))
	_, err := keystore.NewKeyStore(keys, keystore.LightScryptN, keystore.LightScryptP).ImportECDSA(chain.Accounts[0].Key, "secret")
	must(b, err)
	path, err := binary()
	must(b, err)
	p := &process{listen: freeAddress(b), output: &lines{}}
	p.cmd = exec.Command(path, "serve", "--database-url", pgtest.New(b), "--rpc-url", chain.WSURL(), "--keystore", keys, "--password-file", password,
		"--pin-contract", pins.Hex(), "--log-level", "warn", "--listen", p.listen)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	must(b, p.cmd.Start())
	defer p.interrupt(b)
	p.url = "http://" + p.listen
	p.http = &http.Client{}
	p.client, err = gen.NewClientWithResponses(p.url + "/api/v1")
	must(b, err)
	eventually(b, readyLimit, "the service is ready", p.ready, p.output)
	b.ReportMetric(p.peak(b), "MB-idle")

	address := zoo.Hex()
	iface := p.broadcast(b, "zoo", "1", contracts.Zoo().ABI)
	p.createAPI(b, "zoo", *iface.ID, &address)
	listener, err := p.client.CreateContractAPIListenerWithResponse(b.Context(), ns, "zoo", "Counted", gen.EventListenerInput{Options: &gen.ListenerOptions{FirstEvent: ptr("oldest")}})
	must(b, err)
	if listener.JSON200 == nil {
		b.Fatalf("listen: %s", listener.Body)
	}
	created, err := p.client.CreateSubscriptionWithResponse(b.Context(), ns, gen.SubscriptionInput{
		Name: "app", Filter: &gen.SubscriptionFilter{Events: ptr("^blockchain_event_received$")},
		Options: &gen.SubscriptionOptionsInput{FirstEvent: json.RawMessage(`"oldest"`), ReadAhead: ptr(50)},
	})
	must(b, err)
	if created.JSON201 == nil {
		b.Fatalf("subscribe: %s", created.Body)
	}
	eventually(b, readyLimit, "it has caught up", func() bool {
		var read struct {
			Status gen.ListenerStatus `json:"status"`
		}
		p.read(b, "/contracts/listeners/"+listener.JSON200.ID.String()+"?fetchstatus=true", &read)
		return read.Status.Events >= blocks*perBlock
	}, p.output)
	b.ReportMetric(p.peak(b), "MB-caught-up")

	socket := p.connect(b, "namespace=default&name=app")
	receive := func(n int) {
		var e struct{ ID string }
		for range n {
			_, frame, err := socket.ReadMessage()
			must(b, err)
			must(b, json.Unmarshal(frame, &e))
			must(b, socket.WriteMessage(websocket.TextMessage, []byte(`{"type":"ack","id":"`+e.ID+`"}`)))
		}
	}
	receive(blocks * perBlock)
	b.ReportMetric(p.peak(b), "MB-replayed")
	for range live {
		chain.Transact(b, 2, zoo, contracts.Zoo(), "emitMany", big.NewInt(1))
		receive(1)
	}
	b.ReportMetric(p.peak(b), "MB-live")

	iface = p.broadcast(b, "storage", "1", contracts.SimpleStorage().ABI)
	p.createAPI(b, "simple", *iface.ID, &storage)
	send(b, clients, invokes, p.url+"/api/v1/namespaces/default/apis/simple/invoke/set?confirm=true", `{"input":{"newValue":`+number+`}}`,
		http.Header{"Content-Type": {"application/json"}})
	b.ReportMetric(p.peak(b), "MB-invoked")
}

// peak is the most memory that the process has had resident so far, in MB, where the system tells it.
func (p *process) peak(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	var kB float64
	_, err = fmt.Sscan(rest, &kB)
	must(b, err)
	return kB / 1024
}
