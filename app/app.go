package app

import (
	"context"
	"crypto/ecdsa"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/auth"
)

// Options are what the configuration does not say.
type Options struct {
	Version string // of the binary
	// Embedded starts what is embedded, when there is something; Run calls it once the HTTP server answers. Whoever gave it stops what it started, after Run.
	Embedded func(ctx context.Context) (Embedded, error)
}

// Embedded is what runs inside this process.
type Embedded struct {
	DatabaseURL string              // empty: the configuration's
	SoleUser    bool                // nobody else uses the database: leases of a former life of this process may be taken at once
	RPCURLs     []string            // of the embedded chain, for chains that have none in the configuration
	Attach      func() *rpc.Client  // connects to that chain within the process; nil: by its URLs
	Keys        []*ecdsa.PrivateKey // that sign on the embedded chain
}

// App is one process of the service.
type App struct {
	cfg       *Config
	opts      Options
	log       *slog.Logger
	listeners []net.Listener
	server    *http.Server
	registry  *prometheus.Registry
	signers   map[string]signers // by chain, of its keystores
	auth      []auth.Authenticator
	readiness *readiness
	ready     chan struct{}
	api       atomic.Pointer[http.Handler] // nil until there is something to serve
}

const (
	headerTimeout = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
	// spareTime is how much longer than a request's own limit its connection may take, so that the limit's answer still gets out.
	spareTime = 15 * time.Second
)

// New reads the files that the configuration names and opens the listeners. Run serves them, and must be called.
func New(ctx context.Context, cfg *Config, opts Options, log *slog.Logger) (*App, error) {
	a := &App{
		cfg: cfg, opts: opts, log: log, registry: prometheus.NewRegistry(), signers: map[string]signers{},
		readiness: newReadiness(), ready: make(chan struct{}),
	}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := a.readCredentials(); err != nil {
		return nil, err
	}
	a.server = &http.Server{
		Handler: a.gate(), ReadHeaderTimeout: headerTimeout, ReadTimeout: cfg.RequestTimeout + spareTime,
		WriteTimeout: cfg.RequestTimeout + spareTime, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	if cfg.TLS.Enabled() {
		certificate, err := openCertificate(cfg.TLS, log)
		if err != nil {
			return nil, err
		}
		a.server.TLSConfig = &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: certificate.get}
	}
	for _, address := range cfg.Listen {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
		if errors.Is(err, syscall.EADDRINUSE) {
			err = fmt.Errorf("another program listens at %s already; stop it, or choose another address with --listen", address)
		}
		if err != nil {
			a.closeListeners()
			return nil, fmt.Errorf("listen: %w", err)
		}
		a.listeners = append(a.listeners, l)
	}
	return a, nil
}

func (a *App) closeListeners() {
	for _, l := range a.listeners {
		_ = l.Close()
	}
}

// readCredentials opens the keystores and reads who may use the service.
func (a *App) readCredentials() error {
	for _, c := range a.cfg.Chains {
		for _, k := range c.Keys {
			if k.Remote != "" { // it need not be there yet
				continue
			}
			if err := a.openKeys(c.Name, k); err != nil {
				return err
			}
		}
	}
	if a.cfg.Auth.UsersFile != "" {
		users, err := auth.NewUsers(a.cfg.Auth.UsersFile)
		if err != nil {
			return err
		}
		a.auth = append(a.auth, users)
	}
	if a.cfg.Auth.TokensFile != "" {
		tokens, err := auth.NewTokens(a.cfg.Auth.TokensFile)
		if err != nil {
			return err
		}
		a.auth = append(a.auth, tokens)
	}
	return nil
}

// URLs are the addresses that the service listens at, the first one as clients on this machine would write it.
func (a *App) URLs() []string {
	scheme := "http"
	if a.cfg.TLS.Enabled() {
		scheme = "https"
	}
	var all []string
	for _, l := range a.listeners {
		address := l.Addr().String()
		if host, port, err := net.SplitHostPort(address); err == nil {
			if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
				address = net.JoinHostPort("127.0.0.1", port)
			}
		}
		all = append(all, scheme+"://"+address)
	}
	return all
}

// Ready is closed when the service has become ready for the first time.
func (a *App) Ready() <-chan struct{} { return a.ready }

// Run serves until ctx ends, or until something fails for good. It returns when everything has come to an end.
func (a *App) Run(ctx context.Context) error {
	group, running := errgroup.WithContext(ctx)
	// Those who work for the requests under way go on until these are finished.
	work, stopWork := context.WithCancel(context.WithoutCancel(ctx))
	defer stopWork()
	requests, cutRequests := context.WithCancel(context.WithoutCancel(ctx))
	defer cutRequests()
	a.server.BaseContext = func(net.Listener) context.Context { return requests }
	for _, l := range a.listeners {
		group.Go(func() error {
			serve := a.server.Serve
			if a.server.TLSConfig != nil {
				serve = func(l net.Listener) error { return a.server.ServeTLS(l, "", "") }
			}
			if err := serve(l); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("serve HTTP at %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	s := &service{App: a}
	group.Go(func() error { return s.run(running, work) })
	group.Go(func() error {
		<-running.Done()
		a.log.InfoContext(ctx, "stopping")
		a.readiness.stop()
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), a.cfg.DrainTimeout)
		defer cancel()
		s.closeSockets(limit)
		if err := a.server.Shutdown(limit); err != nil {
			a.log.WarnContext(ctx, "some requests did not finish in time and are cut off", "error", err)
			cutRequests()
			_ = a.server.Close()
		}
		stopWork()
		return nil
	})
	return group.Wait() //nolint:wrapcheck // each part says what it did
}
