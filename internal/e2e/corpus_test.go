package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/gen"
)

// corpusContract is a contract of the corpus, and what came of it.
type corpusContract struct {
	name     string
	abi      json.RawMessage
	document []byte
}

// corpus reads the ABIs of all packages below a folder, each different one once, the longest first.
func corpus(t *testing.T, folder string) []*corpusContract {
	t.Helper()
	var found []*corpusContract
	seen := map[string]bool{}
	must(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || filepath.Ext(path) != ".json" {
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var artifact struct {
			ABI json.RawMessage `json:"abi"`
		}
		var abi bytes.Buffer
		// Other files of packages are JSON too, or nearly.
		if json.Unmarshal(raw, &artifact) != nil || !bytes.HasPrefix(artifact.ABI, []byte("[")) || json.Compact(&abi, artifact.ABI) != nil {
			return nil
		}
		if abi.Len() <= len("[]") || seen[abi.String()] {
			return nil
		}
		seen[abi.String()] = true
		found = append(found, &corpusContract{name: strings.TrimSuffix(filepath.Base(path), ".json"), abi: abi.Bytes()})
		return nil
	}))
	slices.SortStableFunc(found, func(a, b *corpusContract) int { return len(b.abi) - len(a.abi) })
	for i, c := range found {
		c.name = fmt.Sprintf("c%03d-%.50s", i, strings.Trim(c.name, "-_."))
	}
	return found
}

// Real contracts, from the packages that everybody builds on: each becomes an API whose document is right and whose client compiles.
func TestRealContractsBecomeAPIsAndClients(t *testing.T) {
	folder := os.Getenv("PACTWIRE_CORPUS")
	if folder == "" {
		t.Skip("make corpus installs the packages with the contracts, and runs this")
	}
	all := corpus(t, folder)
	if len(all) < 100 {
		t.Fatalf("the corpus has %d contracts, want a hundred at least", len(all))
	}
	s := start(t)
	began := time.Now()
	var work errgroup.Group
	work.SetLimit(8)
	for _, c := range all {
		work.Go(func() error {
			if err := s.publish(t.Context(), c); err != nil {
				t.Errorf("%s: %v", c.name, err)
			}
			return nil
		})
	}
	_ = work.Wait() // each has reported for itself
	t.Logf("%d contracts became APIs in %s", len(all), time.Since(began).Round(time.Millisecond))
	if t.Failed() {
		return
	}
	compile(t, all)
}

// publish takes a contract through the service: generate, broadcast, API, document.
func (s *service) publish(ctx context.Context, c *corpusContract) error {
	generated, err := s.client.GenerateContractInterfaceWithResponse(ctx, ns, gen.GenerateRequest{
		Name: &c.name, Version: ptr("1"), Input: gen.GenerateInput{Abi: c.abi},
	})
	if err != nil {
		return err
	}
	if generated.JSON200 == nil {
		return fmt.Errorf("generate: %s %s", generated.Status(), generated.Body)
	}
	if err := nothingLost(c, generated.JSON200); err != nil {
		return err
	}
	var input gen.ContractInterfaceInput
	if err := json.Unmarshal(generated.Body, &input); err != nil {
		return err
	}
	broadcast, err := s.client.CreateContractInterfaceWithResponse(ctx, ns, &gen.CreateContractInterfaceParams{Confirm: ptr(true)}, input)
	if err != nil {
		return err
	}
	if broadcast.JSON200 == nil {
		return fmt.Errorf("broadcast: %s %s", broadcast.Status(), broadcast.Body)
	}
	api, err := s.client.CreateContractAPIWithResponse(ctx, ns, &gen.CreateContractAPIParams{Confirm: ptr(true)},
		gen.ContractAPIInput{Name: c.name, Interface: gen.InterfaceReference{ID: broadcast.JSON200.ID}})
	if err != nil {
		return err
	}
	if api.JSON200 == nil {
		return fmt.Errorf("create the API: %s %s", api.Status(), api.Body)
	}
	document, err := s.client.GetContractAPIDocumentWithResponse(ctx, ns, c.name, nil)
	if err != nil {
		return err
	}
	doc, err := openapi3.NewLoader().LoadFromData(document.Body)
	if err != nil {
		return fmt.Errorf("read the document: %w", err)
	}
	if err := doc.Validate(ctx, openapi3.EnableExamplesValidation()); err != nil {
		return fmt.Errorf("validate the document: %w", err)
	}
	for _, m := range *broadcast.JSON200.Methods {
		if doc.Paths.Find("/query/"+m.Pathname) == nil {
			return fmt.Errorf("the document has no path for %s", m.Pathname)
		}
	}
	c.document = document.Body
	return nil
}

// nothingLost compares an interface with its ABI, entry by entry.
func nothingLost(c *corpusContract, generated *gen.ContractInterface) error {
	var entries []struct{ Type, Name string }
	if err := json.Unmarshal(c.abi, &entries); err != nil {
		return err
	}
	want := map[string][]string{}
	for _, e := range entries {
		want[e.Type] = append(want[e.Type], e.Name)
	}
	got := map[string][]string{}
	for _, m := range *generated.Methods {
		got["function"] = append(got["function"], m.Name)
	}
	for _, e := range *generated.Events {
		got["event"] = append(got["event"], e.Name)
	}
	if generated.Errors != nil {
		for _, e := range *generated.Errors {
			got["error"] = append(got["error"], e.Name)
		}
	}
	for _, kind := range []string{"function", "event", "error"} {
		if !slices.Equal(want[kind], got[kind]) {
			return fmt.Errorf("the %ss %v became %v", kind, want[kind], got[kind])
		}
	}
	return nil
}

// compile generates the clients of the longest and of some other contracts and has the Go compiler check them.
func compile(t *testing.T, all []*corpusContract) {
	t.Helper()
	const longest, others = 8, 14
	dir := t.TempDir()
	newModule(t, dir)
	chosen := slices.Clone(all[:longest])
	for i := range others {
		chosen = append(chosen, all[longest+i*(len(all)-longest)/others])
	}
	began := time.Now()
	for i, c := range chosen {
		file := filepath.Join(dir, "document.json")
		must(t, os.WriteFile(file, c.document, 0o600))
		pactwire(t, dir, "client", "--document", file, "--out", fmt.Sprintf("client%d", i))
	}
	generated := time.Now()
	command(t.Context(), t, dir, nil, "go", "vet", "./...")
	t.Logf("%d clients were generated in %s and compiled in %s", len(chosen), generated.Sub(began).Round(time.Millisecond), time.Since(generated).Round(time.Millisecond))
}
