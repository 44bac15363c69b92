package app

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pactwire/pactwire/sharedstorage/configured"
)

// validName is what names of namespaces, chains, organisations and networks look like.
var validName = regexp.MustCompile(`^[0-9a-zA-Z]([0-9a-zA-Z._-]{0,62}[0-9a-zA-Z])?$`)

const (
	minBody        = 1 << 10
	maxBody        = 1 << 30
	maxRequestTime = time.Hour
)

// checker collects what is wrong with settings that were read well one by one.
type checker struct {
	c        *Config
	problems []error
}

func (k *checker) add(key, format string, args ...any) {
	k.problems = append(k.problems, fmt.Errorf("%s: %w", namesOf(key), fmt.Errorf(format, args...)))
}

// singleKeys are the settings that describe the one chain where the file lists none.
var singleKeys = []string{"rpc-url", "keystore", "password-file", "signer-url", "max-fee-per-gas", "pin-contract", "pin-block", "confirmations", "verify-blocks"}

// checkSingle refuses settings of the one chain beside a list of chains: which would count?
func (c *Config) checkSingle() []error {
	if !c.listsChains {
		return nil
	}
	k := &checker{c: c}
	for _, key := range singleKeys {
		if source := c.sources[key]; source != "" && source != "default" {
			k.add(key, "given by %s, but the file lists chains; say it there, for the chain that it belongs to", source)
		}
	}
	return k.problems
}

func (c *Config) check() []error {
	k := &checker{c: c}
	if len(c.Listen) == 0 {
		k.add("listen", "must name at least one address")
	}
	for _, a := range c.Listen {
		k.listen("listen", a, c.Auth.Enabled())
	}
	if c.Mode == ModeDev {
		k.listen("rpc-listen", c.RPCListen, false)
		if c.DataDir == "" {
			k.add("data-dir", "must not be empty")
		}
	}
	k.database()
	if c.MaxBody < minBody || c.MaxBody > maxBody {
		k.add("max-body", "must be between 1KiB and 1024MiB")
	}
	if c.RequestTimeout > maxRequestTime {
		k.add("request-timeout", "must be at most %s", maxRequestTime)
	}
	if c.LeaseTime < time.Second || c.LeaseTime > time.Hour {
		k.add("lease-time", "must be between 1s and 1h")
	}
	if !validName.MatchString(c.OrgName) {
		k.add("org-name", "%q is no name: 1 to 64 letters, digits, dots, dashes and underscores", c.OrgName)
	}
	if (c.TLS.CertFile == "") != (c.TLS.KeyFile == "") {
		k.add("tls.cert-file", "goes with tls.key-file: give both")
	}
	k.file("tls.cert-file", c.TLS.CertFile)
	k.file("tls.key-file", c.TLS.KeyFile)
	k.file("auth.users-file", c.Auth.UsersFile)
	k.file("auth.tokens-file", c.Auth.TokensFile)
	k.chains()
	k.namespaces()
	return k.problems
}

// listen checks an address to listen on. Beyond loopback somebody has to authenticate, unless it is said that nobody has to.
func (k *checker) listen(key, address string, authenticated bool) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		k.add(key, "%q is not of the form host:port", address)
		return
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		k.add(key, "%q: the port must be a number from 0 to %d, not %q", address, 1<<16-1, port)
	} else if n == 0 && len(k.c.Listen) > 1 {
		k.add(key, "%q: port 0 goes with a single address only", address)
	}
	if !Loopback(host) && !authenticated && !k.c.Insecure {
		k.add(key, "%q can be reached from other machines, and nobody would have to authenticate; %s", address,
			map[bool]string{
				true:  "give auth.users-file or auth.tokens-file, listen on 127.0.0.1, or allow it with --insecure",
				false: "listen on 127.0.0.1, or allow it with --insecure",
			}[key == "listen"])
	}
}

// Loopback tells whether a host can be reached from this machine only.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.Unmap().IsLoopback()
}

