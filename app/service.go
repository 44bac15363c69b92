package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"golang.org/x/sync/errgroup"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/handlers"
	"github.com/pactwire/pactwire/multiparty"
	"github.com/pactwire/pactwire/sharedstorage/configured"
	"github.com/pactwire/pactwire/sse"
	"github.com/pactwire/pactwire/store"
	"github.com/pactwire/pactwire/webhook"
	"github.com/pactwire/pactwire/ws"
)

// service is everything behind the HTTP server. It comes up part by part, each as soon as what it needs is there:
//
//	embedded ─► database ─► migrations ─► chains ─► submitters, readers ─► pin contracts ─► networks ─► delivery, API, sockets
type service struct {
	*App
	embedded Embedded
	db       *store.DB
	schema   uint
	chains   map[string]*handlers.Chain

	mu      sync.Mutex
	sockets *ws.Server
	streams *sse.Server
}

// retryPause is how long to wait for a part that is not there yet.
const retryPause = time.Second

// run brings the service up, giving that up when starting ends, and keeps it up until work ends.
func (s *service) run(starting, work context.Context) error {
	if s.opts.Embedded != nil {
		var err error
		if s.embedded, err = s.opts.Embedded(starting); err != nil {
			return quietly(starting, err)
		}
	}
	if err := s.openDatabase(starting); err != nil {
		return quietly(starting, err)
	}
	defer func() {
		if err := s.db.Close(); err != nil {
			s.log.WarnContext(work, "close the database", "error", err)
		}
	}()
	work, cancel := context.WithCancel(work)
	defer cancel()
	group, work := errgroup.WithContext(work)
	group.Go(func() error { return s.db.Run(work) })
	// A part that fails while the others come up ends the start as well.
	starting, giveUp := context.WithCancel(starting)
	defer giveUp()
	context.AfterFunc(work, giveUp)
	began := time.Now()
	err := s.start(starting, work, group)
	if err != nil {
		cancel()
	} else {
		s.log.InfoContext(work, "ready", "urls", s.URLs(), "took", time.Since(began).Round(time.Millisecond))
		close(s.ready)
	}
	return errors.Join(quietly(starting, err), group.Wait())
}

