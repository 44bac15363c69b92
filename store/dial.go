package store

import (
	"context"
	"net"
	"time"
)

// dialer makes connections on which no wait for the server is endless. lib/pq waits for an answer for as long as the connection seems to stand, whatever
// becomes of the context: a peer that vanished without a word would hold up its users for as long as TCP believes in it.
type dialer struct {
	silence time.Duration // the longest wait for a sign of life of the server
}

// dialLimit is how long connecting may take.
const dialLimit = 10 * time.Second

// Dial implements pq.Dialer.
func (d dialer) Dial(network, address string) (net.Conn, error) {
	return d.DialContext(context.Background(), network, address) //nolint:contextcheck // the interface has none
}

// DialTimeout implements pq.Dialer.
func (d dialer) DialTimeout(network, address string, timeout time.Duration) (net.Conn, error) {
	ctx, stop := context.WithTimeout(context.Background(), timeout)
	defer stop()
	return d.DialContext(ctx, network, address)
}

// DialContext implements pq.DialerContext.
func (d dialer) DialContext(ctx context.Context, network, address string) (net.Conn, error) {
	c, err := (&net.Dialer{Timeout: dialLimit}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what and where
	}
	return &impatientConn{Conn: c, silence: d.silence}, nil
}

// impatientConn fails a read or a write for which nothing happens for a while.
type impatientConn struct {
	net.Conn
	silence time.Duration
}

// Read implements net.Conn.
func (c *impatientConn) Read(b []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err //nolint:wrapcheck // lib/pq adds the context
	}
	return c.Conn.Read(b) //nolint:wrapcheck // callers look for io.EOF
}

// Write implements net.Conn.
func (c *impatientConn) Write(b []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err //nolint:wrapcheck // lib/pq adds the context
	}
	return c.Conn.Write(b) //nolint:wrapcheck // lib/pq adds the context
}
