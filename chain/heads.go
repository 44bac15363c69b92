package chain

import (
	"context"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// headWakeups are the channels of those who wait for new heads.
type headWakeups struct {
	mu      sync.Mutex
	waiting map[chan struct{}]struct{}
	last    announcedHead
}

// announcedHead is what the node says of a new head on its own.
type announcedHead struct {
	Number hexutil.Uint64 `json:"number"`
	Hash   common.Hash    `json:"hash"`
}

func (h *headWakeups) add(c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting == nil {
		h.waiting = map[chan struct{}]struct{}{}
	}
	h.waiting[c] = struct{}{}
}

func (h *headWakeups) remove(c chan struct{}) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.waiting, c)
}

func (h *headWakeups) wake() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.waiting {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

// announced is the head that was announced last, 0 when none was. It tells what is worth asking for, and nothing else.
func (c *Client) announced() (number int64, hash common.Hash) {
	c.heads.mu.Lock()
	defer c.heads.mu.Unlock()
	return int64(c.heads.last.Number), c.heads.last.Hash //nolint:gosec // what makes no sense is no block that anybody waits for
}

// SubscribeHeads returns a channel that receives a signal after each new head, until ctx ends. It only wakes: signals that nobody took in time melt
// into one, and some may be lost with a connection, so whoever waits also polls. Run must be running.
func (c *Client) SubscribeHeads(ctx context.Context) <-chan struct{} {
	wake := make(chan struct{}, 1)
	c.heads.add(wake)
	context.AfterFunc(ctx, func() { c.heads.remove(wake) })
	return wake
}

// Run feeds SubscribeHeads until ctx ends: from the node's own announcements where the connection carries them, and by asking where it does not.
func (c *Client) Run(ctx context.Context) error {
	var last hexutil.Uint64
	for ctx.Err() == nil {
		conn, err := c.connect(ctx)
		if err == nil && conn.websocket {
			c.followHeads(ctx, conn)
		} else if err == nil {
			var head hexutil.Uint64
			if err := c.CallContext(ctx, &head, "eth_blockNumber"); err == nil && head != last {
				last = head
				c.heads.wake()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(c.cfg.PollInterval):
		}
	}
	return nil
}

// followHeads wakes on each newHeads notification until the subscription breaks.
func (c *Client) followHeads(ctx context.Context, conn *connection) {
	heads := make(chan announcedHead, 256)
	sub, err := conn.rpc.EthSubscribe(ctx, heads, "newHeads")
	if err != nil {
		if ctx.Err() == nil {
			c.log.WarnContext(ctx, "subscribe to new heads", "error", err)
			c.heads.wake()
		}
		return
	}
	defer sub.Unsubscribe()
	c.heads.wake() // a head may have come between the last connection and this one
	for {
		select {
		case <-ctx.Done():
			return
		case err := <-sub.Err():
			if ctx.Err() == nil {
				c.log.WarnContext(ctx, "the announcement of new heads broke off", "error", err)
				c.heads.wake()
			}
			return
		case head := <-heads:
			c.heads.mu.Lock()
			c.heads.last = head
			c.heads.mu.Unlock()
			c.heads.wake()
		}
	}
}
