package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
)

// envMain makes the test binary the program itself, so that tests can run it as a process of its own.
const envMain = "PACTWIRE_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(envMain) != "" {
		main()
		return
	}
	os.Exit(m.Run())
}

// program is the command for a process of its own, without any of our variables from outside.
func program(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PACTWIRE_") {
			cmd.Env = append(cmd.Env, entry)
		}
	}
	cmd.Env = append(cmd.Env, envMain+"=1")
	return cmd
}

type result struct {
	code     int
	out, err string
}

// run runs a command line within the test's own process.
func run(t *testing.T, args ...string) result {
	t.Helper()
	var out, errs bytes.Buffer
	code := execute(t.Context(), args, streams{in: strings.NewReader(""), out: &out, err: &errs})
	return result{code, out.String(), errs.String()}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	cmd := program(t, "version")
	out, err := cmd.Output()
	if err != nil || !regexp.MustCompile(`^pactwire \S* ?\(.+\), go1\S+ \w+/\w+\n$`).Match(out) {
		t.Errorf("version: %q, %v", out, err)
	}
	var info buildInfo
	if r := run(t, "version", "--json"); json.Unmarshal([]byte(r.out), &info) != nil || info.Go == "" {
		t.Errorf("version --json: %+v", r)
	}
}

func TestMistakesInTheCommandLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"sevre"}, exitUsage, `"sevre"`},
		{[]string{"serve", "--listn", "x"}, exitUsage, "--listn"},
		{[]string{"serve", "more"}, exitUsage, "more"},
		{[]string{"deploy"}, exitUsage, "arg"},
		{[]string{"migrate", "down", "0"}, exitUsage, "1 or more"},
		{[]string{"deploy", "x.json", "--key", "0"}, exitUsage, "the service's own account"},
		{[]string{"deploy", "x.json", "--key", "10"}, exitUsage, "1 to 9"},
		{[]string{"deploy", "x.json", "--key", "0x12"}, exitUsage, "64 hex digits"},
		{[]string{"deploy", "/no/such.json"}, exitFailure, "/no/such.json"},
		{[]string{"serve"}, exitFailure, "database-url (--database-url, PACTWIRE_DATABASE_URL): is needed"},
		{[]string{"dev", "--listen", "0.0.0.0:1"}, exitFailure, "--insecure"},
		{[]string{"migrate", "status"}, exitFailure, "database-url"},
	} {
		r := run(t, c.args...)
		if r.code != c.code || !strings.Contains(r.err, c.want) || !strings.HasPrefix(r.err, "pactwire: ") {
			t.Errorf("%v: %+v; want code %d and %q", c.args, r, c.code, c.want)
		}
		if strings.Contains(r.err, "goroutine") || strings.Contains(r.out, "Usage:") {
			t.Errorf("%v says too much: %+v", c.args, r)
		}
	}
	for _, args := range [][]string{{}, {"--help"}, {"dev", "--help"}, {"migrate"}} {
		if r := run(t, args...); r.code != 0 || !strings.Contains(r.out, "Usage:") {
			t.Errorf("%v: %+v", args, r)
		}
	}
}

func TestPrintConfig(t *testing.T) {
	t.Parallel()
	if r := run(t, "dev", "--print-config", "--org-name", "acme"); r.code != 0 || !strings.Contains(r.out, `org-name: "acme" # --org-name`) {
		t.Errorf("%+v", r)
	}
}

func TestMigrate(t *testing.T) {
	t.Parallel()
	url := pgtest.NewEmpty(t)
	for _, step := range []struct{ args, want string }{
		{"status", "schema version 0 (the newest is"},
		{"up", "(up to date)"},
		{"up", "(up to date)"},
		{"down 1", "run `pactwire migrate up`"},
		{"up", "(up to date)"},
	} {
		r := run(t, append(append([]string{"migrate"}, strings.Fields(step.args)...), "--database-url", url)...)
		if r.code != 0 || !strings.Contains(r.out, step.want) {
			t.Errorf("migrate %s: %+v; want %q", step.args, r, step.want)
		}
	}
	if r := run(t, "migrate", "up", "--database-url", "postgres://nobody:s3cret@127.0.0.1:1/x"); r.code != exitFailure || strings.Contains(r.err, "s3cret") {
		t.Errorf("a database out of reach: %+v", r)
	}
}

const simpleStorage = "../../contracts/artifacts/SimpleStorage.json"

