package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pactwire/pactwire/devnet"
)

// devProcess is a running `pactwire dev`.
type devProcess struct {
	cmd      *exec.Cmd
	rest     string // address of the service
	rpc      string // address of the chain
	exited   chan error
	mu       sync.Mutex
	out, err bytes.Buffer
}

var (
	restLine = regexp.MustCompile(`REST API +(http://\S+)/api/v1`)
	rpcLine  = regexp.MustCompile(`Chain JSON-RPC +(http://\S+) `)
)

// startDev starts `pactwire dev` on a folder and waits until it says that it is ready.
func startDev(t *testing.T, folder string) *devProcess {
	t.Helper()
	p := &devProcess{cmd: program(t, "dev", "--data-dir", folder, "--listen", "127.0.0.1:0", "--rpc-listen", "127.0.0.1:0"), exited: make(chan error, 1)}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.cmd.Stderr = &p.err
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.cmd.Process.Kill() })
	ready := make(chan struct{})
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			p.mu.Lock()
			p.out.WriteString(lines.Text() + "\n")
			p.mu.Unlock()
			if strings.Contains(lines.Text(), "Ctrl-C stops everything") {
				close(ready)
			}
		}
		p.exited <- p.cmd.Wait()
	}()
	select {
	case <-ready:
	case err := <-p.exited:
		t.Fatalf("dev ended: %v\n%s", err, p.err.String())
	case <-time.After(time.Minute):
		t.Fatalf("dev is not ready after a minute:\n%s", p.output())
	}
	t.Logf("ready after %s", time.Since(began).Round(time.Millisecond))
	text := p.output()
	p.rest, p.rpc = restLine.FindStringSubmatch(text)[1], rpcLine.FindStringSubmatch(text)[1]
	if r := p.get(t, "/readyz"); r.StatusCode != http.StatusOK {
		t.Errorf("it says that it is ready, /readyz says %d", r.StatusCode)
	}
	return p
}

func (p *devProcess) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// end signals the process and waits until it is gone.
func (p *devProcess) end(t *testing.T, signal os.Signal) {
	t.Helper()
	began := time.Now()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.exited:
		if signal != os.Kill && err != nil {
			t.Errorf("after %s it ended with %v:\n%s", signal, err, p.err.String())
		}
	case <-time.After(30 * time.Second):
		t.Fatalf("still there 30 s after %s", signal)
	}
	t.Logf("gone %s after %s", time.Since(began).Round(time.Millisecond), signal)
}

type reply struct {
	*http.Response
	body []byte
}

func (p *devProcess) get(t *testing.T, path string) reply {
	t.Helper()
	return p.do(t, http.MethodGet, path, "")
}

func (p *devProcess) do(t *testing.T, method, path, body string) reply {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, p.rest+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply{response, content}
}

// TestDevGoesOnWhereItEnded starts it on an empty folder, ends it in each way there is, and looks for what was there before.
func TestDevGoesOnWhereItEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of its own")
	}
	t.Parallel()
	if _, err := devnet.FindPostgres("", ""); err != nil {
		t.Skipf("no PostgreSQL programs: %v", err)
	}
	folder := t.TempDir()
	p := startDev(t, folder)
	text := p.output()
	for _, want := range []string{"/api\n", "/ws", "31337", "test test test", "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80", "deploy contracts/artifacts/SimpleStorage.json --rpc-url " + p.rpc} {
		if !strings.Contains(text, want) {
			t.Errorf("the welcome does not say %q:\n%s", want, text)
		}
	}
	second := program(t, "dev", "--data-dir", folder, "--listen", "127.0.0.1:0", "--rpc-listen", "127.0.0.1:0")
	if out, err := second.CombinedOutput(); err == nil || !strings.Contains(string(out), fmt.Sprintf("in use by another pactwire (process %d)", p.cmd.Process.Pid)) {
		t.Errorf("a second dev on the folder: %v\n%s", err, out)
	}
	if r := p.get(t, "/api"); r.StatusCode != http.StatusOK || !strings.Contains(r.Header.Get("Content-Security-Policy"), "default-src 'none'") {
		t.Errorf("the Swagger UI: %d, %v", r.StatusCode, r.Header)
	}
	if r := p.get(t, "/console/assets/swagger-ui-bundle.js"); r.StatusCode != http.StatusOK {
		t.Errorf("the Swagger UI's script: %d", r.StatusCode)
	}
	broadcast := func() {
		t.Helper()
		r := p.do(t, http.MethodPost, "/api/v1/namespaces/default/messages/broadcast?confirm=true", `{"data":[{"value":"hello"}]}`)
		if r.StatusCode != http.StatusOK {
			t.Fatalf("broadcast: %d %s", r.StatusCode, r.body)
		}
	}
	wantMessages := func(want int) {
		t.Helper()
		var messages []any
		r := p.get(t, "/api/v1/namespaces/default/messages")
		if err := json.Unmarshal(r.body, &messages); err != nil || len(messages) != want {
			t.Errorf("%d messages (%v), want %d: %s", len(messages), err, want, r.body)
		}
	}
	for n, signal := range []os.Signal{os.Interrupt, syscall.SIGTERM, os.Kill, os.Kill} {
		if r := run(t, "deploy", simpleStorage, "--rpc-url", p.rpc); r.code != 0 {
			t.Errorf("deploy: %+v", r)
		}
		broadcast()
		p.end(t, signal)
		p = startDev(t, folder)
		wantMessages(n + 1)
	}
	broadcast()
	p.end(t, os.Interrupt)
}

// TestASecondInterruptEndsAtOnce interrupts twice in a row; the embedded servers go with the process.
func TestASecondInterruptEndsAtOnce(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a cluster of its own")
	}
	t.Parallel()
	if _, err := devnet.FindPostgres("", ""); err != nil {
		t.Skipf("no PostgreSQL programs: %v", err)
	}
	folder := t.TempDir()
	p := startDev(t, folder)
	for range 2 {
		if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-p.exited: // the code is 130, or 0 when it was quicker than the second signal
	case <-time.After(20 * time.Second):
		t.Fatal("still there")
	}
	p = startDev(t, folder) // nothing is left in its way
	p.end(t, os.Interrupt)
}
