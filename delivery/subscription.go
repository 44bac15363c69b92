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

// TransportWebSockets is the name of the one transport that is served.
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
	s, options, err := r.check()
	if err != nil {
		return store.Subscription{}, err
	}
	err = m.db.CreateSubscription(ctx, &s, firstEvent(options))
	return s, err
}

// Put makes a durable subscription, or changes the one with that name. The position of an existing one never moves, so its firstEvent stays as
// it was. It returns whether it was made.
func (m *Manager) Put(ctx context.Context, r SubscriptionRequest) (store.Subscription, bool, error) {
	s, options, err := r.check()
	if err != nil {
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
func (r SubscriptionRequest) check() (store.Subscription, Options, error) {
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
	case TransportWebSockets:
	case "webhooks":
		return fail(pactwire.Invalid("transport", "webhooks are not offered; use websockets"))
	default:
		return fail(pactwire.Invalid("transport", "must be websockets"))
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
	return store.Subscription{Namespace: r.Namespace, Name: r.Name, Transport: r.Transport, Filter: mustMarshal(filter)}, options, nil
}

// mustMarshal encodes values that always can be.
func mustMarshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err)) // structs of strings, numbers and booleans
	}
	return b
}
