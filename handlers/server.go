package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"time"

	"github.com/ethereum/go-ethereum/common"
	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/auth"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/multiparty"
	"github.com/pactwire/pactwire/store"
)

// Config says how the API is served.
type Config struct {
	NodeName       string // of this member
	Version        string // of the binary
	SchemaVersion  uint   // of the database
	PublicURL      string // address under which clients reach the service; taken from each request when empty
	TrustedProxies []netip.Prefix
	MaxBody        int64         // bytes of a request; 4 MiB when zero
	RequestTimeout time.Duration // the longest that a request may take; 120 s when zero
	Authenticators []auth.Authenticator
	Namespaces     []Namespace
	// Page renders the Swagger UI page for the document at an address.
	Page       func(title, documentURL string) []byte
	Registerer prometheus.Registerer // nil: no metrics are registered
	// PingWebhook posts a test event to a webhook.
	PingWebhook func(ctx context.Context, ref delivery.Ref, options delivery.Options) (delivery.Pong, error)
	// PagePolicy is the Content-Security-Policy of those pages.
	PagePolicy string
}

// Namespace is one namespace with all that serves it.
type Namespace struct {
	Name        string
	NetworkName string
	Description string
	Chain       *Chain
	Key         common.Address // signs when a request names no key
	Network     *multiparty.Network
}

// Chain is one chain with its client.
type Chain struct {
	Name         string
	Client       *chain.Client
	Submitter    *chain.Submitter
	Keys         []common.Address // that this node can sign with
	MaxFeePerGas *big.Int         // the most that the service offers by itself, in wei; nil for no limit
}

// Server implements the generated interface.
type Server struct {
	cfg        Config
	db         *store.DB
	deliveries *delivery.Manager
	log        *slog.Logger
	started    time.Time
	namespaces map[string]*Namespace
	requests   *prometheus.HistogramVec

	apis      *lru.Cache[string, *cachedAPI]
	compiled  *lru.Cache[string, *ready] // by interface id; an interface never changes
	documents *lru.Cache[documentKey, document]
	contracts *lru.Cache[string, struct{}] // addresses that are known to hold code
}

var _ gen.StrictServerInterface = (*Server)(nil)

// New makes a Server.
func New(cfg Config, db *store.DB, deliveries *delivery.Manager, log *slog.Logger) (*Server, error) {
	if cfg.MaxBody == 0 {
		cfg.MaxBody = 4 << 20
	}
	if cfg.RequestTimeout == 0 {
		cfg.RequestTimeout = 120 * time.Second
	}
	s := &Server{
		cfg: cfg, db: db, deliveries: deliveries, log: log, started: time.Now().UTC(), namespaces: map[string]*Namespace{},
		requests: newRequestMetric(cfg.Registerer),
	}
	for i := range cfg.Namespaces {
		name := cfg.Namespaces[i].Name
		s.namespaces[name] = &cfg.Namespaces[i]
	}
	var err error
	if s.apis, err = lru.New[string, *cachedAPI](4096); err != nil {
		return nil, fmt.Errorf("make the cache of APIs: %w", err)
	}
	if s.compiled, err = lru.New[string, *ready](1024); err != nil {
		return nil, fmt.Errorf("make the cache of interfaces: %w", err)
	}
	if s.documents, err = lru.New[documentKey, document](256); err != nil {
		return nil, fmt.Errorf("make the cache of documents: %w", err)
	}
	if s.contracts, err = lru.New[string, struct{}](65536); err != nil {
		return nil, fmt.Errorf("make the cache of contract addresses: %w", err)
	}
	return s, nil
}

// namespace finds a namespace of the configuration.
func (s *Server) namespace(name string) (*Namespace, error) {
	ns := s.namespaces[name]
	if ns == nil {
		return nil, pactwire.NotFound("namespace", "There is no namespace %q.", name)
	}
	return ns, nil
}
