package e2e

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pactwire/pactwire/contracts"
)

// pactwire runs the program in a folder and returns what it printed.
func pactwire(t testing.TB, dir string, args ...string) string {
	t.Helper()
	path, err := binary()
	must(t, err)
	return command(t.Context(), t, dir, nil, path, args...)
}

func command(ctx context.Context, t testing.TB, dir string, env []string, name string, args ...string) string {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &errs
	cmd.Env = append(os.Environ(), env...)
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s%s", filepath.Base(name), strings.Join(args, " "), err, &out, &errs)
	}
	return out.String()
}

// newModule makes the module of an application in a folder. What it requires is what this module requires, in the same versions.
func newModule(t testing.TB, dir string) {
	t.Helper()
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	must(t, err)
	sum, err := os.ReadFile(filepath.Join(root, "go.sum"))
	must(t, err)
	mod = regexp.MustCompile(`(?m)^module .*$`).ReplaceAll(mod, []byte("module app"))
	must(t, os.WriteFile(filepath.Join(dir, "go.mod"), mod, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "go.sum"), sum, 0o600))
}

// What a developer does: have the clients written, write a program against them, run it.
func TestAGeneratedClientCompilesAndWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles generated clients")
	}
	t.Parallel()
	s := start(t)
	address := s.chain.Deploy(t, contracts.SimpleStorage()).Hex()
	animals := s.chain.Deploy(t, contracts.Zoo(), "zoo").Hex()
	s.createAPI(t, "simple-storage", *s.broadcast(t, "simple-storage", "1", contracts.SimpleStorage().ABI).ID, &address)
	s.createAPI(t, "zoo", *s.broadcast(t, "zoo", "1", contracts.Zoo().ABI).ID, nil)

	dir := t.TempDir()
	newModule(t, dir)
	printed := pactwire(t, dir, "client", "--url", s.url, "--api", "simple-storage", "--out", "storage")
	if printed != filepath.Join("storage", "client.gen.go")+"\n" {
		t.Errorf("client printed %q", printed)
	}
	pactwire(t, dir, "client", "--url", s.url, "--namespace", ns, "--api", "zoo", "--out", "animals", "--package", "zoo")
	must(t, os.Rename(filepath.Join(dir, "animals"), filepath.Join(dir, "zoo")))
	program, err := os.ReadFile(filepath.Join("testdata", "client", "main.go"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "main.go"), program, 0o600))

	command(t.Context(), t, dir, nil, "go", "vet", "./...")
	got := command(t.Context(), t, dir, []string{"ZOO=" + animals}, "go", "run", ".")
	const want = "stored 12345678901234567890123456789\nlistening to Changed\nechoed -1\noverload over(uint256)\npaid 18446744073709551617\nreverted with Denied\n"
	if got != want {
		t.Errorf("the program printed\n%s\nwant\n%s", got, want)
	}

	// The note for go generate makes the same file again, and so does the document from a file.
	file := filepath.Join(dir, "storage", "client.gen.go")
	first, err := os.ReadFile(file)
	must(t, err)
	line := regexp.MustCompile(`(?m)^//go:generate pactwire (.*)$`).FindSubmatch(first)
	if line == nil {
		t.Fatal("the package has no note for go generate")
	}
	pactwire(t, filepath.Dir(file), strings.Fields(string(line[1]))...)
	again, err := os.ReadFile(file)
	must(t, err)
	if !bytes.Equal(first, again) {
		t.Error("the same document gave another file")
	}
	if gofmt := command(t.Context(), t, dir, nil, "gofmt", "-l", "."); gofmt != "" {
		t.Errorf("not formatted: %s", gofmt)
	}
}
