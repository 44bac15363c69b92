package delivery

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	pactwire "github.com/pactwire/pactwire"
)

// TransportWebhooks is the name of the transport that posts events to a URL.
const TransportWebhooks = "webhooks"

// Webhook says where and how events are posted.
type Webhook struct {
	URL           string            `json:"url,omitempty"`
	Method        string            `json:"method,omitempty"` // POST, PUT or PATCH
	Headers       map[string]string `json:"headers,omitempty"`
	Query         map[string]string `json:"query,omitempty"` // added to the URL
	Retry         *Retry            `json:"retry,omitempty"`
	HTTP          *HTTPOptions      `json:"httpOptions,omitempty"`
	SigningSecret string            `json:"signingSecret,omitempty"` // whsec_…; several separated by spaces while they are rotated
}

// Retry says how often a delivery is tried.
type Retry struct {
	Enabled      *bool  `json:"enabled,omitempty"` // true unless it is false
	Count        *int   `json:"count,omitempty"`   // tries after the first one
	InitialDelay string `json:"initialDelay,omitempty"`
	MaxDelay     string `json:"maxDelay,omitempty"`
}

// HTTPOptions bound a request.
type HTTPOptions struct {
	RequestTimeout string `json:"requestTimeout,omitempty"`
}

// What holds where a subscription says nothing.
const (
	defaultRetries      = 10
	defaultInitialDelay = time.Second
	defaultMaxDelay     = 5 * time.Minute
	defaultTimeout      = 30 * time.Second

	maxRetries = 1000
	maxDelay   = 24 * time.Hour
	maxTimeout = 10 * time.Minute
	maxURL     = 2048
	maxPairs   = 64   // headers, and parameters
	maxValue   = 4096 // bytes of a header or a parameter
	maxSecrets = 8
)

// Masked stands for a secret in answers. In a change it means "as it was".
const Masked = "********"

// webhookOptions are the options that belong to webhooks. Those behind the first webhookOffered are FireFly's, for what is not offered here: they may say so.
var webhookOptions = []string{
	"url", "method", "headers", "query", "retry", "httpOptions", "signingSecret",
	"fastack", "json", "input", "reply", "replytag", "replytx", "tlsConfigName",
}

const webhookOffered = 7

func (w *Webhook) set(name string, value json.RawMessage) error {
	path := "options." + name
	switch name {
	case "url":
		return readText(path, value, &w.URL)
	case "method":
		return readText(path, value, &w.Method)
	case "headers":
		return readPairs(path, value, &w.Headers)
	case "query":
		return readPairs(path, value, &w.Query)
	case "retry":
		w.Retry = &Retry{}
		return w.Retry.read(path, value)
	case "httpOptions":
		w.HTTP = &HTTPOptions{}
		return w.HTTP.read(path, value)
	case "signingSecret":
		return readText(path, value, &w.SigningSecret)
	case "fastack":
		if string(value) != "false" {
			return pactwire.Invalid(path, "is not offered: events that are acknowledged before they are delivered get lost")
		}
		return nil
	case "json":
		return nil // how the answer is read, for replies
	}
	if s := string(value); s != "false" && s != `""` && s != "{}" {
		return pactwire.Invalid(path, "is not offered")
	}
	return nil
}

func readText(path string, value json.RawMessage, into *string) error {
	if err := json.Unmarshal(value, into); err != nil {
		return pactwire.Invalid(path, "must be a string")
	}
	return nil
}

// readPairs reads an object of strings; numbers and booleans count as what they look like.
func readPairs(path string, value json.RawMessage, into *map[string]string) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return pactwire.Invalid(path, "must be an object of strings")
	}
	if len(fields) > maxPairs {
		return pactwire.Invalid(path, "must have at most %d entries", maxPairs)
	}
	*into = map[string]string{}
	for name, raw := range fields {
		text := string(raw)
		switch raw[0] {
		case '"':
			if err := json.Unmarshal(raw, &text); err != nil {
				return pactwire.Invalid(path+"."+name, "is not a string")
			}
		case '{', '[', 'n':
			return pactwire.Invalid(path+"."+name, "must be a string")
		}
		if name == "" || len(name)+len(text) > maxValue {
			return pactwire.Invalid(path, "must have names, and at most %d bytes an entry", maxValue)
		}
		(*into)[name] = text
	}
	return nil
}

