package chain

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"
	"time"
)

// nodeProxy stands between a client and a node's HTTP endpoint; it counts, delays and fails.
type nodeProxy struct {
	server *httptest.Server
	calls  atomic.Int64
	delay  atomic.Int64 // nanoseconds
	answer atomic.Int64 // an HTTP status to answer with; 0 passes on
}

func newProxy(t testing.TB, target string) *nodeProxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	forward := httputil.NewSingleHostReverseProxy(u)
	forward.Transport = transport
	p := &nodeProxy{}
	p.server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.calls.Add(1)
		time.Sleep(time.Duration(p.delay.Load()))
		if status := p.answer.Load(); status != 0 {
			http.Error(w, "", int(status))
			return
		}
		forward.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		p.server.Close()
		transport.CloseIdleConnections()
	})
	return p
}
