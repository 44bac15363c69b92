package app

import (
	"fmt"
	"io"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

const hidden = "***"

// Print writes the configuration in effect, as a file that Load would take, with the source of each value beside it and without its secrets.
func (c *Config) Print(w io.Writer) error {
	var b strings.Builder
	section := ""
	for _, s := range settings() {
		value := s.value(c).get()
		if s.modes&c.Mode == 0 || value == "" || (c.listsChains && slices.Contains(singleKeys, s.key)) {
			continue
		}
		if s.hide != nil {
			value = hideEach(value, s.hide)
		}
		key := s.key
		if head, tail, ok := strings.Cut(s.key, "."); ok {
			if section != head {
				fmt.Fprintf(&b, "%s:\n", head)
				section = head
			}
			key = "  " + tail
		}
		fmt.Fprintf(&b, "%s: %q # %s\n", key, value, c.sources[s.key])
	}
	if c.listsChains {
		c.printChains(&b)
	}
	c.printNamespaces(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return nil
}

func (c *Config) printChains(b *strings.Builder) {
	b.WriteString("chains:\n")
	for _, chain := range c.Chains {
		fmt.Fprintf(b, "  - name: %q\n", chain.Name)
		entry := func(indent, key, value string) {
			if value != "" {
				fmt.Fprintf(b, "%s%s: %q\n", indent, key, value)
			}
		}
		entry("    ", "rpc-urls", hideEach(strings.Join(chain.RPCURLs, ","), hideRPC))
		entry("    ", "confirmations", optionalCount(&chain.Confirmations).get())
		entry("    ", "verify-blocks", optionalCount(&chain.VerifyBlocks).get())
		entry("    ", "pin-contract", address(&chain.PinContract).get())
		entry("    ", "pin-block", count(&chain.PinBlock).get())
		entry("    ", "max-fee-per-gas", wei(&chain.MaxFeePerGas).get())
		if len(chain.Keys) > 0 {
			b.WriteString("    keys:\n")
		}
		for _, k := range chain.Keys {
			if k.Remote != "" {
				fmt.Fprintf(b, "      - remote: %q\n", hideRPC(k.Remote))
				continue
			}
			fmt.Fprintf(b, "      - keystore: %q\n", k.Keystore)
			entry("        ", "password-file", k.PasswordFile)
		}
	}
}

func (c *Config) printNamespaces(b *strings.Builder) {
	b.WriteString("namespaces:\n")
	for _, n := range c.Namespaces {
		fmt.Fprintf(b, "  - name: %q\n    chain: %q\n    network: %q\n", n.Name, n.Chain, n.Network)
		fmt.Fprintf(b, "    shared-storage: %q\n", hideEach(strings.Join(n.SharedStorage, ","), hideStorage))
		if n.DefaultKey != nil {
			fmt.Fprintf(b, "    default-key: %q\n", n.DefaultKey.Hex())
		}
		if n.Retention != (RetentionConfig{}) {
			b.WriteString("    retention:\n")
		}
		for _, bound := range []struct{ key, value string }{
			{"age", optionalDuration(&n.Retention.Age).get()},
			{"count", optionalCount(&n.Retention.Count).get()},
			{"force", optionalBoolean(&n.Retention.Force).get()},
		} {
			if bound.value != "" {
				fmt.Fprintf(b, "      %s: %q\n", bound.key, bound.value)
			}
		}
	}
}

func hideEach(list string, hide func(string) string) string {
	parts := strings.Split(list, ",")
	for i := range parts {
		parts[i] = hide(parts[i])
	}
	return strings.Join(parts, ",")
}

var passwordPair = regexp.MustCompile(`(?i)(password\s*=\s*)('(?:[^'\\]|\\.)*'|\S+)`)

// hideDatabase takes the password out of a connection string, in either of its forms.
func hideDatabase(s string) string {
	if !strings.Contains(s, "://") {
		return passwordPair.ReplaceAllString(s, "${1}"+hidden)
	}
	u, err := url.Parse(s)
	if err != nil {
		return hidden
	}
	query := u.Query()
	for name := range query {
		if strings.Contains(strings.ToLower(name), "password") {
			query.Set(name, hidden)
		}
	}
	u.RawQuery = query.Encode()
	return withoutPassword(u)
}

// hideRPC keeps the host of a node's URL only: providers put their keys into the path, the query or the user name.
func hideRPC(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return hidden
	}
	short := url.URL{Scheme: u.Scheme, Host: u.Host}
	if u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" {
		return short.String() + "/" + hidden
	}
	return short.String()
}

// hideStorage takes the password out of the address of shared storage; a folder is no secret.
func hideStorage(s string) string {
	if u, err := url.Parse(s); err == nil && u.User != nil {
		return hideRPC(s)
	}
	return s
}

// withoutPassword writes the URL with stars for the password; url.URL would encode the stars.
func withoutPassword(u *url.URL) string {
	if _, set := u.User.Password(); !set {
		return strings.ReplaceAll(u.String(), url.QueryEscape(hidden), hidden)
	}
	const mark = "REDACTED-REDACTED"
	u.User = url.UserPassword(u.User.Username(), mark)
	return strings.ReplaceAll(strings.Replace(u.String(), ":"+mark+"@", ":"+hidden+"@", 1), url.QueryEscape(hidden), hidden)
}