func TestDeploy(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	deploy := func(args ...string) result {
		return run(t, append([]string{"deploy", "--rpc-url", chain.HTTPURL()}, args...)...)
	}
	r := deploy(simpleStorage)
	if r.code != 0 || !regexp.MustCompile(`^0x[0-9a-fA-F]{40}\n$`).MatchString(r.out) {
		t.Fatalf("deploy: %+v", r)
	}
	r = deploy(simpleStorage, "--json", "--key", "3")
	var d deployment
	if err := json.Unmarshal([]byte(r.out), &d); err != nil || d.From != chain.Accounts[3].Address.Hex() || d.Contract != "SimpleStorage" || d.ChainID != "31337" {
		t.Errorf("deploy --json: %+v (%v)", r, err)
	}
	receipt := chain.Await(t, [32]byte(hexutil.MustDecode(d.TransactionHash)))
	if receipt.ContractAddress.Hex() != d.Address || receipt.BlockNumber.String() != d.BlockNumber {
		t.Errorf("the receipt says %s in block %s, not %+v", receipt.ContractAddress, receipt.BlockNumber, d)
	}
	if r := deploy("../../contracts/artifacts/Pactwire.json", "me", "https://me.example", "--key", "2"); r.code != 0 {
		t.Errorf("deploy with arguments: %+v", r)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{simpleStorage, "5"}, "takes no arguments"},
		{[]string{"../../contracts/artifacts/Pactwire.json", "me"}, "2 arguments"},
		{[]string{simpleStorage, "--key", "0x" + strings.Repeat("7", 64)}, "no funds"},
		{[]string{reverting(t)}, "reverted: out of luck"},
		{[]string{simpleStorage, "--contract", "Other"}, `"SimpleStorage", not "Other"`},
	} {
		if r := deploy(c.args...); r.code != exitFailure || !strings.Contains(r.err, c.want) || strings.Count(r.err, "\n") != 1 {
			t.Errorf("%v: %+v; want %q", c.args, r, c.want)
		}
	}
	if r := run(t, "deploy", simpleStorage, "--rpc-url", "http://127.0.0.1:1"); r.code != exitFailure || !strings.Contains(r.err, "is `pactwire dev` running?") {
		t.Errorf("no chain: %+v", r)
	}
	chain.SetAutomine(false)
	if r := deploy(simpleStorage, "--timeout", "300ms"); r.code != exitFailure || !strings.Contains(r.err, "longer than 300ms") {
		t.Errorf("no blocks: %+v", r)
	}
}

// reverting is the artifact of a contract whose constructor reverts with Error("out of luck").
func reverting(t *testing.T) string {
	t.Helper()
	word := func(hex string) string { return strings.Repeat("0", 64-len(hex)) + hex }
	reason := hexutil.Encode([]byte("out of luck"))[2:]
	data := "08c379a0" + word("20") + word("b") + reason + strings.Repeat("0", 64-len(reason))
	return writeFile(t, `{"abi": [], "bytecode": "0x6064600c60003960646000fd`+data+`"}`)
}

func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "artifact.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestArtifactFormats(t *testing.T) {
	t.Parallel()
	const abi = `[{"type":"constructor","inputs":[]}]`
	for _, c := range []struct {
		name, content, contract, want, err string
	}{
		{"Hardhat", `{"contractName":"A","abi":` + abi + `,"bytecode":"0x60aa"}`, "", "A 60aa", ""},
		{"Foundry", `{"abi":` + abi + `,"bytecode":{"object":"0x60ab","linkReferences":{}}}`, "", " 60ab", ""},
		{"combined-json", `{"contracts":{"a.sol:A":{"abi":` + abi + `,"bin":"60ac"}},"version":"0.8"}`, "", "A 60ac", ""},
		{"combined-json, quoted abi", `{"contracts":{"a.sol:A":{"abi":"[]","bin":"60ac"}}}`, "", "A 60ac", ""},
		{"standard JSON", `{"contracts":{"a.sol":{"A":{"abi":` + abi + `,"evm":{"bytecode":{"object":"60ad"}}}}}}`, "", "A 60ad", ""},
		{"one of several that can be deployed", `{"contracts":{"a.sol":{"A":{"abi":[],"evm":{"bytecode":{"object":"60ad"}}},"I":{"abi":[],"evm":{"bytecode":{"object":""}}}}}}`, "", "A 60ad", ""},
		{"several, chosen", `{"contracts":{"a.sol:A":{"abi":[],"bin":"60"},"b.sol:B":{"abi":[],"bin":"61"}}}`, "B", "B 61", ""},
		{"several", `{"contracts":{"a.sol:A":{"abi":[],"bin":"60"},"b.sol:B":{"abi":[],"bin":"61"}}}`, "", "", "say which one with --contract: a.sol:A, b.sol:B"},
		{"several, none of the name", `{"contracts":{"a.sol:A":{"abi":[],"bin":"60"},"b.sol:B":{"abi":[],"bin":"61"}}}`, "C", "", "it has a.sol:A, b.sol:B"},
		{"abstract", `{"abi":[],"bytecode":"0x"}`, "", "", "abstract"},
		{"unlinked", `{"abi":[],"bytecode":"0x60__$0123456789$__61"}`, "", "", "library"},
		{"not hex", `{"abi":[],"bytecode":"0x6"}`, "", "", "hex"},
		{"no bytecode", `{"abi":[]}`, "", "", "no bytecode"},
		{"neither", `{"x":1}`, "", "", "solc, Hardhat or Foundry"},
		{"compiler error", `{"errors":[{"severity":"error","formattedMessage":"ParserError: boo"}],"contracts":{}}`, "", "", "ParserError: boo"},
		{"no JSON", `pragma solidity`, "", "", "no JSON object"},
		{"an array", `[]`, "", "", "no JSON object"},
	} {
		a, err := readArtifact(writeFile(t, c.content), c.contract)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v; want %q", c.name, err, c.err)
			}
			continue
		}
		if got := a.name + " " + hexutil.Encode(a.bytecode)[2:]; err != nil || got != c.want || len(a.abi) == 0 {
			t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
		}
	}
}

func FuzzArtifact(f *testing.F) {
	f.Add([]byte(`{"contracts":{"a.sol":{"A":{"abi":[],"evm":{"bytecode":{"object":"60"}}}}}}`))
	f.Fuzz(func(_ *testing.T, text []byte) {
		if all, err := parseArtifact(text); err == nil {
			_, _ = choose(all, "", "fuzz")
		}
	})
}

func TestTheServicesKeyIsAccountZero(t *testing.T) {
	t.Parallel()
	accounts, err := devnet.Accounts()
	if err != nil {
		t.Fatal(err)
	}
	key, err := deployKey("1")
	if err != nil || !key.Equal(accounts[1].Key) {
		t.Errorf("--key 1 is another key (%v)", err)
	}
}