// quietly drops an error that only says that the process was asked to stop.
func quietly(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// start brings up what needs the database. The parts run in group until work ends.
func (s *service) start(starting, work context.Context, group *errgroup.Group) error {
	s.readiness.watch("database", func(ctx context.Context) string {
		if err := s.db.Ping(ctx); err != nil {
			return "it cannot be reached"
		}
		return ""
	})
	if err := s.startChains(starting, work, group); err != nil {
		return err
	}
	networks, err := s.startNetworks(starting, work, group)
	if err != nil {
		return err
	}
	targets := webhook.Targets{AllowPrivate: s.cfg.MayBePrivate()}
	deliveries := delivery.New(delivery.Config{Registerer: s.registry, CheckURL: targets.CheckURL}, s.db, s.log)
	group.Go(func() error { return deliveries.Run(work) })
	retention := delivery.NewRetention(delivery.RetentionConfig{Keep: s.retention(), Registerer: s.registry}, s.db, s.log)
	group.Go(func() error { return retention.Run(work) })
	webhooks := webhook.New(webhook.Config{Targets: targets, Namespaces: s.namespaceNames(), Registerer: s.registry}, deliveries, s.log)
	group.Go(func() error { return webhooks.Run(work) })
	api, err := s.newAPI(networks, deliveries, webhooks)
	if err != nil {
		return err
	}
	s.api.Store(&api)
	s.readiness.have("start")
	return nil
}

func (s *service) namespaceNames() []string {
	names := make([]string, len(s.cfg.Namespaces))
	for i, n := range s.cfg.Namespaces {
		names[i] = n.Name
	}
	return names
}

// startChains connects to all chains at once, and starts what submits to them and reads from them.
func (s *service) startChains(starting, work context.Context, group *errgroup.Group) error {
	s.chains = map[string]*handlers.Chain{}
	var mu sync.Mutex
	connecting, ctx := errgroup.WithContext(starting)
	for _, c := range s.cfg.Chains {
		connecting.Go(func() error {
			connected, err := s.startChain(ctx, work, group, c)
			if err != nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			s.chains[c.Name] = connected
			return nil
		})
	}
	return connecting.Wait() //nolint:wrapcheck // each says what it did
}

func (s *service) startChain(starting, work context.Context, group *errgroup.Group, c ChainConfig) (*handlers.Chain, error) {
	keys := s.signers[c.Name]
	connecting := chain.Config{Name: c.Name, URLs: c.RPCURLs}
	if len(connecting.URLs) == 0 {
		connecting.URLs, connecting.Attach = s.embedded.RPCURLs, s.embedded.Attach
		keys = append(signers{chain.NewDevSigner(s.embedded.Keys...)}, keys...)
	}
	part := "chain " + c.Name
	client, err := s.dial(starting, part, connecting, c)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(work, client.Close) // those who use it have ended their calls by then, or end them now
	if _, err := s.db.EnsureChain(starting, c.Name, client.ChainID(), client.Genesis()); err != nil {
		return nil, fmt.Errorf("chain %s: %w", c.Name, err)
	}
	for _, n := range s.cfg.Namespaces {
		if n.Chain != c.Name {
			continue
		}
		if err := s.db.EnsureNamespace(starting, n.Name, c.Name); err != nil {
			return nil, fmt.Errorf("namespace %s: %w", n.Name, err)
		}
	}
	group.Go(func() error { return client.Run(work) })
	if keys, err = s.remoteSigners(starting, work, c, keys); err != nil {
		return nil, err
	}
	submitting := chain.SubmitterConfig{Chain: c.Name, Registerer: s.registry, MaxFeePerGas: c.MaxFeePerGas}
	if len(c.RPCURLs) == 0 {
		submitting.MaxInFlight = 1024 // the embedded chain's pool takes that many of one account; the default is for foreign nodes
	}
	submitter := chain.NewSubmitter(submitting, s.db, client, keys, s.log)
	group.Go(func() error { return submitter.Run(work) })
	reading := chain.ReaderConfig{Chain: c.Name, Confirmations: client.Confirmations(), VerifyBlocks: c.VerifyBlocks, Registerer: s.registry}
	reader := chain.NewReader(reading, s.db, client, s.log)
	group.Go(func() error { return reader.Run(work) })
	s.readiness.watch(part, func(ctx context.Context) string {
		if _, err := client.Head(ctx); err != nil {
			return "its node does not answer"
		}
		return ""
	})
	return &handlers.Chain{Name: c.Name, Client: client, Submitter: submitter, Keys: keys.Addresses(), MaxFeePerGas: c.MaxFeePerGas}, nil
}

// dial tries until the chain answers. How many confirmations it needs depends on which chain answers.
func (s *service) dial(starting context.Context, part string, cfg chain.Config, c ChainConfig) (*chain.Client, error) {
	for {
		client, err := chain.Dial(starting, cfg, s.log)
		if err == nil {
			want := uint64(c.ConfirmationsOn(client.ChainID().Int64())) //nolint:gosec // never negative
			if client.Confirmations() == want {
				return client, nil
			}
			client.Close()
			cfg.Confirmations = want
			continue
		}
		if starting.Err() != nil {
			return nil, err //nolint:wrapcheck // it says what it did
		}
		s.readiness.need(part, "its node does not answer")
		s.log.WarnContext(starting, "the chain cannot be reached; trying again", "chain", c.Name, "error", err)
		if err := pause(starting); err != nil {
			return nil, err
		}
	}
}

// startNetworks makes sure of the pin contracts and starts each namespace's part in its network of members.
func (s *service) startNetworks(starting, work context.Context, group *errgroup.Group) ([]handlers.Namespace, error) {
	pins := map[string]common.Address{}
	var all []handlers.Namespace
	for _, n := range s.cfg.Namespaces {
		on := s.chains[n.Chain]
		key, err := defaultKey(n, on)
		if err != nil {
			return nil, err
		}
		if _, known := pins[n.Chain]; !known {
			if pins[n.Chain], err = s.pinContract(starting, n, on, key); err != nil {
				return nil, err
			}
		}
		storage, err := configured.Open(n.SharedStorage)
		if err != nil {
			return nil, fmt.Errorf("namespace %s: %w", n.Name, err)
		}
		network, err := multiparty.New(multiparty.Config{
			Namespace: n.Name, NetworkName: n.Network, Chain: n.Chain, Key: key, PinContract: pins[n.Chain], Registerer: s.registry,
		}, s.db, on.Client, storage, s.log)
		if err != nil {
			return nil, fmt.Errorf("network of namespace %s: %w", n.Name, err)
		}
		group.Go(func() error { return network.Run(work) })
		all = append(all, handlers.Namespace{Name: n.Name, NetworkName: n.Network, Chain: on, Key: key, Network: network})
	}
	s.log.DebugContext(starting, "pin contracts", "by_chain", maps.Collect(maps.All(pins)))
	return all, nil
}

// pinContract returns the pin contract of a chain: the configured one, or the one that the database knows, or in dev one that is deployed now.
func (s *service) pinContract(starting context.Context, n NamespaceConfig, on *handlers.Chain, key common.Address) (common.Address, error) {
	part := "pin contract of chain " + n.Chain
	s.readiness.need(part, "it is not known yet")
	for {
		address, err := s.findPinContract(starting, n, on, key)
		if err == nil {
			s.readiness.have(part)
			return address, nil
		}
		if starting.Err() != nil {
			return address, err
		}
		var known *pactwire.Error
		if s.isEmbedded(n.Chain) && errors.As(err, &known) && known.Code == "pin_contract_missing" {
			// All embedded chains begin with the same block, so that only what is on them tells one from another.
			return address, fmt.Errorf("the database belongs to another development chain than the one in the data folder; take the two that go together, "+
				"or an empty database: %w", err)
		}
		s.readiness.need(part, publicReason(err))
		s.log.WarnContext(starting, "the pin contract is not usable; trying again", "chain", n.Chain, "error", err)
		if err := pause(starting); err != nil {
			return address, err
		}
	}
}

func (s *service) findPinContract(ctx context.Context, n NamespaceConfig, on *handlers.Chain, key common.Address) (common.Address, error) {
	var c ChainConfig
	for _, c = range s.cfg.Chains {
		if c.Name == n.Chain {
			break
		}
	}
	if c.PinContract != nil {
		if err := multiparty.CheckPinContract(ctx, on.Client, *c.PinContract); err != nil {
			return common.Address{}, err //nolint:wrapcheck // it says what it did
		}
		return *c.PinContract, s.db.SetPinContract(ctx, c.Name, *c.PinContract, c.PinBlock) //nolint:wrapcheck // it says what it did
	}
	known, err := s.db.Chain(ctx, c.Name)
	if err != nil {
		return common.Address{}, err //nolint:wrapcheck // it says what it did
	}
	if len(known.PinContract) == 0 && !s.isEmbedded(c.Name) {
		return common.Address{}, pactwire.Conflict("pin_contract_unknown", "no address is configured; deploy contracts/artifacts/Pactwire.json and give pin-contract and pin-block")
	}
	return multiparty.EnsurePinContract(ctx, multiparty.Deployment{ //nolint:wrapcheck // it says what it did
		Namespace: n.Name, Chain: c.Name, Key: key, Name: s.cfg.OrgName, URL: s.publicURL(),
	}, s.db, on.Client)
}

// isEmbedded tells whether a chain is the embedded one.
func (s *service) isEmbedded(name string) bool {
	for _, c := range s.cfg.Chains {
		if c.Name == name {
			return len(c.RPCURLs) == 0
		}
	}
	return false
}

// publicReason is what a client may read of an error.
func publicReason(err error) string {
	var known *pactwire.Error
	if errors.As(err, &known) && known.Kind != pactwire.KindInternal {
		return known.Message
	}
	return "it is not usable; the log says why"
}

func (s *service) publicURL() string {
	if s.cfg.PublicURL == nil {
		return ""
	}
	return s.cfg.PublicURL.String()
}

// defaultKey is the account that signs where a request names none.
func defaultKey(n NamespaceConfig, on *handlers.Chain) (common.Address, error) {
	if len(on.Keys) == 0 {
		return common.Address{}, fmt.Errorf("namespace %s: there is no key to sign with on chain %s", n.Name, n.Chain)
	}
	if n.DefaultKey == nil {
		return on.Keys[0], nil
	}
	for _, k := range on.Keys {
		if k == *n.DefaultKey {
			return k, nil
		}
	}
	return common.Address{}, fmt.Errorf("namespace %s: none of the keystores of chain %s holds the default key %s", n.Name, n.Chain, n.DefaultKey)
}

// pause waits before another try.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return fmt.Errorf("wait for another try: %w", ctx.Err())
	case <-time.After(retryPause):
		return nil
	}
}

func (s *service) closeSockets(ctx context.Context) {
	s.mu.Lock()
	sockets, streams := s.sockets, s.streams
	s.mu.Unlock()
	if sockets == nil {
		return
	}
	streams.Stop()
	if err := sockets.Stop(ctx); err != nil {
		s.log.WarnContext(ctx, "close the WebSocket connections", "error", err)
	}
}
