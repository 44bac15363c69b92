package e2e

import (
	"math/rand/v2"
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// faultyProxy stands between two parts of the system and can spoil their connections. (toxiproxy leaves goroutines behind at each cut connection, which
// would hide ours.)
type faultyProxy struct {
	listen            string
	listener          net.Listener
	network, upstream string
	running           sync.WaitGroup

	mu     sync.Mutex
	links  map[*link]bool
	ended  bool
	lag    time.Duration // each piece of data takes up to twice that longer
	silent bool          // what the far side sends is lost; the connections stay
	budget int           // bytes of the far side after which a connection is cut; 0 for none
}

// link is one connection with its continuation.
type link struct {
	near, far net.Conn
	spoilt    bool // something of it was lost
	passed    int
}

// newFaultyProxy starts a proxy to an address of a network, tcp or unix.
func newFaultyProxy(t *testing.T, network, upstream string) *faultyProxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	p := &faultyProxy{listen: l.Addr().String(), listener: l, network: network, upstream: upstream, links: map[*link]bool{}}
	p.running.Go(p.accept)
	t.Cleanup(func() {
		p.listener.Close()
		p.mu.Lock()
		p.ended = true
		p.mu.Unlock()
		p.cut(func(*link) bool { return true })
		p.running.Wait()
	})
	return p
}

func (p *faultyProxy) accept() {
	for {
		near, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() {
			far, err := net.Dial(p.network, p.upstream)
			if err != nil {
				near.Close()
				return
			}
			l := &link{near: near, far: far}
			p.mu.Lock()
			ended := p.ended
			p.links[l] = true
			p.mu.Unlock()
			if ended {
				p.drop(l)
				return
			}
			p.running.Go(func() { p.pass(l, far, near, false) })
			p.pass(l, near, far, true)
		})
	}
}

// pass carries data until the connection ends.
func (p *faultyProxy) pass(l *link, to, from net.Conn, downstream bool) {
	defer p.drop(l)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		p.mu.Lock()
		lag, silent, budget := p.lag, downstream && p.silent, p.budget
		if downstream {
			l.passed += n
			l.spoilt = l.spoilt || silent
			silent = l.spoilt // what comes after a gap is of no use
		}
		passed := l.passed
		p.mu.Unlock()
		if lag > 0 {
			time.Sleep(rand.N(2 * lag)) // what the network would do
		}
		if silent {
			continue
		}
		cut := downstream && budget > 0 && passed > budget
		if cut {
			n /= 2
		}
		if _, err := to.Write(buffer[:n]); err != nil || cut {
			return
		}
	}
}

func (p *faultyProxy) drop(l *link) {
	l.near.Close()
	l.far.Close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// cut ends the connections for which which is true.
func (p *faultyProxy) cut(which func(*link) bool) {
	p.mu.Lock()
	var list []*link
	for l := range p.links {
		if which(l) {
			list = append(list, l)
		}
	}
	p.mu.Unlock()
	for _, l := range list {
		p.drop(l)
	}
}

// delay makes each piece of data take longer, in both directions.
func (p *faultyProxy) delay(lag time.Duration) { p.set(func() { p.lag = lag }) }

// halfOpen keeps the connections, old and new, but lets nothing through of what the far side sends.
func (p *faultyProxy) halfOpen() { p.set(func() { p.silent = true }) }

// cutAfter cuts each connection after so many bytes of what the far side sends: in the middle of something.
func (p *faultyProxy) cutAfter(bytes int) { p.set(func() { p.budget = bytes }) }

// reset breaks all connections without the courtesies.
func (p *faultyProxy) reset() {
	p.cut(func(l *link) bool {
		if tcp, ok := l.near.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		return true
	})
}

// heal lets everything through again. Connections that have lost something end.
func (p *faultyProxy) heal() {
	p.set(func() { p.lag, p.silent, p.budget = 0, false, 0 })
	p.cut(func(l *link) bool { return l.spoilt })
}

func (p *faultyProxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// postgresSocket is where the private server of a URL listens.
func postgresSocket(t *testing.T, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	return filepath.Join(u.Query().Get("host"), ".s.PGSQL."+u.Query().Get("port"))
}
