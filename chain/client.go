package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	pactwire "github.com/pactwire/pactwire"
)

// maxResponse bounds one answer of the node, so that a node gone mad cannot take all memory.
const maxResponse = 256 << 20

// Config says how to reach one chain.
type Config struct {
	Name          string
	URLs          []string      // ws(s):// preferred, http(s):// too; the first that answers is used
	Confirmations uint64        // blocks on top of a block before it counts as final for us
	CallTimeout   time.Duration // limit of each single call; 30 s when zero
	PollInterval  time.Duration // how often Run asks for the head when the node cannot tell by itself; 500 ms when zero

	// Attach connects to a node within the process, which URLs then only name: there is no socket in between.
	Attach func() *rpc.Client
}

// Client speaks JSON-RPC to one chain over the first of its nodes that answers, and changes to the next one when that fails.
// It is safe for concurrent use.
type Client struct {
	cfg     Config
	log     *slog.Logger
	chainID *big.Int
	genesis common.Hash
	calls   *callBatcher
	hints   *gasHints
	heads   headWakeups

	mu       sync.Mutex
	conn     *connection   // nil: to be made anew
	next     int           // index of the URL to try next
	dialing  chan struct{} // closed when the dial under way has ended; nil when there is none
	failures int           // dials and calls that failed in a row
	retryAt  time.Time     // no new dial before, after a failure
	lastErr  error
	closed   bool
	aside    map[string]setAside // nodes that are not trusted for a while, by URL
}

// connection is one connection to one node. Only the failure of the current one leads to a new dial.
type connection struct {
	rpc       *rpc.Client
	http      *http.Client // what rpc uses where it speaks HTTP
	url       string
	websocket bool
}

// close ends the connection; over HTTP, calls under way go on.
func (c *connection) close() {
	c.rpc.Close()
	c.http.CloseIdleConnections()
}

// Dial connects to the chain and learns which one it is. It fails when no node answers; call it again later.
func Dial(ctx context.Context, cfg Config, log *slog.Logger) (*Client, error) {
	if len(cfg.URLs) == 0 {
		return nil, fmt.Errorf("dial chain %s: no URL of a node is configured", cfg.Name)
	}
	if cfg.CallTimeout == 0 {
		cfg.CallTimeout = 30 * time.Second
	}
	if cfg.PollInterval == 0 {
		cfg.PollInterval = 500 * time.Millisecond
	}
	c := &Client{cfg: cfg, log: log.With("chain", cfg.Name), aside: map[string]setAside{}}
	c.calls, c.hints = newCallBatcher(c), newGasHints()
	if _, err := c.connect(ctx); err != nil {
		return nil, err
	}
	return c, nil
}

// Close ends the connection; calls under way fail.
func (c *Client) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.conn != nil {
		c.conn.close()
		c.conn = nil
	}
}

// Name is the chain's name in the configuration.
func (c *Client) Name() string { return c.cfg.Name }

// Confirmations is the number of blocks on top of a block before it counts as final for us.
func (c *Client) Confirmations() uint64 { return c.cfg.Confirmations }

// ChainID is the chain's id, as its node told it.
func (c *Client) ChainID() *big.Int { return new(big.Int).Set(c.chainID) }

// Genesis is the hash of the chain's first block.
func (c *Client) Genesis() common.Hash { return c.genesis }

// Header is what is needed of a block's header.
type Header struct {
	Number   uint64
	Hash     common.Hash
	Parent   common.Hash
	Time     uint64   // unix seconds
	BaseFee  *big.Int // nil where the chain has none
	GasLimit uint64
}

// UnmarshalJSON reads a header as eth_getBlockByNumber and newHeads give it.
func (h *Header) UnmarshalJSON(data []byte) error {
	var block struct {
		Number   *hexutil.Uint64 `json:"number"`
		Hash     *common.Hash    `json:"hash"`
		Parent   common.Hash     `json:"parentHash"`
		Time     hexutil.Uint64  `json:"timestamp"`
		BaseFee  *hexutil.Big    `json:"baseFeePerGas"`
		GasLimit hexutil.Uint64  `json:"gasLimit"`
	}
	if err := json.Unmarshal(data, &block); err != nil {
		return err //nolint:wrapcheck // the JSON decoder adds the context
	}
	if block.Number == nil || block.Hash == nil {
		return errors.New("json: a header without number or hash")
	}
	*h = Header{
		Number: uint64(*block.Number), Hash: *block.Hash, Parent: block.Parent, Time: uint64(block.Time),
		BaseFee: (*big.Int)(block.BaseFee), GasLimit: uint64(block.GasLimit),
	}
	return nil
}

