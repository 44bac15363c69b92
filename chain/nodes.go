package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
)

// setAside is why a node is not trusted, and until when.
type setAside struct {
	reason string
	until  time.Time
	times  int // in a row; the node is left alone longer each time
}

const (
	firstAside   = time.Minute
	longestAside = 30 * time.Minute
)

// Node is one of a chain's nodes as the client sees it.
type Node struct {
	URL    string // without what could be secret
	InUse  bool
	Reason string    // why it is set aside; empty when it is not
	Until  time.Time // when it is tried again, while it is set aside
}

// Nodes lists the chain's nodes in the order of the configuration.
func (c *Client) Nodes() []Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	nodes := make([]Node, len(c.cfg.URLs))
	for i, url := range c.cfg.URLs {
		nodes[i] = Node{URL: redact(url), InUse: c.conn != nil && c.conn.url == url}
		if a := c.aside[url]; time.Now().Before(a.until) {
			nodes[i].Reason, nodes[i].Until = a.reason, a.until
		}
	}
	return nodes
}

// url is the node in use; empty when there is none.
func (c *Client) url() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.conn == nil {
		return ""
	}
	return c.conn.url
}

// distrust sets a node aside for a while: another one is used, as long as there is one, and first of all `instead` unless that is empty. It returns false when the
// node is the only one, or not in use any more.
func (c *Client) distrust(ctx context.Context, url, reason, instead string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.cfg.URLs) < 2 || c.conn == nil || c.conn.url != url {
		return false
	}
	a := c.aside[url]
	if time.Since(a.until) > longestAside {
		a.times = 0
	}
	wait := min(firstAside<<min(a.times, 10), longestAside)
	c.aside[url] = setAside{reason: reason, until: time.Now().Add(wait), times: a.times + 1}
	c.log.WarnContext(ctx, "a node is set aside", "url", redact(url), "reason", reason, "for", wait)
	c.conn.close() // calls under way fail, and are made again
	c.conn = nil
	c.next++
	if i := slices.Index(c.cfg.URLs, instead); i >= 0 {
		c.next = i
	}
	return true
}

// trustedBeside lists the other nodes that are not set aside. A node within the process has none.
func (c *Client) trustedBeside(url string) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var others []string
	for _, other := range c.cfg.URLs {
		if other != url && c.cfg.Attach == nil && !time.Now().Before(c.aside[other].until) {
			others = append(others, other)
		}
	}
	return others
}

// headOf asks a node that is not in use for the number of its newest block, over a connection that is made for this alone. A node of another chain is an error.
func (c *Client) headOf(ctx context.Context, url string) (uint64, error) {
	ctx, stop := context.WithTimeout(ctx, min(c.cfg.CallTimeout, 10*time.Second))
	defer stop()
	conn, err := c.dialOne(ctx, url)
	if err != nil {
		return 0, err
	}
	defer conn.close()
	var number hexutil.Uint64
	if err := conn.rpc.CallContext(ctx, &number, "eth_blockNumber"); err != nil {
		return 0, fmt.Errorf("ask for the newest block: %w", err)
	}
	return uint64(number), nil
}

// dialOrder is the order in which nodes are tried: from the one that is due on, those that are set aside after all others.
func (c *Client) dialOrder() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var trusted, others []string
	for i := range c.cfg.URLs {
		url := c.cfg.URLs[(c.next+i)%len(c.cfg.URLs)]
		if time.Now().Before(c.aside[url].until) {
			others = append(others, url)
		} else {
			trusted = append(trusted, url)
		}
	}
	return append(trusted, others...)
}
