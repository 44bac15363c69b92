package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/delivery"
)

// message is what is posted.
type message struct {
	id   string
	body []byte
}

// pack makes the message of a delivery: the event itself, or in a batch the list of them.
func pack(p delivery.Push) message {
	if !p.Options.Batch {
		return message{p.Events[0].ID.String(), p.Events[0].Body}
	}
	size := 2
	for i := range p.Events {
		size += len(p.Events[i].Body) + 1
	}
	m := message{body: make([]byte, 0, size)}
	ids := make([]byte, 0, 16*len(p.Events))
	for i := range p.Events {
		m.body = append(m.body, "[,"[min(i, 1)])
		m.body = append(m.body, p.Events[i].Body...)
		ids = append(ids, p.Events[i].ID[:]...)
	}
	m.body = append(m.body, ']')
	// The same events have the same id, in whichever process and however often they are posted.
	m.id = uuid.NewSHA1(p.Subscription.ID, ids).String()
	return m
}

// answer is what came of a request.
type answer struct {
	status int           // 0: there was no answer
	reason string        // why it failed; empty when it did not. It is for clients: it holds neither path nor query of the address
	after  time.Duration // what the receiver asks to wait
}

// maxAnswer is how much of an answer is read, so that its connection can be used again; the rest is not waited for.
const maxAnswer = 64 << 10

// post sends a message once.
func (s *Server) post(ctx context.Context, w *delivery.Webhook, m message) answer {
	ctx, cancel := context.WithTimeout(ctx, w.Timeout())
	defer cancel()
	r, err := s.request(ctx, w, m)
	if err != nil {
		return answer{reason: "the request cannot be made: " + err.Error()}
	}
	began := time.Now()
	response, err := s.client.Do(r)
	s.metrics.duration.Observe(time.Since(began).Seconds())
	if err != nil {
		s.metrics.requests.WithLabelValues("failed").Inc()
		return answer{reason: failure(ctx, err, w.Timeout())}
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, maxAnswer)) // the status has been read: that is the answer
	s.metrics.requests.WithLabelValues(fmt.Sprintf("%dxx", response.StatusCode/100)).Inc()
	a := answer{status: response.StatusCode, after: retryAfter(response.Header, time.Now())}
	switch response.StatusCode / 100 {
	case 2:
	case 3:
		a.reason = fmt.Sprintf("answered %s; redirects are not followed", statusText(response.StatusCode))
	default:
		a.reason = "answered " + statusText(response.StatusCode)
	}
	return a
}

func statusText(status int) string { return fmt.Sprintf("%d %s", status, http.StatusText(status)) }

func (s *Server) request(ctx context.Context, w *delivery.Webhook, m message) (*http.Request, error) {
	u, err := url.Parse(w.URL)
	if err != nil {
		return nil, errors.New("the address cannot be read")
	}
	if len(w.Query) > 0 {
		query := u.Query()
		for name, value := range w.Query {
			query.Set(name, value)
		}
		u.RawQuery = query.Encode()
	}
	method := w.Method
	if method == "" {
		method = http.MethodPost
	}
	r, err := http.NewRequestWithContext(ctx, method, u.String(), bytes.NewReader(m.body))
	if err != nil {
		return nil, errors.New("the address cannot be used")
	}
	r.Header.Set("User-Agent", "Pactwire")
	for name, value := range w.Headers {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	now := time.Now()
	r.Header.Set("webhook-id", m.id)
	r.Header.Set("webhook-timestamp", fmt.Sprint(now.Unix()))
	secrets, err := w.Secrets()
	if err != nil {
		return nil, errors.New("the signing secret cannot be read")
	}
	if len(secrets) > 0 {
		r.Header.Set("webhook-signature", sign(secrets, m.id, now, m.body))
	}
	return r, nil
}

// failure words an error of the HTTP client without the address, which may hold secrets.
func failure(ctx context.Context, err error, limit time.Duration) string {
	var private *refused
	var lookup *net.DNSError
	var certificate *tls.CertificateVerificationError
	var unknown x509.UnknownAuthorityError
	var operation *net.OpError
	switch {
	case errors.As(err, &private):
		return private.Error()
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Sprintf("there was no answer within %s", limit)
	case errors.As(err, &lookup):
		return "the host's name cannot be resolved"
	case errors.As(err, &certificate), errors.As(err, &unknown):
		return "the receiver's certificate is not trusted"
	case errors.As(err, &operation) && operation.Op == "dial":
		return "the receiver cannot be reached: " + operation.Err.Error()
	case errors.Is(err, io.EOF), errors.As(err, &operation):
		return "the connection broke before the answer"
	}
	return "the request failed"
}
