package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pactwire/pactwire/gen"
)

// root is the folder of the module.
const root = "../.."

// binary builds the program once for all tests of the run.
var binary = sync.OnceValues(func() (string, error) {
	path, err := filepath.Abs(filepath.Join(root, "bin", "pactwire-e2e"))
	if err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-o", path, "./cmd/pactwire")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the program: %w\n%s", err, out)
	}
	return path, nil
})

// process is `pactwire dev` as a program of its own, which can be killed.
type process struct {
	service
	dir, listen, rpc string
	cmd              *exec.Cmd
	output           *lines
}

// startProcess starts `pactwire dev` in a new data folder, at addresses that are free.
func startProcess(t testing.TB) *process {
	t.Helper()
	p := &process{dir: t.TempDir(), listen: freeAddress(t), rpc: freeAddress(t)}
	p.begin(t)
	t.Cleanup(func() {
		if p.cmd != nil {
			p.interrupt(t)
		}
	})
	return p
}

// begin starts the program and waits until it is ready.
func (p *process) begin(t testing.TB) {
	t.Helper()
	path, err := binary()
	must(t, err)
	p.output = &lines{}
	p.cmd = exec.Command(path, "dev", "--data-dir", p.dir, "--listen", p.listen, "--rpc-listen", p.rpc)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	// Not the folder of the data, which a sudden death would keep in use.
	p.cmd.Dir = root
	began := time.Now()
	must(t, p.cmd.Start())
	p.url = "http://" + p.listen
	p.http = &http.Client{Transport: validating{t, &http.Transport{MaxIdleConnsPerHost: 64, DisableKeepAlives: true}}, Timeout: time.Minute}
	p.client, err = gen.NewClientWithResponses(p.url+"/api/v1", gen.WithHTTPClient(p.http))
	must(t, err)
	eventually(t, readyLimit, "the service is ready", p.ready, p.output)
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
}

// ready tells whether the program serves.
func (p *process) ready() bool {
	r, err := http.Get(p.url + "/readyz")
	if err != nil {
		return false
	}
	r.Body.Close()
	return r.StatusCode == http.StatusOK
}

// kill ends the program at once, as a power cut would.
func (p *process) kill(t testing.TB) {
	t.Helper()
	must(t, p.cmd.Process.Kill())
	_ = p.cmd.Wait()
	p.cmd = nil
}

// interrupt ends the program as Ctrl-C does; it must end cleanly.
func (p *process) interrupt(t testing.TB) {
	t.Helper()
	must(t, p.cmd.Process.Signal(os.Interrupt))
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("the program ended with %v\n%s", err, p.output)
		}
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		t.Errorf("the program did not end\n%s", p.output)
	}
	p.cmd = nil
}

// deploy runs `pactwire deploy` and returns the address.
func (p *process) deploy(t testing.TB, artifact string) string {
	t.Helper()
	path, err := binary()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), path, "deploy", artifact, "--rpc-url", "http://"+p.rpc)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("deploy %s: %v", artifact, err)
	}
	return strings.TrimSpace(string(out))
}

// lines keeps what a program prints.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// eventually waits until the condition holds.
func eventually(t testing.TB, limit time.Duration, what string, condition func() bool, context fmt.Stringer) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for !condition() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s\n%s", what, limit, context)
		}
		time.Sleep(20 * time.Millisecond) // between two looks, up to the deadline
	}
}

func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	return l.Addr().String()
}

// free tells whether nothing listens at the address.
func free(address string) bool {
	l, err := net.Listen("tcp", address)
	if err == nil {
		l.Close()
	}
	return err == nil
}

// shell runs a script with bash in a folder, and returns what each of its parts printed.
func shell(ctx context.Context, dir string, parts []string) ([]string, error) {
	const mark = "=====next=part====="
	var script strings.Builder
	script.WriteString("set -eu -o pipefail\n")
	for _, part := range parts {
		script.WriteString(part + "\necho\necho '" + mark + "'\n")
	}
	cmd := exec.CommandContext(ctx, "bash", "-c", script.String())
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	printed := make([]string, 0, len(parts))
	var current strings.Builder
	scanner := bufio.NewScanner(strings.NewReader(string(out)))
	scanner.Buffer(nil, 16<<20)
	for scanner.Scan() {
		if scanner.Text() == mark {
			printed = append(printed, strings.TrimSpace(current.String()))
			current.Reset()
			continue
		}
		current.WriteString(scanner.Text() + "\n")
	}
	if err != nil {
		err = fmt.Errorf("part %d: %w\n%s", len(printed)+1, err, current.String())
	}
	return printed, err
}