func (k *checker) database() {
	given := k.c.DatabaseURL
	switch {
	case given == "" && k.c.Mode == ModeServe:
		k.add("database-url", "is needed, such as postgres://user@host:5432/pactwire")
	case given == "":
	case strings.Contains(given, "://"):
		// The parser's own message would show the password.
		if u, err := url.Parse(given); err != nil || (u.Scheme != "postgres" && u.Scheme != "postgresql") {
			k.add("database-url", "must have the form postgres://user:password@host:port/database (special characters of the password percent-encoded)")
		}
	case !strings.Contains(given, "="):
		k.add("database-url", "must have the form postgres://user:password@host:port/database")
	}
}

func (k *checker) file(key, path string) {
	if path == "" {
		return
	}
	if _, err := os.Stat(path); err != nil {
		k.add(key, "%w", withoutOp(err))
	}
}

func withoutOp(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("%s: %w", path.Path, path.Err)
	}
	return err
}

func (k *checker) chains() {
	var names []string
	for i, c := range k.c.Chains {
		where := fmt.Sprintf("chains[%d]", i)
		if !validName.MatchString(c.Name) {
			k.add(where+".name", "%q is no name: 1 to 64 letters, digits, dots, dashes and underscores", c.Name)
		} else if slices.Contains(names, c.Name) {
			k.add(where+".name", "%q is there twice", c.Name)
		}
		names = append(names, c.Name)
		at := func(listed, single string) string {
			if k.c.listsChains {
				return where + "." + listed
			}
			return single
		}
		if len(c.RPCURLs) == 0 && k.c.Mode == ModeServe {
			k.add(at("rpc-urls", "rpc-url"), "is needed, such as http://127.0.0.1:8545")
		}
		for _, raw := range c.RPCURLs {
			u, err := url.Parse(raw)
			if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https", "ws", "wss"}, u.Scheme) {
				k.add(at("rpc-urls", "rpc-url"), "must be http://, https://, ws:// or wss:// and a host")
			}
		}
		if len(c.Keys) == 0 && k.c.Mode == ModeServe {
			k.add(at("keys", "keystore"), "is needed, or a signer-url: the key that signs this member's transactions")
		}
		for j, key := range c.Keys {
			if key.Remote != "" {
				k.remote(at(fmt.Sprintf("keys[%d].remote", j), "signer-url"), key)
				continue
			}
			if key.Keystore == "" || key.PasswordFile == "" {
				k.add(at(fmt.Sprintf("keys[%d]", j), "keystore"), "a keystore and its password-file go together")
				continue
			}
			k.file(at(fmt.Sprintf("keys[%d].keystore", j), "keystore"), key.Keystore)
			k.file(at(fmt.Sprintf("keys[%d].password-file", j), "password-file"), key.PasswordFile)
		}
	}
}

// remote checks a remote signer's URL. It is not repeated: it may hold a password.
func (k *checker) remote(where string, key KeyConfig) {
	if key.Keystore != "" || key.PasswordFile != "" {
		k.add(where, "a remote signer has no keystore here; make it an entry of its own")
	}
	u, err := url.Parse(key.Remote)
	if err != nil || u.Host == "" || !slices.Contains([]string{"http", "https"}, u.Scheme) {
		k.add(where, "must be http:// or https:// and a host")
	}
}

func (k *checker) namespaces() {
	var names []string
	for i, n := range k.c.Namespaces {
		where := fmt.Sprintf("namespaces[%d]", i)
		if !validName.MatchString(n.Name) {
			k.add(where+".name", "%q is no name: 1 to 64 letters, digits, dots, dashes and underscores", n.Name)
		} else if slices.Contains(names, n.Name) {
			k.add(where+".name", "%q is there twice", n.Name)
		}
		names = append(names, n.Name)
		if !validName.MatchString(n.Network) {
			k.add(where+".network", "%q is no name: 1 to 64 letters, digits, dots, dashes and underscores", n.Network)
		}
		for _, address := range n.SharedStorage {
			if err := configured.Check(address); err != nil {
				k.add(where+".shared-storage", "%w", err)
			}
		}
		var chains []string
		for _, c := range k.c.Chains {
			chains = append(chains, c.Name)
		}
		switch {
		case n.Chain == "":
			k.add(where+".chain", "is needed: there are the chains %s", strings.Join(chains, ", "))
		case !slices.Contains(chains, n.Chain):
			k.problems = append(k.problems, unknown(fmt.Sprintf("%s.chain: the chain %q", where, n.Chain), n.Chain, chains))
		}
	}
}
