package archtest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/pactwire/pactwire"

// allowed says which of our packages a package's code may import; everything may import the root (error.go). A folder's entry counts for those below it.
var allowed = map[string][]string{
	"":              {},
	"app":           {"auth", "chain", "console", "contract", "delivery", "gen", "handlers", "migrations", "multiparty", "openapi", "sharedstorage", "sse", "store", "webhook", "ws"},
	"auth":          {},
	"chain":         {"contract", "store"},
	"cmd":           {"app", "contract", "contracts", "devnet", "gen", "migrations", "multiparty", "sharedstorage", "store"},
	"console":       {},
	"contract":      {},
	"contracts":     {},
	"delivery":      {"gen", "store"},
	"devnet":        {"contracts"},
	"gen":           {},
	"handlers":      {"auth", "chain", "console", "contract", "delivery", "gen", "multiparty", "openapi", "store"},
	"internal":      {"app", "chain", "contract", "contracts", "devnet", "gen", "internal", "migrations", "openapi", "store"}, // tests and what they need
	"migrations":    {},
	"multiparty":    {"chain", "contract", "contracts", "sharedstorage", "store"},
	"openapi":       {"contract", "gen"},
	"sharedstorage": {},
	"sse":           {"delivery"},
	"store":         {"contract"},
	"webhook":       {"delivery", "gen"},
	"ws":            {"auth", "delivery", "gen"},
}

// purely are packages that do no I/O and so import none of these.
var purely = map[string][]string{
	"contract": {"net", "net/http", "os", "database/sql", "os/exec"},
	"openapi":  {"net", "net/http", "database/sql", "os/exec"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func list(t *testing.T) []pkg {
	t.Helper()
	var stderr bytes.Buffer
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports", module+"/...")
	cmd.Dir, cmd.Stderr = "../..", &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, stderr.String())
	}
	var all []pkg
	for decoder := json.NewDecoder(bufio.NewReader(bytes.NewReader(out))); ; {
		var p pkg
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

// own is the path below the module, and whether the package is ours.
func own(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

func TestImportsGoDownwardsOnly(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, p := range list(t) {
		name, ok := own(p.ImportPath)
		if !ok {
			continue
		}
		top, _, _ := strings.Cut(name, "/")
		rule, known := allowed[top]
		if !known {
			t.Errorf("%s has no rule; say here and in docs/architecture.md what it may import", p.ImportPath)
			continue
		}
		for _, path := range p.Imports {
			checked++
			if slices.Contains(purely[top], path) {
				t.Errorf("%s does no I/O and must not import %s", p.ImportPath, path)
			}
			target, ours := own(path)
			if !ours || target == "" {
				continue
			}
			targetTop, _, _ := strings.Cut(target, "/")
			if targetTop != top && !slices.Contains(rule, targetTop) {
				t.Errorf("%s must not import %s", p.ImportPath, path)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d imports were seen; the list is not read well", checked)
	}
}
