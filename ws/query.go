package ws

import (
	"net/url"
	"strings"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
)

// parseQuery reads the parameters of a connection's address. starts tells whether they start a subscription.
func parseQuery(query url.Values, fixedNamespace string) (r delivery.StartRequest, starts bool, err error) {
	r = delivery.StartRequest{
		Namespace: query.Get("namespace"), Name: query.Get("name"), Ephemeral: flag(query, "ephemeral"), AutoAck: flag(query, "autoack"),
	}
	if r.Namespace, err = settleNamespace(r.Namespace, fixedNamespace); err != nil {
		return r, false, err
	}
	filter := map[string]*string{
		"events": &r.Filter.Events, "topic": &r.Filter.Topic, "topics": &r.Filter.Topic,
		"message.author": &r.Filter.Message.Author, "author": &r.Filter.Message.Author,
		"message.group": &r.Filter.Message.Group, "group": &r.Filter.Message.Group,
		"message.tag": &r.Filter.Message.Tag, "tag": &r.Filter.Message.Tag, "message.topics": &r.Filter.Message.Topics,
		"transaction.type":         &r.Filter.Transaction.Type,
		"blockchainevent.listener": &r.Filter.BlockchainEvent.Listener, "blockchainevent.name": &r.Filter.BlockchainEvent.Name,
	}
	for name, values := range query {
		condition, ok := strings.CutPrefix(name, "filter.")
		if !ok {
			continue
		}
		into := filter[condition]
		switch {
		case into == nil:
			return r, false, pactwire.Invalid(name, "is not a condition of a filter")
		case len(values) > 1, *into != "" && *into != values[0]:
			return r, false, pactwire.Invalid(name, "is given more than once")
		}
		*into = values[0]
	}
	if s := query.Get("readahead"); s != "" {
		if err := r.Options.SetReadAhead(s); err != nil {
			return r, false, err
		}
	}
	if s := query.Get("firstevent"); s != "" {
		if err := r.Options.SetFirstEvent(s); err != nil {
			return r, false, err
		}
	}
	r.Options.WithData, r.Options.Batch = flag(query, "withdata"), flag(query, "batch")
	return r, r.Ephemeral || r.Name != "", nil
}

// flag is set by its presence, unless its value is false.
func flag(query url.Values, name string) bool {
	return query.Has(name) && !strings.EqualFold(query.Get(name), "false")
}

// settleNamespace takes the namespace from where it is said; saying two different ones is a mistake.
func settleNamespace(asked, fixed string) (string, error) {
	if asked == "" {
		return fixed, nil
	}
	if fixed != "" && asked != fixed {
		return "", pactwire.Invalid("namespace", "is %q, but the connection's address is for %q", asked, fixed)
	}
	return asked, nil
}
