package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// TransportWebSockets is the name of the transport over connections that the application opens: WebSockets, and streams of server-sent events.
const TransportWebSockets = "websockets"

// SubscriptionRequest describes a durable subscription to be made or changed.
type SubscriptionRequest struct {
	Namespace string
	Name      string
	Transport string          // websockets when empty
	Filter    json.RawMessage // as the client wrote it; may be empty
	Options   json.RawMessage // as the client wrote it; may be empty
}

var goodName = regexp.MustCompile(`^[0-9a-zA-Z]([0-9a-zA-Z._-]{0,62}[0-9a-zA-Z])?$`)

// Create makes a durable subscription.
func (m *Manager) Create(ctx context.Context, r SubscriptionRequest) (store.Subscription, error) {
	s, options, err := m.check(r)
	if err == nil {
		err = options.unmask(Options{})
	}
	if err == nil {
		err = options.checkTransport(s.Transport)
	}
	if err != nil {
		return store.Subscription{}, err
	}
	err = m.db.CreateSubscription(ctx, &s, firstEvent(options))
	return s, err
}

// Put makes a durable subscription, or changes the one with that name. The position of an existing one never moves, so its firstEvent stays as
// it was. It returns whether it was made.
func (m *Manager) Put(ctx context.Context, r SubscriptionRequest) (store.Subscription, bool, error) {
	s, options, err := m.check(r)
	if err != nil {
		return store.Subscription{}, false, err
	}
	// What is masked is taken from what is there. Should somebody change that in between, the older secret is kept: no worse than changing it a moment later.
	var before Options
	old, err := m.db.Subscription(ctx, r.Namespace, r.Name)
	if err == nil {
		_ = json.Unmarshal(old.Options, &before) //nolint:errchkjson // read as far as it can be
	} else if !gone(err) {
		return store.Subscription{}, false, err //nolint:wrapcheck // the store has said what it was doing
	}
	if err := options.unmask(before); err != nil {
		return store.Subscription{}, false, err
	}
	if err := options.checkTransport(s.Transport); err != nil {
		return store.Subscription{}, false, err
	}
	created, err := m.db.UpsertSubscription(ctx, &s, firstEvent(options), func(old json.RawMessage) json.RawMessage {
		var kept Options
		if err := json.Unmarshal(old, &kept); err == nil {
			options.FirstEvent = kept.FirstEvent
		}
		resolved, _ := options.Resolve(0)
		return mustMarshal(resolved)
	})
	return s, created, err
}

func firstEvent(options Options) store.FirstEvent {
	return func(head int64) (json.RawMessage, int64) {
		resolved, position := options.Resolve(head)
		return mustMarshal(resolved), position
	}
}

// check validates a request. The options are returned unresolved.
func (m *Manager) check(r SubscriptionRequest) (store.Subscription, Options, error) {
	fail := func(err error) (store.Subscription, Options, error) { return store.Subscription{}, Options{}, err }
	if !goodName.MatchString(r.Name) {
		return fail(pactwire.Invalid("name", "must be 1 to 64 letters, digits, dots, underscores or hyphens, and begin and end with a letter or digit"))
	}
	if _, err := uuid.Parse(r.Name); err == nil {
		return fail(pactwire.Invalid("name", "must not look like an id"))
	}
	switch r.Transport {
	case "":
		r.Transport = TransportWebSockets
	case TransportWebSockets, TransportWebhooks:
	default:
		return fail(pactwire.Invalid("transport", "must be websockets or webhooks"))
	}
	filter, err := ParseFilter(r.Filter)
	if err != nil {
		return fail(err)
	}
	if _, err := filter.Compile(); err != nil {
		return fail(err)
	}
	options, err := ParseOptions(r.Options)
	if err != nil {
		return fail(err)
	}
	if options.Webhook != nil && options.URL != "" && m.cfg.CheckURL != nil {
		if err := m.cfg.CheckURL(options.URL); err != nil {
			return fail(err)
		}
	}
	return store.Subscription{Namespace: r.Namespace, Name: r.Name, Transport: r.Transport, Filter: mustMarshal(filter)}, options, nil
}

// checkTransport tells whether the options go with the transport.
func (o *Options) checkTransport(transport string) error {
	switch {
	case transport == TransportWebhooks && o.Webhook == nil:
		return pactwire.Invalid("options.url", "is required for webhooks")
	case transport == TransportWebhooks:
		return o.Webhook.check()
	case o.Webhook != nil && (o.URL != "" || o.SigningSecret != "" || o.Retry != nil || len(o.Headers) > 0):
		return pactwire.Invalid("transport", "must be webhooks: the options have a url or others that belong to it")
	}
	o.Webhook = nil // it only said which of FireFly's options it does not want
	return nil
}

// StoredOptions reads the options of a subscription.
func StoredOptions(sub store.Subscription) (Options, error) {
	var o Options
	if err := json.Unmarshal(sub.Options, &o); err != nil {
		return o, fmt.Errorf("read the options of subscription %s: %w", sub.Name, err)
	}
	return o, nil
}

// mustMarshal encodes values that always can be.
func mustMarshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // structs of strings, numbers and booleans
	}
	return b
}
