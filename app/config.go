package app

import (
	"cmp"
	"log/slog"
	"math/big"
	"net/netip"
	"net/url"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Mode is what the process is for: it decides which settings there are.
type Mode int

// The modes. They are bits, so that a setting can belong to both.
const (
	ModeDev   Mode = 1 << iota // everything embedded, on loopback
	ModeServe                  // production: database and chain are elsewhere
)

// DefaultName names the chain and the namespace that exist when none is configured.
const DefaultName = "default"

// Config is everything that can be set. Load makes it.
type Config struct {
	Mode           Mode
	Listen         []string // host:port; a listener for each
	DataDir        string   // dev: the embedded chain and database live under it
	RPCListen      string   // dev: where the embedded chain's JSON-RPC listens
	DatabaseURL    string   // dev: empty means a private server
	PublicURL      *url.URL // how clients reach this service, when that differs from the address they ask for
	LogLevel       slog.Level
	LogFormat      string // text or json
	MaxBody        int64
	RequestTimeout time.Duration
	DrainTimeout   time.Duration
	LeaseTime      time.Duration // how soon another replica takes over the work of one that died
	OrgName        string
	SharedStorage  []string // of namespaces that have none of their own
	Migrate        bool     // bring the schema up to date at the start; dev always does
	Insecure       bool     // listen beyond loopback without authentication
	TrustedProxies []netip.Prefix
	TLS            TLSConfig
	Auth           AuthConfig
	Retention      RetentionConfig // of namespaces that do not say otherwise
	Webhooks       WebhooksConfig
	Chains         []ChainConfig
	Namespaces     []NamespaceConfig

	single      singleChain
	listsChains bool              // the file has a list of chains; single is not used then
	sources     map[string]string // where the value of each key comes from, for messages and Print
}

// AuthConfig names the files with credentials. Without any, everyone may do everything.
type AuthConfig struct {
	UsersFile  string
	TokensFile string
}

// WebhooksConfig says where webhooks may lead.
type WebhooksConfig struct {
	AllowPrivate *bool // to this machine and private networks too; nil: in dev only
}

// MayBePrivate tells whether webhooks may lead to this machine and to private networks.
func (c *Config) MayBePrivate() bool {
	if c.Webhooks.AllowPrivate == nil {
		return c.Mode == ModeDev
	}
	return *c.Webhooks.AllowPrivate
}

// Enabled tells whether requests must be authenticated.
func (a AuthConfig) Enabled() bool { return a.UsersFile != "" || a.TokensFile != "" }

// ChainConfig is one blockchain. In dev, one without RPC URLs is the embedded chain.
type ChainConfig struct {
	Name          string
	RPCURLs       []string
	Confirmations *int64          // nil: none on development chains, DefaultConfirmations elsewhere
	VerifyBlocks  *int64          // blocks before the head that catch-up verifies one by one; nil for the reader's default
	PinContract   *common.Address // nil: the one that the database knows; in dev a new one is deployed where there is none
	PinBlock      int64           // the first block that can hold pins
	Keys          []KeyConfig
	MaxFeePerGas  *big.Int // the most that the service offers by itself, in wei; nil for no limit
}

// DefaultConfirmations is how many blocks must follow one until its events count, on a chain that is not known to be a development chain.
const DefaultConfirmations = 12

// developmentChains are the chain ids that Ethereum's development tools use.
var developmentChains = []int64{31337, 1337}

// ConfirmationsOn is the number of confirmations on the chain with this id.
func (c ChainConfig) ConfirmationsOn(chainID int64) int64 {
	switch {
	case c.Confirmations != nil:
		return *c.Confirmations
	case slices.Contains(developmentChains, chainID):
		return 0
	default:
		return DefaultConfirmations
	}
}

// KeyConfig is one or more signing keys: an Ethereum keystore file, or a folder of them, that one password opens; or a remote signer's.
type KeyConfig struct {
	Keystore     string
	PasswordFile string
	Remote       string // URL of a signer that speaks Web3Signer's or Clef's JSON-RPC; the other two are empty then
}

// RetentionConfig says what is kept of a namespace's history. With neither bound everything is.
type RetentionConfig struct {
	Age   *time.Duration // events that are older go
	Count *int64         // events before so many newest ones go
	Force *bool          // also those that a durable subscription has not passed yet
}

// or fills in from another one what is not said.
func (r RetentionConfig) or(other RetentionConfig) RetentionConfig {
	return RetentionConfig{Age: cmp.Or(r.Age, other.Age), Count: cmp.Or(r.Count, other.Count), Force: cmp.Or(r.Force, other.Force)}
}

// NamespaceConfig is one namespace.
type NamespaceConfig struct {
	Name       string
	Chain      string
	DefaultKey *common.Address // signs where a request names no key; nil: the chain's first
	// SharedStorage is where payloads of broadcasts go (the first), and where they may also be: see sharedstorage/configured.
	SharedStorage []string
	Network       string          // the network of members: those that pin under the same name on the same contract see each other's messages
	Retention     RetentionConfig // what is not said here is as Config.Retention has it
}

// singleChain collects the settings that describe the one chain where the file lists none.
type singleChain struct {
	rpcURLs       []string
	keystore      string
	passwordFile  string
	signerURL     string
	maxFeePerGas  *big.Int
	pinContract   *common.Address
	pinBlock      int64
	confirmations *int64
	verifyBlocks  *int64
}

// settle fills in the default chain and namespace.
func (c *Config) settle() {
	if len(c.Chains) == 0 {
		chain := ChainConfig{
			Name: DefaultName, RPCURLs: c.single.rpcURLs, Confirmations: c.single.confirmations, VerifyBlocks: c.single.verifyBlocks,
			PinContract: c.single.pinContract, PinBlock: c.single.pinBlock,
			MaxFeePerGas: c.single.maxFeePerGas,
		}
		if c.single.keystore != "" || c.single.passwordFile != "" {
			chain.Keys = []KeyConfig{{Keystore: c.single.keystore, PasswordFile: c.single.passwordFile}}
		}
		if c.single.signerURL != "" {
			chain.Keys = append(chain.Keys, KeyConfig{Remote: c.single.signerURL})
		}
		c.Chains = []ChainConfig{chain}
	}
	if len(c.Namespaces) == 0 {
		c.Namespaces = []NamespaceConfig{{Name: DefaultName}}
	}
	for i := range c.Namespaces {
		n := &c.Namespaces[i]
		if n.Chain == "" && len(c.Chains) == 1 {
			n.Chain = c.Chains[0].Name
		}
		if len(n.SharedStorage) == 0 {
			n.SharedStorage = c.SharedStorage
		}
		n.Retention = n.Retention.or(c.Retention)
		if n.Network == "" {
			n.Network = n.Name
		}
	}
}
