package devnet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/eth"
	"github.com/ethereum/go-ethereum/eth/filters"
	"github.com/ethereum/go-ethereum/node"
	"github.com/ethereum/go-ethereum/rlp"
	"github.com/ethereum/go-ethereum/rpc"
)

// ChainConfig says where the dev chain keeps its data and where it listens.
type ChainConfig struct {
	Dir    string // the chain's folder, made when missing; empty keeps the chain in memory
	Listen string // host:port of the JSON-RPC endpoint, HTTP and WebSocket; port 0 takes a free one
	Manual bool   // blocks are made by Mine only; for tests
}

// Chain is a running dev chain: one block for what waits, as soon as something waits.
type Chain struct {
	log     *slog.Logger
	node    *node.Node
	eth     *eth.Ethereum
	durable bool
	auto    atomic.Bool

	sealing sync.Mutex    // one block or fork at a time
	busy    time.Duration // how long the newest block took, if it held several transactions; the sealer's alone
	wake    chan struct{}
	cancel  context.CancelFunc
	loops   sync.WaitGroup
	stop    sync.Once
	stopErr error
}

// StartChain starts the dev chain, continuing the one that the folder holds, and returns when its endpoint is open.
func StartChain(ctx context.Context, cfg ChainConfig, log *slog.Logger) (*Chain, error) {
	host, port, err := splitListen(ctx, cfg.Listen)
	if err != nil {
		return nil, err
	}
	logBridge(log)
	settings, err := ethConfig(cfg.Dir != "")
	if err != nil {
		return nil, err
	}
	if cfg.Dir != "" {
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the chain's folder: %w", err)
		}
	}
	journal := readJournal(cfg.Dir)
	stack, err := node.New(nodeConfig(cfg.Dir, host, port))
	if errors.Is(err, node.ErrDatadirUsed) {
		return nil, fmt.Errorf("%s: %w (choose another one with --data-dir)", cfg.Dir, ErrFolderInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("set up the dev chain's node: %w", err)
	}
	c := &Chain{log: log, node: stack, durable: cfg.Dir != "", wake: make(chan struct{}, 1)}
	if err := c.start(settings, journal, !cfg.Manual); err != nil {
		_ = stack.Close()
		if errors.Is(err, syscall.EADDRINUSE) {
			return nil, portBusy(cfg.Listen, err)
		}
		return nil, err
	}
	return c, nil
}

func (c *Chain) start(settings *eth.Config, journal []*types.Transaction, auto bool) error {
	var err error
	if c.eth, err = eth.New(c.node, settings); err != nil {
		return fmt.Errorf("open the dev chain: %w", err)
	}
	system := filters.NewFilterSystem(c.eth.APIBackend, filters.Config{LogCacheSize: settings.FilterLogCacheSize, LogQueryLimit: settings.LogQueryLimit})
	c.node.RegisterAPIs([]rpc.API{{Namespace: "eth", Service: filters.NewFilterAPI(system)}})
	if err := c.node.Start(); err != nil {
		return fmt.Errorf("start the dev chain: %w", err)
	}
	c.eth.SetSynced() // there is nobody to learn blocks from
	if c.eth.BlockChain().CurrentBlock().Number.Sign() == 0 {
		// Until block 1 exists a node answers "transaction indexing is in progress" to every question for a receipt.
		c.Mine()
	}
	// Unlike the node itself, which waits ten seconds with what was accepted but not mined when the last run ended.
	again := 0
	for _, err := range c.eth.TxPool().Add(journal, true) {
		if err == nil { // most are mined by now, and refused
			again++
		}
	}
	if again > 0 {
		c.log.Debug("transactions that the last run left unmined wait again", "count", again)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	c.auto.Store(auto)
	c.startSealing(ctx)
	return nil
}

// readJournal reads the transactions that the last run accepted. A kill may have cut the last one short.
func readJournal(dir string) []*types.Transaction {
	if dir == "" {
		return nil
	}
	file, err := os.Open(filepath.Join(dir, instanceName, journalName))
	if err != nil {
		return nil
	}
	defer file.Close()
	var journal []*types.Transaction
	stream := rlp.NewStream(file, 0)
	for {
		tx := new(types.Transaction)
		if stream.Decode(tx) != nil {
			return journal
		}
		journal = append(journal, tx)
	}
}

// splitListen checks the address before anything else is opened, so that a busy port is the first thing said.
func splitListen(ctx context.Context, listen string) (host string, port int, err error) {
	host, text, err := net.SplitHostPort(listen)
	if err != nil {
		return "", 0, fmt.Errorf("read --rpc-listen %q: want host:port, such as 127.0.0.1:8545: %w", listen, err)
	}
	if port, err = strconv.Atoi(text); err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("read --rpc-listen %q: the port must be a number from 0 to 65535", listen)
	}
	if host == "" {
		host = "0.0.0.0"
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", listen)
	if errors.Is(err, syscall.EADDRINUSE) {
		return "", 0, portBusy(listen, err)
	}
	if err != nil {
		return "", 0, fmt.Errorf("listen at --rpc-listen %s: %w", listen, err)
	}
	_ = listener.Close()
	return host, port, nil
}

func portBusy(listen string, err error) error {
	return fmt.Errorf("another program listens at %s already: stop it, or choose another address for the dev chain with --rpc-listen (such as --rpc-listen 127.0.0.1:0 for any free port): %w", listen, err)
}

// HTTPURL is the address of the JSON-RPC endpoint over HTTP.
func (c *Chain) HTTPURL() string { return c.node.HTTPEndpoint() }

// WSURL is the address of the JSON-RPC endpoint over WebSocket; the port is the same.
func (c *Chain) WSURL() string { return c.node.WSEndpoint() }

// Attach connects to the chain within the process.
func (c *Chain) Attach() *rpc.Client { return c.node.Attach() }

// Stop ends the chain; stopping twice is fine.
func (c *Chain) Stop() error {
	c.stop.Do(func() {
		c.cancel()
		c.loops.Wait()
		c.sealing.Lock()
		defer c.sealing.Unlock()
		c.stopErr = c.node.Close()
	})
	return c.stopErr
}
