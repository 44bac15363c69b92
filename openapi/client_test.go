package openapi_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
)

// TestDocumentsGiveGoClients generates a Go client from each golden document and from random ones, and compiles them.
func TestDocumentsGiveGoClients(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles generated clients")
	}
	bodies := map[string][]byte{}
	for name, s := range subjects(t) {
		bodies[name] = build(t, s)
	}
	for seed := range 20 {
		if s, ok := randomSubject(abis.Example(seed), seed%2 == 0); ok {
			bodies[fmt.Sprintf("random%d", seed)] = build(t, s)
		}
	}
	// Within the module, so that its dependencies serve; testdata is no part of ./...
	dir, err := os.MkdirTemp("testdata", "clients-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	for name, body := range bodies {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name, "client.go"), goClient(t, name, load(t, body)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "vet", "./"+dir+"/...").CombinedOutput(); err != nil {
		t.Fatalf("the clients do not compile: %v\n%s", err, out)
	}
}

func goClient(t *testing.T, name string, doc *openapi3.T) []byte {
	t.Helper()
	code, err := codegen.Generate(doc, codegen.Configuration{
		PackageName: "client",
		Generate:    codegen.GenerateOptions{Models: true, Client: true},
	})
	if err != nil {
		t.Fatalf("%s: generate a client: %v", name, err)
	}
	return []byte(code)
}
