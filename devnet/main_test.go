package devnet_test

import (
	"bufio"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/pactwire/pactwire/internal/chaintest"
)

// The tests of sudden death run this binary once more as the process that dies. It works in a folder and prints what the
// outside world has been told; then it is killed.
const (
	envRole   = "PACTWIRE_DEVNET_TEST_ROLE"
	envFolder = "PACTWIRE_DEVNET_TEST_FOLDER"
)

func TestMain(m *testing.M) {
	switch os.Getenv(envRole) {
	case "postgres":
		actPostgres(os.Getenv(envFolder))
	case "chain":
		actChain(os.Getenv(envFolder))
	default:
		goleak.VerifyTestMain(m, chaintest.IgnoreLeaks()...)
	}
}

var discard = slog.New(slog.DiscardHandler)

// victim is a second process whose lines can be read until it is killed.
type victim struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startVictim(t *testing.T, role, folder string) *victim {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRole+"="+role, envFolder+"="+folder)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return &victim{cmd: cmd, lines: bufio.NewScanner(out)}
}

// killAfter reads n lines, kills the process without warning, and returns all lines it got out.
func (v *victim) killAfter(t *testing.T, n int) []string {
	t.Helper()
	var lines []string
	for len(lines) < n && v.lines.Scan() {
		lines = append(lines, v.lines.Text())
	}
	if err := v.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for v.lines.Scan() {
		lines = append(lines, v.lines.Text())
	}
	_ = v.cmd.Wait()
	if len(lines) < n {
		t.Fatalf("the process ended by itself after %d lines: %s", len(lines), strings.Join(lines, "; "))
	}
	return lines
}

func fail(err error) {
	_, _ = io.WriteString(os.Stderr, err.Error()+"\n")
	os.Exit(1)
}