func (r *Retry) read(path string, value json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return pactwire.Invalid(path, "must be an object")
	}
	for name, raw := range fields {
		at := path + "." + name
		var err error
		switch name {
		case "enabled":
			r.Enabled = new(bool)
			if json.Unmarshal(raw, r.Enabled) != nil {
				err = pactwire.Invalid(at, "must be true or false")
			}
		case "count":
			r.Count = new(int)
			if json.Unmarshal(raw, r.Count) != nil || *r.Count < 0 || *r.Count > maxRetries {
				err = pactwire.Invalid(at, "must be an integer from 0 to %d", maxRetries)
			}
		case "initialDelay", "initDelay":
			_, err = readDuration(at, raw, time.Millisecond, maxDelay, &r.InitialDelay)
		case "maxDelay", "maximumDelay":
			_, err = readDuration(at, raw, time.Millisecond, maxDelay, &r.MaxDelay)
		default:
			err = pactwire.Invalid(at, "is not known; there are enabled, count, initialDelay and maxDelay")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (h *HTTPOptions) read(path string, value json.RawMessage) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(value, &fields); err != nil {
		return pactwire.Invalid(path, "must be an object")
	}
	for name, raw := range fields {
		if name != "requestTimeout" {
			return pactwire.Invalid(path+"."+name, "is not offered; there is requestTimeout")
		}
		if _, err := readDuration(path+"."+name, raw, time.Millisecond, maxTimeout, &h.RequestTimeout); err != nil {
			return err
		}
	}
	return nil
}

var goodHeader = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// ownHeaders are set by the service, or by HTTP itself.
var ownHeaders = []string{
	"host", "content-length", "content-type", "content-encoding", "transfer-encoding", "connection", "keep-alive", "te", "trailer", "upgrade", "expect",
	"webhook-id", "webhook-timestamp", "webhook-signature",
}

// check validates what set has read, once all of it is there.
func (w *Webhook) check() error {
	if w.URL == "" {
		return pactwire.Invalid("options.url", "is required for webhooks")
	}
	u, err := url.Parse(w.URL)
	switch {
	case len(w.URL) > maxURL, err != nil, u.Host == "", u.Hostname() == "", u.Opaque != "", u.Scheme != "http" && u.Scheme != "https":
		return pactwire.Invalid("options.url", "must be an http or https address of at most %d characters", maxURL)
	case u.User != nil:
		return pactwire.Invalid("options.url", "must not hold credentials: options.headers takes an Authorization")
	case u.Fragment != "":
		return pactwire.Invalid("options.url", "must not have a fragment")
	}
	if w.Method != "" && !slices.Contains([]string{"POST", "PUT", "PATCH"}, w.Method) {
		return pactwire.Invalid("options.method", "must be POST, PUT or PATCH")
	}
	for name, value := range w.Headers {
		switch {
		case !goodHeader.MatchString(name):
			return pactwire.Invalid("options.headers", "%q is no name of a header", name)
		case slices.Contains(ownHeaders, strings.ToLower(name)):
			return pactwire.Invalid("options.headers."+name, "is set by the service")
		case strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
			return pactwire.Invalid("options.headers."+name, "must not hold control characters")
		}
	}
	if r := w.Retry; r != nil {
		if first, most := w.Delays(); first > most {
			return pactwire.Invalid("options.retry.initialDelay", "must not be above maxDelay, %s", most)
		}
	}
	secrets, err := w.Secrets()
	if err != nil {
		return err
	}
	if len(secrets) > maxSecrets {
		return pactwire.Invalid("options.signingSecret", "must be at most %d secrets", maxSecrets)
	}
	return nil
}

// Tries is how often a delivery is tried in all.
func (w *Webhook) Tries() int {
	switch r := w.Retry; {
	case r != nil && r.Enabled != nil && !*r.Enabled:
		return 1
	case r != nil && r.Count != nil:
		return 1 + *r.Count
	}
	return 1 + defaultRetries
}

// Delays are the pause after the first failure, and the longest pause.
func (w *Webhook) Delays() (first, most time.Duration) {
	first, most = defaultInitialDelay, defaultMaxDelay
	if w.Retry != nil {
		first, most = duration(w.Retry.InitialDelay, first), duration(w.Retry.MaxDelay, most)
		if w.Retry.MaxDelay == "" {
			most = max(first, most)
		}
	}
	return first, most
}

// Timeout is how long one request may take.
func (w *Webhook) Timeout() time.Duration {
	if w.HTTP == nil {
		return defaultTimeout
	}
	return duration(w.HTTP.RequestTimeout, defaultTimeout)
}

func duration(text string, otherwise time.Duration) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	return otherwise
}

