package e2e

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/accounts/keystore"

	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/internal/pgtest"
)

// founder is the first member, `pactwire dev` with its chain.
type founder struct {
	*process
	pin string
}

func startNetwork(t testing.TB) *founder {
	t.Helper()
	n := &founder{process: startProcess(t)}
	status, err := n.client.GetStatusWithResponse(t.Context(), ns)
	must(t, err)
	n.pin = *status.JSON200.Chain.PinContract
	return n
}

// member is `pactwire serve` as another member: a process, a database and a key of its own.
type member struct {
	process
	account devnet.Account
	args    []string
}

// join starts a member that signs with one of the funded accounts, from a keystore as go-ethereum makes it. It is not registered by that.
func (n *founder) join(t testing.TB, name string, account int, extra ...string) *member {
	t.Helper()
	accounts, err := devnet.Accounts()
	must(t, err)
	m := &member{account: accounts[account]}
	m.dir, m.listen, m.rpc = t.TempDir(), freeAddress(t), n.rpc
	keys := keystore.NewKeyStore(filepath.Join(m.dir, "keys"), keystore.LightScryptN, keystore.LightScryptP)
	key, err := keys.ImportECDSA(m.account.Key, "secret")
	must(t, err)
	password := filepath.Join(m.dir, "password")
	must(t, os.WriteFile(password, []byte("secret\n"), 0o600))
	m.args = append([]string{
		"serve", "--org-name", name, "--listen", m.listen, "--database-url", pgtest.New(t), "--rpc-url", "ws://" + n.rpc, "--keystore", key.URL.Path,
		"--password-file", password, "--pin-contract", n.pin,
	}, extra...)
	m.begin(t)
	t.Cleanup(func() {
		if m.cmd != nil {
			m.interrupt(t)
		}
	})
	return m
}

// begin starts the member's process and waits until it is ready.
func (m *member) begin(t testing.TB) {
	t.Helper()
	path, err := binary()
	must(t, err)
	m.output = &lines{}
	m.cmd = exec.Command(path, m.args...)
	m.cmd.Stdout, m.cmd.Stderr = m.output, m.output
	must(t, m.cmd.Start())
	m.url = "http://" + m.listen
	m.http = &http.Client{Transport: validating{t, &http.Transport{DisableKeepAlives: true}}, Timeout: time.Minute}
	m.client, err = gen.NewClientWithResponses(m.url+"/api/v1", gen.WithHTTPClient(m.http))
	must(t, err)
	eventually(t, readyLimit, "the member is ready", func() bool {
		r, err := http.Get(m.url + "/readyz")
		if err != nil {
			return false
		}
		r.Body.Close()
		return r.StatusCode == http.StatusOK
	}, m.output)
}

// register makes the member known to the network, by the first member, which is the admin.
func (n *founder) register(t testing.TB, m *member, name string) {
	t.Helper()
	r, err := n.client.AddMemberWithResponse(t.Context(), ns, &gen.AddMemberParams{Confirm: ptr(true)},
		gen.MemberInput{Account: m.account.Address.Hex(), Name: name, URL: &m.url})
	must(t, err)
	if r.JSON200 == nil || r.JSON200.Status != "Succeeded" {
		t.Fatalf("register %s: %s", name, r.Body)
	}
}

// say broadcasts a message and returns it as it was accepted.
func (s *service) say(t testing.TB, topic, value string, confirm bool) gen.Message {
	t.Helper()
	r, err := s.client.BroadcastMessageWithResponse(t.Context(), ns, &gen.BroadcastMessageParams{Confirm: &confirm},
		gen.MessageInput{Header: &gen.MessageHeaderInput{Topics: []string{topic}, Tag: ptr("said")}, Data: []gen.DataInput{{Value: []byte(value)}}})
	must(t, err)
	switch {
	case r.JSON200 != nil:
		return *r.JSON200
	case r.JSON202 != nil:
		return *r.JSON202
	}
	t.Fatalf("broadcast: %s %s", r.Status(), r.Body)
	return gen.Message{}
}

// confirmedMessages counts the messages that the member has in the network's order.
func (s *service) confirmedMessages(t testing.TB) int64 {
	t.Helper()
	var page struct{ Total int64 }
	s.read(t, "/messages?limit=1&count=true&state=confirmed", &page)
	return page.Total
}

// run runs the program with a command line, and returns what it printed.
func run(t testing.TB, args ...string) (string, error) {
	t.Helper()
	path, err := binary()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), path, args...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, out)
	}
	return string(out), err
}
