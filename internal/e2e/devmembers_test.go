package e2e

import (
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pactwire/pactwire/gen"
)

// What `make network` starts: several members in one process, here with their payloads in a shared folder. It stops as a whole, and goes on where it was.
func TestANetworkOnOneMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the program twice")
	}
	t.Parallel()
	path, err := binary()
	must(t, err)
	shared := t.TempDir()
	p := &process{dir: t.TempDir(), listen: twoFreeAddresses(t), rpc: freeAddress(t)}
	host, port, err := net.SplitHostPort(p.listen)
	must(t, err)
	number, err := strconv.Atoi(port)
	must(t, err)
	second := &service{url: "http://" + net.JoinHostPort(host, strconv.Itoa(number+1)), http: &http.Client{Transport: validating{t, &http.Transport{DisableKeepAlives: true}}}}
	second.client, err = gen.NewClientWithResponses(second.url+"/api/v1", gen.WithHTTPClient(second.http))
	must(t, err)
	p.url, p.http = "http://"+p.listen, second.http
	p.client, err = gen.NewClientWithResponses(p.url+"/api/v1", gen.WithHTTPClient(p.http))
	must(t, err)
	for round := range 2 {
		p.output = &lines{}
		p.cmd = exec.Command(path, "dev", "--members", "2", "--data-dir", p.dir, "--listen", p.listen, "--rpc-listen", p.rpc, "--shared-storage", "dir://"+shared)
		p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
		must(t, p.cmd.Start())
		eventually(t, readyLimit, "the members are ready", func() bool { return strings.Contains(p.output.String(), "Members of the network") }, p.output)
		sent := second.say(t, "t", `"from the second"`, true)
		eventually(t, 20*time.Second, "the first member has it", func() bool {
			r, err := p.client.GetMessageWithResponse(t.Context(), ns, sent.Header.ID, nil)
			must(t, err)
			return r.JSON200 != nil && r.JSON200.State == "confirmed" && r.JSON200.Pin != nil && strings.HasPrefix(r.JSON200.Pin.Location, "dir:")
		}, p.output)
		out, err := run(t, "member", "list", "--url", second.url)
		if err != nil || !strings.Contains(out, "org2") || strings.Count(out, "0x") != 2 {
			t.Errorf("round %d: the members are\n%s%v", round, out, err)
		}
		out, err = run(t, "message", "verify", sent.Header.ID.String(), "--url", p.url, "--rpc-url", "http://"+p.rpc, "--shared-storage", "dir://"+shared)
		if err != nil || !strings.Contains(out, "authentic") {
			t.Errorf("round %d: the verdict is\n%s%v", round, out, err)
		}
		p.interrupt(t)
	}
	files, err := filepath.Glob(filepath.Join(shared, "*", "*"))
	if err != nil || len(files) != 2 {
		t.Errorf("the shared folder holds %v, %v", files, err)
	}
	if out, err := run(t, "dev", "--members", "9", "--data-dir", filepath.Join(os.TempDir(), "never")); err == nil || !strings.Contains(out, "--members") {
		t.Errorf("nine members: %s %v", out, err)
	}
}

// twoFreeAddresses is an address that is free, as is the one with the next port.
func twoFreeAddresses(t *testing.T) string {
	t.Helper()
	for range 50 {
		address := freeAddress(t)
		host, port, err := net.SplitHostPort(address)
		must(t, err)
		number, err := strconv.Atoi(port)
		must(t, err)
		if number < 65535 && free(net.JoinHostPort(host, strconv.Itoa(number+1))) {
			return address
		}
	}
	t.Fatal("no two ports beside each other are free")
	return ""
}
