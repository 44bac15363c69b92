package chain

import (
	"context"
	"errors"
	"sync"

	"github.com/ethereum/go-ethereum/rpc"

	pactwire "github.com/pactwire/pactwire"
)

const (
	maxCallBatch    = 50     // calls in one message: larger ones bring no more speed, and let the first wait for the last
	maxCallMessages = 4      // messages under way at once, so that one slow call does not hold up all others
	maxCallQueue    = 20_000 // calls that wait; more are refused, so that a slow node does not fill the memory
)

// callBatcher sends calls that are made at the same time in one message. It never lingers: a call that finds a free place goes out at once, and what
// has gathered while all places were taken goes out together.
type callBatcher struct {
	client *Client

	mu      sync.Mutex
	queue   []*pendingCall
	sending int // messages under way
}

type pendingCall struct {
	ctx    context.Context //nolint:containedctx // it belongs to this one call, which lives no longer
	method string
	args   []any
	result any // written before done is closed
	err    error
	done   chan struct{}
}

func newCallBatcher(c *Client) *callBatcher { return &callBatcher{client: c} }

// do makes one call. result is left alone after do has returned because ctx ended: a call that shares its message decodes into a value of its own.
func (b *callBatcher) do(ctx context.Context, result any, method string, args ...any) error {
	b.mu.Lock()
	if len(b.queue) >= maxCallQueue {
		b.mu.Unlock()
		return unavailable(errors.New("too many calls wait for the node"))
	}
	if b.sending < maxCallMessages { // nothing waits, then
		b.sending++
		b.mu.Unlock()
		defer b.leave(ctx)
		return b.client.CallContext(ctx, result, method, args...)
	}
	call := &pendingCall{ctx: ctx, method: method, args: args, done: make(chan struct{})}
	var raw jsonMessage
	call.result = &raw
	b.queue = append(b.queue, call)
	b.mu.Unlock()
	select {
	case <-ctx.Done():
		return context.Cause(ctx) //nolint:wrapcheck // the caller's own end
	case <-call.done:
	}
	if call.err != nil {
		return call.err
	}
	return raw.decode(result)
}

// leave gives the place of a call that went out alone to what has gathered meanwhile.
func (b *callBatcher) leave(ctx context.Context) {
	b.mu.Lock()
	batch := b.take()
	if len(batch) == 0 {
		b.sending--
	}
	b.mu.Unlock()
	if len(batch) > 0 {
		go b.send(context.WithoutCancel(ctx), batch) // it carries others' calls; each message is limited by CallTimeout
	}
}

// send carries a batch and then what waits to the node, message after message, until nothing waits.
func (b *callBatcher) send(ctx context.Context, batch []*pendingCall) {
	for len(batch) > 0 {
		b.client.sendCalls(ctx, batch)
		b.mu.Lock()
		if batch = b.take(); len(batch) == 0 {
			b.sending--
		}
		b.mu.Unlock()
	}
}

// take removes the next calls from the queue, without those whose callers have gone. b.mu is held.
func (b *callBatcher) take() []*pendingCall {
	var batch []*pendingCall
	i := 0
	for ; i < len(b.queue) && len(batch) < maxCallBatch; i++ {
		if b.queue[i].ctx.Err() == nil {
			batch = append(batch, b.queue[i])
		}
	}
	rest := copy(b.queue, b.queue[i:])
	clear(b.queue[rest:])
	b.queue = b.queue[:rest]
	return batch
}

func (c *Client) sendCalls(ctx context.Context, batch []*pendingCall) {
	if len(batch) == 1 {
		call := batch[0]
		call.err = c.CallContext(ctx, call.result, call.method, call.args...)
		close(call.done)
		return
	}
	elems := make([]rpc.BatchElem, len(batch))
	for i, call := range batch {
		elems[i] = rpc.BatchElem{Method: call.method, Args: call.args, Result: call.result}
	}
	err := c.BatchCall(ctx, elems)
	var refusal rpc.Error
	if errors.As(err, &refusal) || pactwire.KindOf(err) == pactwire.KindBadUpstream {
		// The node refuses the batch as a whole: some take no batches, or only small ones. One by one it may still work.
		for _, call := range batch {
			call.err = c.CallContext(call.ctx, call.result, call.method, call.args...)
			close(call.done)
		}
		return
	}
	for i, call := range batch {
		if call.err = err; err == nil {
			call.err = elems[i].Error
		}
		close(call.done)
	}
}
