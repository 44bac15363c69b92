package app_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"

	"github.com/pactwire/pactwire/app"
)

func write(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pactwire.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, mode app.Mode, flags map[string]string, environ ...string) *app.Config {
	t.Helper()
	c, err := app.Load(mode, flags, environ)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestFlagsWinOverEnvironmentOverFileOverDefaults(t *testing.T) {
	t.Parallel()
	file := write(t, "listen: 127.0.0.1:3\nlog-level: warn\norg-name: from-file\nmax-body: 1MiB\n")
	c := load(t, app.ModeDev, map[string]string{"listen": "127.0.0.1:1"},
		"PACTWIRE_CONFIG="+file, "PACTWIRE_LISTEN=127.0.0.1:2", "PACTWIRE_LOG_LEVEL=debug", "PACTWIRE_ORG_NAME=", "HOME=/x")
	if got := strings.Join(c.Listen, ","); got != "127.0.0.1:1" {
		t.Errorf("listen is %s: the flag must win", got)
	}
	if c.LogLevel.String() != "DEBUG" {
		t.Errorf("log-level is %s: the environment must win over the file", c.LogLevel)
	}
	if c.OrgName != "from-file" || c.MaxBody != 1<<20 {
		t.Errorf("org-name %q, max-body %d: the file must win over the defaults, and an empty variable is not set", c.OrgName, c.MaxBody)
	}
	if c.RPCListen != "127.0.0.1:8545" || c.DataDir != ".pactwire" || c.RequestTimeout != 2*time.Minute {
		t.Errorf("defaults: %q, %q, %s", c.RPCListen, c.DataDir, c.RequestTimeout)
	}
	other := write(t, "org-name: other\n")
	if c := load(t, app.ModeDev, map[string]string{"config": other}, "PACTWIRE_CONFIG="+file); c.OrgName != "other" {
		t.Errorf("--config must win over PACTWIRE_CONFIG: org-name is %q", c.OrgName)
	}
}

func TestTheDefaultsAreOneChainAndOneNamespace(t *testing.T) {
	t.Parallel()
	c := load(t, app.ModeDev, nil)
	if len(c.Listen) != 1 || c.Listen[0] != "127.0.0.1:5000" || c.DatabaseURL != "" {
		t.Errorf("listen %v, database %q", c.Listen, c.DatabaseURL)
	}
	if len(c.Chains) != 1 || c.Chains[0].Name != "default" || len(c.Namespaces) != 1 || c.Namespaces[0].Name != "default" || c.Namespaces[0].Chain != "default" {
		t.Errorf("chains %+v, namespaces %+v", c.Chains, c.Namespaces)
	}
	for id, want := range map[int64]int64{31337: 0, 1337: 0, 1: app.DefaultConfirmations} {
		if got := c.Chains[0].ConfirmationsOn(id); got != want {
			t.Errorf("chain %d waits for %d confirmations, want %d", id, got, want)
		}
	}
	c = load(t, app.ModeDev, map[string]string{"confirmations": "3"})
	if got := c.Chains[0].ConfirmationsOn(31337); got != 3 {
		t.Errorf("said 3 confirmations, got %d", got)
	}
}

func TestSeveralChainsAndNamespaces(t *testing.T) {
	t.Parallel()
	secret := write(t, "pw")
	c := load(t, app.ModeServe, map[string]string{"config": write(t, `
listen: [127.0.0.1:1, "[::1]:2"]
database-url: postgres://u:p@h/db
auth:
  users-file: `+secret+`
chains:
  - name: main
    rpc-urls: [http://a:1, ws://b:2]
    confirmations: 5
    pin-contract: "0x5FbDB2315678afecb367f032d93F642f64180aa3"
    pin-block: 7
    keys: [{keystore: `+secret+`, password-file: `+secret+`}]
  - name: side
    rpc-urls: http://c:3
    keys: [{keystore: `+secret+`, password-file: `+secret+`}]
namespaces:
  - {name: one, chain: main, default-key: "0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266"}
  - {name: two, chain: side, network: shared}
`)})
	main := c.Chains[0]
	if len(c.Listen) != 2 || len(c.Chains) != 2 || len(main.RPCURLs) != 2 || *main.Confirmations != 5 || main.PinBlock != 7 || main.PinContract == nil || main.Keys[0].Keystore != secret {
		t.Errorf("chains %+v", c.Chains)
	}
	if c.Namespaces[0].DefaultKey == nil || c.Namespaces[0].Network != "one" || c.Namespaces[1].Network != "shared" || c.Auth.UsersFile != secret {
		t.Errorf("namespaces %+v", c.Namespaces)
	}
}

func TestMistakesAreNamed(t *testing.T) {
	t.Parallel()
	serve := map[string]string{"database-url": "postgres://u@h/d", "rpc-url": "http://h:1", "keystore": write(t, "k"), "password-file": write(t, "p")}
	for _, c := range []struct {
		name  string
		mode  app.Mode
		flags map[string]string // "": taken out of the good ones
		env   []string
		file  string
		want  []string
	}{
		{"unknown key", app.ModeDev, nil, nil, "listen: 127.0.0.1:1\nlisten-rpc: x\nrcp-listen: y\n", []string{"line 2: the key listen-rpc", "line 3", "did you mean rpc-listen?"}},
		{"unknown key in a section", app.ModeDev, nil, nil, "auth:\n  user-file: x\n", []string{"line 2: the key auth.user-file", "did you mean auth.users-file"}},
		{"unknown key in a chain", app.ModeDev, nil, nil, "chains:\n  - name: a\n    rpc-url: x\n", []string{"line 3: the key rpc-url", "rpc-urls"}},
		{"unknown variable", app.ModeDev, nil, []string{"PACTWIRE_LISTN=x"}, "", []string{"PACTWIRE_LISTN", "did you mean PACTWIRE_LISTEN?"}},
		{"key twice", app.ModeDev, nil, nil, "listen: 127.0.0.1:1\nlisten: 127.0.0.1:2\n", []string{"line 2", "twice"}},
		{"no mapping", app.ModeDev, nil, nil, "- listen\n", []string{"must be a list of keys with values"}},
		{"broken yaml", app.ModeDev, nil, nil, "listen: [\n", []string{"line 1"}},
		{"structure for a value", app.ModeDev, nil, nil, "listen: {a: b}\n", []string{"line 1", "single value"}},
		{"bad address", app.ModeDev, map[string]string{"listen": "localhost"}, nil, "", []string{"listen (--listen, PACTWIRE_LISTEN)", "host:port"}},
		{"bad port", app.ModeDev, map[string]string{"listen": "localhost:http"}, nil, "", []string{"port"}},
		{"open to the world", app.ModeDev, map[string]string{"listen": "0.0.0.0:5000"}, nil, "", []string{"other machines", "--insecure"}},
		{"open to the world by an empty host", app.ModeDev, map[string]string{"listen": ":5000"}, nil, "", []string{"--insecure"}},
		{"dev chain open to the world", app.ModeDev, map[string]string{"rpc-listen": "[::]:1"}, nil, "", []string{"rpc-listen (--rpc-listen", "--insecure"}},
		{"several at once", app.ModeDev, map[string]string{"log-level": "loud", "request-timeout": "-1s", "max-body": "many"}, nil, "", []string{"log-level", "given by --log-level", "request-timeout", "max-body"}},
		{"limits", app.ModeDev, map[string]string{"max-body": "10", "request-timeout": "2h", "org-name": "a b"}, nil, "", []string{"1KiB", "1h", "org-name"}},
		{"address checksum", app.ModeDev, map[string]string{"pin-contract": "0x5fbDB2315678afecb367f032d93F642f64180aa3"}, nil, "", []string{"pin-contract", "checksum"}},
		{"proxy", app.ModeDev, map[string]string{"trusted-proxies": "10.0.0.0/99"}, nil, "", []string{"trusted-proxies"}},
		{"public url", app.ModeDev, map[string]string{"public-url": "ftp://x"}, nil, "", []string{"public-url", "https://host/path"}},
		{"no database", app.ModeServe, map[string]string{"database-url": ""}, nil, "", []string{"database-url (--database-url, PACTWIRE_DATABASE_URL): is needed"}},
		{"no chain", app.ModeServe, map[string]string{"rpc-url": ""}, nil, "", []string{"rpc-url (--rpc-url, PACTWIRE_RPC_URL): is needed"}},
		{"no key", app.ModeServe, map[string]string{"keystore": "", "password-file": ""}, nil, "", []string{"keystore (--keystore", "is needed"}},
		{"half a key", app.ModeServe, map[string]string{"password-file": ""}, nil, "", []string{"go together"}},
		{"missing keystore", app.ModeServe, map[string]string{"keystore": "/no/such"}, nil, "", []string{"/no/such: no such file"}},
		{"chain twice", app.ModeServe, map[string]string{}, nil, "chains: [{name: a, rpc-urls: http://a}]", []string{"rpc-url", "the file lists chains"}},
		{"wrong scheme", app.ModeServe, map[string]string{"rpc-url": "localhost:8545"}, nil, "", []string{"rpc-url", "http://"}},
		{"unknown chain", app.ModeDev, nil, nil, "namespaces: [{name: a, chain: defualt}]", []string{"namespaces[0].chain", "did you mean default?"}},
		{"namespace twice", app.ModeDev, nil, nil, "namespaces: [{name: a}, {name: a}]", []string{"namespaces[1].name", "twice"}},
		{"namespace without a name", app.ModeDev, nil, nil, "namespaces: [{chain: default}]", []string{"namespaces[0].name"}},
		{"missing file", app.ModeDev, map[string]string{"config": "/no/such.yaml"}, nil, "", []string{"/no/such.yaml"}},
	} {
		flags := map[string]string{}
		if c.mode == app.ModeServe {
			for k, v := range serve {
				flags[k] = v
			}
		}
		for k, v := range c.flags {
			flags[k] = v
			if v == "" {
				delete(flags, k)
			}
		}
		if c.file != "" {
			flags["config"] = write(t, c.file)
		}
		_, err := app.Load(c.mode, flags, c.env)
		if err == nil {
			t.Errorf("%s: accepted", c.name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\ndoes not say %q", c.name, err, want)
			}
		}
	}
	load(t, app.ModeServe, serve)
}

func TestOpenToTheWorldIsAllowedWithAuthenticationOrInsecure(t *testing.T) {
	t.Parallel()
	load(t, app.ModeDev, map[string]string{"listen": "0.0.0.0:5000", "insecure": "true"})
	load(t, app.ModeDev, map[string]string{"listen": "0.0.0.0:5000", "auth-users-file": write(t, "x")})
	load(t, app.ModeDev, map[string]string{"listen": "localhost:5000,[::1]:5000,127.8.8.8:1"})
}

func TestForeignVariablesAndTheOtherModesKeysAreNoMistake(t *testing.T) {
	t.Parallel()
	// A Kubernetes service called pactwire makes such variables; `pactwire deploy` reads PACTWIRE_RPC_URL too.
	load(t, app.ModeDev, nil, "PACTWIRE_PORT_5000_TCP_ADDR=1.2.3.4", "PACTWIRE_SERVICE_HOST=1.2.3.4", "PACTWIRE_TEST_DATABASE_URL=x", "PACTWIRE_RPC_URL=http://x")
}

func TestPrintHidesSecretsAndCanBeLoaded(t *testing.T) {
	t.Parallel()
	key, password := write(t, "k"), write(t, "p")
	c := load(t, app.ModeServe, map[string]string{
		"database-url": "postgres://u:s3cret@h:5432/db?sslmode=require&sslpassword=s3cret", "rpc-url": "https://x:s3cret@node/v3/s3cret?key=s3cret,http://plain:8545",
		"keystore": key, "password-file": password,
	}, "PACTWIRE_LOG_FORMAT=json")
	var out strings.Builder
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"postgres://u:***@h:5432/db?sslmode=require&sslpassword=***" # --database-url`, "https://node/***,http://plain:8545", `log-format: "json" # PACTWIRE_LOG_FORMAT`, "# default"} {
		if !strings.Contains(strings.ReplaceAll(out.String(), "sslmode=require&sslpassword", "sslmode=require&sslpassword"), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "s3cret") {
		t.Errorf("a secret is printed:\n%s", out.String())
	}
	load(t, app.ModeServe, map[string]string{"config": write(t, out.String())})
	dsn := load(t, app.ModeDev, map[string]string{"database-url": "host=h password='a s3cret' dbname=d"})
	out.Reset()
	if err := dsn.Print(&out); err != nil || strings.Contains(out.String(), "s3cret") {
		t.Errorf("a secret is printed (%v):\n%s", err, out.String())
	}
}

func TestPrintShowsListedChains(t *testing.T) {
	t.Parallel()
	c := load(t, app.ModeDev, map[string]string{"config": write(t, "chains: [{name: a, pin-block: 4}]\nnamespaces: [{name: n, chain: a}]")})
	var out strings.Builder
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	again := load(t, app.ModeDev, map[string]string{"config": write(t, out.String())})
	if len(again.Chains) != 1 || again.Chains[0].PinBlock != 4 || again.Namespaces[0].Chain != "a" {
		t.Errorf("printed and loaded again: %+v\n%s", again, out.String())
	}
}

func TestEachModeHasItsFlags(t *testing.T) {
	t.Parallel()
	for mode, want := range map[app.Mode]map[string]bool{
		app.ModeDev:   {"listen": true, "data-dir": true, "rpc-listen": true, "rpc-url": false, "keystore": false, "database-url": true, "config": true},
		app.ModeServe: {"listen": true, "data-dir": false, "rpc-listen": false, "rpc-url": true, "keystore": true, "auth-users-file": true},
	} {
		flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
		app.AddFlags(flags, mode)
		for name, there := range want {
			if (flags.Lookup(name) != nil) != there {
				t.Errorf("mode %d: flag --%s there: %v", mode, name, !there)
			}
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("listen: 127.0.0.1:1\nauth: {users-file: x}\nchains: [{name: a, keys: [{keystore: k}]}]")
	f.Add("a: &a [*a]")
	f.Add("chains: &c\n  - <<: *c")
	f.Fuzz(func(t *testing.T, content string) {
		path := filepath.Join(t.TempDir(), "f.yaml")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = app.Load(app.ModeDev, map[string]string{"config": path}, nil)
	})
}