// Head returns the header of the newest block.
func (c *Client) Head(ctx context.Context) (Header, error) {
	var head *Header
	if err := c.CallContext(ctx, &head, "eth_getBlockByNumber", "latest", false); err != nil {
		return Header{}, fmt.Errorf("read the chain's head: %w", err)
	}
	if head == nil {
		return Header{}, badUpstream(nil, "The chain's node has no newest block.")
	}
	return *head, nil
}

// CallContext makes one JSON-RPC call. A refusal by the node comes back as it is (rpc.Error); a node out of reach is a
// pactwire.KindUnavailable, and an answer that makes no sense a pactwire.KindBadUpstream.
func (c *Client) CallContext(ctx context.Context, result any, method string, args ...any) error {
	return c.do(ctx, func(ctx context.Context, r *rpc.Client) error { return r.CallContext(ctx, result, method, args...) })
}

// BatchCall makes several calls in one message. An error that concerns only one of them is in its element.
func (c *Client) BatchCall(ctx context.Context, batch []rpc.BatchElem) error {
	if len(batch) == 0 {
		return nil
	}
	return c.do(ctx, func(ctx context.Context, r *rpc.Client) error { return r.BatchCallContext(ctx, batch) })
}

func (c *Client) do(ctx context.Context, call func(context.Context, *rpc.Client) error) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	limited, stop := context.WithTimeout(ctx, c.cfg.CallTimeout)
	defer stop()
	err = call(limited, conn.rpc)
	var refusal rpc.Error
	switch {
	case err == nil:
		c.succeeded()
		return nil
	case errors.As(err, &refusal):
		c.succeeded()
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx) //nolint:wrapcheck // the caller's own end
	case nonsense(err):
		return badUpstream(err, "The chain's node gave an answer that makes no sense.")
	}
	c.failed(ctx, conn, err)
	return unavailable(err)
}

// connect returns the current connection or makes a new one. One dial is under way at a time; after a failure the next one waits
// for the back-off, and callers in between are told at once.
func (c *Client) connect(ctx context.Context) (*connection, error) {
	for {
		c.mu.Lock()
		switch {
		case c.closed:
			c.mu.Unlock()
			return nil, unavailable(rpc.ErrClientQuit)
		case c.conn != nil:
			conn := c.conn
			c.mu.Unlock()
			return conn, nil
		case c.dialing != nil:
			wait := c.dialing
			c.mu.Unlock()
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx) //nolint:wrapcheck // the caller's own end
			case <-wait:
				continue
			}
		case time.Now().Before(c.retryAt):
			err := c.lastErr
			c.mu.Unlock()
			return nil, unavailable(err)
		}
		done := make(chan struct{})
		c.dialing = done
		c.mu.Unlock()

		conn, err := c.dialAny(ctx)

		c.mu.Lock()
		c.dialing = nil
		close(done)
		switch {
		case err != nil && ctx.Err() != nil:
			err = context.Cause(ctx) // says nothing about the node: the next caller may try at once
		case err != nil:
			c.backOff(err)
			err = unavailable(err)
		case c.closed:
			conn.close()
			conn, err = nil, unavailable(rpc.ErrClientQuit)
		default:
			c.conn = conn
		}
		c.mu.Unlock()
		return conn, err
	}
}

// dialAny tries every URL once, beginning with the one that is due; those that are set aside come last.
func (c *Client) dialAny(ctx context.Context) (*connection, error) {
	var failures []error
	for _, url := range c.dialOrder() {
		conn, err := c.dialOne(ctx, url)
		if err == nil {
			c.mu.Lock()
			c.next = slices.Index(c.cfg.URLs, url)
			c.mu.Unlock()
			return conn, nil
		}
		if ctx.Err() != nil {
			return nil, err
		}
		c.log.WarnContext(ctx, "connect to a node", "url", redact(url), "error", err)
		failures = append(failures, err)
	}
	c.mu.Lock()
	c.next++
	c.mu.Unlock()
	return nil, errors.Join(failures...)
}

