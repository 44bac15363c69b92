package app

import (
	"strings"

	"github.com/spf13/pflag"
)

// setting is one key with its three names: in the file, as a flag, in the environment.
type setting struct {
	key   string // as the file has it; a dot leads into a section
	modes Mode
	def   string
	usage string
	value func(*Config) value
	hide  func(string) string // takes secrets out for Print; nil when there are none
}

// settings lists every key but chains and namespaces, which only the file knows.
func settings() []setting {
	const both = ModeDev | ModeServe
	return []setting{
		{"listen", both, "127.0.0.1:5000", "where to serve HTTP and WebSocket: `host:port`, or several separated by commas", func(c *Config) value { return list(&c.Listen) }, nil},
		{"data-dir", ModeDev, ".pactwire", "`folder` of the embedded chain and database", func(c *Config) value { return text(&c.DataDir) }, nil},
		{"rpc-listen", ModeDev, "127.0.0.1:8545", "where the embedded chain serves JSON-RPC over HTTP and WebSocket: `host:port`", func(c *Config) value { return text(&c.RPCListen) }, nil},
		{"database-url", both, "", "PostgreSQL connection `URL`; in dev a private server is started without it", func(c *Config) value { return text(&c.DatabaseURL) }, hideDatabase},
		{"rpc-url", ModeServe, "", "the chain's JSON-RPC `URL` (http, https, ws, wss), or several separated by commas", func(c *Config) value { return list(&c.single.rpcURLs) }, hideRPC},
		{"keystore", ModeServe, "", "Ethereum keystore `file` with the signing key, or a folder of them", func(c *Config) value { return text(&c.single.keystore) }, nil},
		{"password-file", ModeServe, "", "`file` with the keystore's password in its first line", func(c *Config) value { return text(&c.single.passwordFile) }, nil},
		{"lease-time", both, "10s", "how soon other replicas take over the work of one that died: `duration`", func(c *Config) value { return duration(&c.LeaseTime) }, nil},
		{"signer-url", both, "", "`URL` of a remote signer that speaks Web3Signer's or Clef's JSON-RPC", func(c *Config) value { return text(&c.single.signerURL) }, hideRPC},
		{"max-fee-per-gas", both, "", "the most that the service offers by itself for a unit of gas: `amount` in wei or with gwei (default no limit)", func(c *Config) value { return wei(&c.single.maxFeePerGas) }, nil},
		{"pin-contract", both, "", "`address` of the pin contract", func(c *Config) value { return address(&c.single.pinContract) }, nil},
		{"pin-block", both, "0", "`block` in which the pin contract was deployed", func(c *Config) value { return count(&c.single.pinBlock) }, nil},
		{"confirmations", both, "", "`blocks` that must follow one until its events count (default 0 on development chains, 12 elsewhere)", func(c *Config) value { return optionalCount(&c.single.confirmations) }, nil},
		{"verify-blocks", both, "", "`blocks` before the head that catch-up verifies one by one, and not only by samples, against nodes that leave out logs (default 2000)", func(c *Config) value { return optionalCount(&c.single.verifyBlocks) }, nil},
		{"public-url", both, "", "the `URL` at which clients reach this service, when a proxy stands before it", func(c *Config) value { return webURL(&c.PublicURL) }, nil},
		{"org-name", both, "org", "`name` of this member of the network", func(c *Config) value { return text(&c.OrgName) }, nil},
		{"shared-storage", both, "chain", "where the payloads of broadcasts travel, the same for all members: `address` chain, dir:///path or ipfs://host:port; more, separated by commas, are only read from", func(c *Config) value { return list(&c.SharedStorage) }, hideStorage},
		{"max-body", both, "4MiB", "largest request body: `size` in bytes, or with KiB or MiB", func(c *Config) value { return size(&c.MaxBody) }, nil},
		{"request-timeout", both, "120s", "longest `duration` of a request", func(c *Config) value { return duration(&c.RequestTimeout) }, nil},
		{"drain-timeout", both, "5s", "longest `duration` that requests under way may take when the service stops", func(c *Config) value { return duration(&c.DrainTimeout) }, nil},
		{"log-level", both, "info", "what is logged: `level` debug, info, warn or error", func(c *Config) value { return level(&c.LogLevel) }, nil},
		{"log-format", both, "text", "`format` of the log: text or json", func(c *Config) value { return choice(&c.LogFormat, "text", "json") }, nil},
		{"migrate", ModeServe, "true", "bring the database's schema up to date at the start; --migrate=false leaves that to pactwire migrate", func(c *Config) value { return boolean(&c.Migrate) }, nil},
		{"retention.age", both, "", "let events go that are older than this `duration`, such as 720h (default: keep all)", func(c *Config) value { return optionalDuration(&c.Retention.Age) }, nil},
		{"retention.count", both, "", "let events go beyond this `number` of the newest (default: keep all)", func(c *Config) value { return optionalCount(&c.Retention.Count) }, nil},
		{"retention.force", both, "", "`true`: let old events go although a durable subscription has not received them yet", func(c *Config) value { return optionalBoolean(&c.Retention.Force) }, nil},
		{"insecure", both, "false", "listen beyond loopback although nobody has to authenticate", func(c *Config) value { return boolean(&c.Insecure) }, nil},
		{"trusted-proxies", both, "", "`networks` whose X-Forwarded headers are believed, such as 10.0.0.0/8", func(c *Config) value { return prefixes(&c.TrustedProxies) }, nil},
		{"webhooks.allow-private", both, "", "`true` lets webhooks lead to this machine and to private networks too (default: in dev only)", func(c *Config) value { return optionalBoolean(&c.Webhooks.AllowPrivate) }, nil},
		{"tls.cert-file", both, "", "PEM `file` with the TLS certificate and its intermediates; HTTPS is served with it", func(c *Config) value { return text(&c.TLS.CertFile) }, nil},
		{"tls.key-file", both, "", "PEM `file` with the key of the TLS certificate", func(c *Config) value { return text(&c.TLS.KeyFile) }, nil},
		{"auth.users-file", both, "", "`file` with users: name:bcrypt hash[:role[:namespaces]]", func(c *Config) value { return text(&c.Auth.UsersFile) }, nil},
		{"auth.tokens-file", both, "", "`file` with bearer tokens: name:SHA-256[:role[:namespaces]]", func(c *Config) value { return text(&c.Auth.TokensFile) }, nil},
	}
}

const envPrefix = "PACTWIRE_"

// flag is the key as a command line writes it, without the dashes in front.
func (s setting) flag() string { return strings.ReplaceAll(s.key, ".", "-") }

// env is the key as the environment writes it.
func (s setting) env() string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(s.key))
}

// names is how messages speak of the setting: by all its names.
func (s setting) names() string { return s.key + " (--" + s.flag() + ", " + s.env() + ")" }

// namesOf is names for a key.
func namesOf(key string) string {
	for _, s := range settings() {
		if s.key == key {
			return s.names()
		}
	}
	return key
}

// AddFlags defines the flags of a mode.
func AddFlags(flags *pflag.FlagSet, mode Mode) {
	flags.String("config", "", "YAML `file` with settings ("+envPrefix+"CONFIG)")
	for _, s := range settings() {
		if s.modes&mode == 0 {
			continue
		}
		usage := s.usage + " (" + s.env() + ")"
		if s.def == "false" || s.def == "true" {
			flags.Bool(s.flag(), s.def == "true", usage)
			continue
		}
		flags.String(s.flag(), s.def, usage)
	}
}
