package chain

import (
	"errors"
	"io"
	"net/http"
	"net/url"
)

var errTooLarge = errors.New("the node's answer is larger than allowed")

// boundedTransport limits the size of HTTP answers; go-ethereum's client reads them to their end, however far that is.
type boundedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil {
		return nil, err //nolint:wrapcheck // http.Client adds the context
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxResponse}
	return resp, nil
}

// CloseIdleConnections lets http.Client.CloseIdleConnections reach the transport below.
func (t boundedTransport) CloseIdleConnections() {
	if c, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		c.CloseIdleConnections()
	}
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err //nolint:wrapcheck // io.EOF must stay bare
}

// redact leaves of a node's URL what may stand in a log: the rest often holds a password or an access key.
func redact(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		return "(a URL that does not parse)"
	}
	return u.Scheme + "://" + u.Host
}