// dialOne connects to one node and makes sure that it serves the chain that we know.
func (c *Client) dialOne(ctx context.Context, url string) (*connection, error) {
	ctx, stop := context.WithTimeout(ctx, min(c.cfg.CallTimeout, 10*time.Second))
	defer stop()
	conn, err := c.open(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("dial: %w", err)
	}
	if err := c.identify(ctx, conn); err != nil {
		conn.close()
		return nil, err
	}
	return conn, nil
}

// identify makes sure that the node serves the chain that we know. The first one that answers tells which one that is.
func (c *Client) identify(ctx context.Context, conn *connection) error {
	var chainID *hexutil.Big
	var genesis *struct {
		Hash common.Hash `json:"hash"`
	}
	if err := conn.rpc.CallContext(ctx, &chainID, "eth_chainId"); err != nil {
		return fmt.Errorf("ask for the chain id: %w", err)
	}
	if err := conn.rpc.CallContext(ctx, &genesis, "eth_getBlockByNumber", "0x0", false); err != nil {
		return fmt.Errorf("ask for the first block: %w", err)
	}
	if chainID == nil || genesis == nil {
		return errors.New("the node does not know its chain id or its first block")
	}
	if c.chainID == nil {
		c.chainID, c.genesis = chainID.ToInt(), genesis.Hash
	}
	if c.chainID.Cmp(chainID.ToInt()) != 0 || c.genesis != genesis.Hash {
		return fmt.Errorf("the node serves chain id %s with first block %s, but chain id %s with first block %s is meant",
			chainID.ToInt(), genesis.Hash, c.chainID, c.genesis)
	}
	return nil
}

// open makes the connection itself.
func (c *Client) open(ctx context.Context, url string) (*connection, error) {
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, DisableCompression: true, MaxIdleConns: 64, MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute,
	}
	conn := &connection{url: url, http: &http.Client{Transport: boundedTransport{transport}}}
	if c.cfg.Attach != nil {
		conn.rpc = c.cfg.Attach()
	} else {
		var err error
		if conn.rpc, err = rpc.DialOptions(ctx, url, rpc.WithWebsocketMessageSizeLimit(maxResponse), rpc.WithHTTPClient(conn.http)); err != nil {
			return nil, err //nolint:wrapcheck // the caller adds the context
		}
	}
	conn.websocket = conn.rpc.SupportsSubscriptions()
	return conn, nil
}

// succeeded notes that the node answers.
func (c *Client) succeeded() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failures = 0
}

// failed gives up the connection, so that the next call dials the next node.
func (c *Client) failed(ctx context.Context, conn *connection, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn != conn {
		return
	}
	c.log.WarnContext(ctx, "lost the connection to a node", "url", redact(conn.url), "error", err)
	conn.close()
	c.conn = nil
	c.next++
	if c.failures++; c.failures > 1 { // the first failure is followed by a dial at once
		c.backOff(err)
	}
}

// backOff sets the time of the next dial. c.mu is held.
func (c *Client) backOff(err error) {
	c.failures++
	c.lastErr = err
	c.retryAt = time.Now().Add(min(100*time.Millisecond<<min(c.failures, 6), 5*time.Second))
}

// nonsense tells whether err comes from decoding an answer rather than from the way to the node.
func nonsense(err error) bool {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	var refused rpc.HTTPError
	if errors.As(err, &refused) {
		return refused.StatusCode >= 400 && refused.StatusCode < 500 && refused.StatusCode != http.StatusTooManyRequests
	}
	return errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, rpc.ErrNoResult) || errors.Is(err, rpc.ErrMissingBatchResponse) ||
		errors.Is(err, errTooLarge) || strings.HasPrefix(err.Error(), "json: ") || strings.HasPrefix(err.Error(), "invalid character")
}

func unavailable(err error) error {
	return pactwire.Unavailable("chain_unavailable", err, "The chain's node cannot be reached at the moment.")
}

func badUpstream(err error, message string) error {
	return &pactwire.Error{Kind: pactwire.KindBadUpstream, Code: "chain_bad_answer", Message: message, Err: err}
}