// SecretPrefix begins every signing secret (Standard Webhooks 1.0).
const SecretPrefix = "whsec_"

// Secrets are the keys to sign with, the one to be used from now on first.
func (w *Webhook) Secrets() ([][]byte, error) {
	const least, most = 24, 64 // bytes; the specification's
	var keys [][]byte
	for _, text := range strings.Fields(w.SigningSecret) {
		encoded, ok := strings.CutPrefix(text, SecretPrefix)
		key, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			key, err = base64.RawStdEncoding.DecodeString(encoded)
		}
		if !ok || err != nil || len(key) < least || len(key) > most {
			return nil, pactwire.Invalid("options.signingSecret", "must be %s and %d to %d random bytes in base64; several, the newest first, are separated by spaces",
				SecretPrefix, least, most)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

var secretName = regexp.MustCompile(`(?i)auth|cookie|key|passw|secret|signature|token|credential`)

// Redacted is the options as they are answered: secrets, and headers and parameters whose names say that they are some, are masked.
func (o Options) Redacted() Options {
	if o.Webhook == nil {
		return o
	}
	w := *o.Webhook
	if w.SigningSecret != "" {
		w.SigningSecret = Masked
	}
	w.Headers, w.Query = masked(w.Headers), masked(w.Query)
	o.Webhook = &w
	return o
}

func masked(pairs map[string]string) map[string]string {
	out := make(map[string]string, len(pairs))
	for name, value := range pairs {
		if secretName.MatchString(name) {
			value = Masked
		}
		out[name] = value
	}
	return out
}

// unmask puts the secrets of old where o has masks. It fails where there is none.
func (o *Options) unmask(old Options) error {
	if o.Webhook == nil {
		return nil
	}
	before := &Webhook{}
	if old.Webhook != nil {
		before = old.Webhook
	}
	missing := func(path string) error {
		return pactwire.Invalid(path, "stands for a secret that was given before, and there is none")
	}
	if o.SigningSecret == Masked {
		if o.SigningSecret = before.SigningSecret; o.SigningSecret == "" {
			return missing("options.signingSecret")
		}
	}
	for _, p := range []struct {
		path     string
		now, old map[string]string
	}{{"options.headers.", o.Headers, before.Headers}, {"options.query.", o.Query, before.Query}} {
		for name, value := range p.now {
			if value == Masked && secretName.MatchString(name) {
				kept, ok := p.old[name]
				if !ok {
					return missing(p.path + name)
				}
				p.now[name] = kept
			}
		}
	}
	return nil
}

// RedactedURL is where events are posted, for logs: without path and query, which may hold secrets.
func (w *Webhook) RedactedURL() string {
	u, err := url.Parse(w.URL)
	if err != nil {
		return strconv.Quote(Masked)
	}
	return u.Scheme + "://" + u.Host
}
