package ws

import (
	"bufio"
	"net"
	"net/http"
	"sync"
	"time"
)

// burstConn gathers the frames of a burst into few writes to the socket. Outside of a burst it passes everything through.
type burstConn struct {
	net.Conn

	mu      sync.Mutex
	holding bool
	held    *[]byte
	limit   time.Time // until when the burst must be written
}

// flushSize is how much of a burst is gathered at most.
const flushSize = 64 << 10

var heldBuffers = sync.Pool{New: func() any { b := make([]byte, 0, flushSize+4<<10); return &b }}

// hold begins a burst: what is written is gathered.
func (c *burstConn) hold(deadline time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.holding, c.limit = true, deadline
	c.held = heldBuffers.Get().(*[]byte) //nolint:forcetypeassert // nothing else is in the pool
}

// release ends the burst: what was gathered is written.
func (c *burstConn) release() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.flush()
	heldBuffers.Put(c.held)
	c.holding, c.held = false, nil
	return err
}

func (c *burstConn) flush() error {
	if len(*c.held) == 0 {
		return nil
	}
	_ = c.Conn.SetWriteDeadline(c.limit) // a connection that cannot take it fails in Write as well
	_, err := c.Conn.Write(*c.held)
	*c.held = (*c.held)[:0]
	return err //nolint:wrapcheck // a net.Conn's errors are its own
}

// Write implements net.Conn.
func (c *burstConn) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.holding {
		return c.Conn.Write(p) //nolint:wrapcheck // a net.Conn's errors are its own
	}
	if len(*c.held)+len(p) > flushSize {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	if len(p) > flushSize {
		_ = c.Conn.SetWriteDeadline(c.limit)
		return c.Conn.Write(p) //nolint:wrapcheck // a net.Conn's errors are its own
	}
	*c.held = append(*c.held, p...)
	return len(p), nil
}

// SetWriteDeadline implements net.Conn. Within a burst, the burst's own counts.
func (c *burstConn) SetWriteDeadline(t time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holding {
		return nil
	}
	return c.Conn.SetWriteDeadline(t) //nolint:wrapcheck // a net.Conn's errors are its own
}

// hijacker gives the upgrade a burstConn in place of the connection.
type hijacker struct {
	http.ResponseWriter
	conn *burstConn
}

// Hijack implements http.Hijacker.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // the upgrade reports it
	}
	h.conn = &burstConn{Conn: conn}
	return h.conn, rw, nil
}
