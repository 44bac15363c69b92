package delivery

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"regexp/syntax"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// maxPattern is the longest regular expression that a filter may hold, in characters.
const maxPattern = 1000

// Filter says which events a subscription hears. Every condition is an unanchored RE2 expression; the empty one lets everything through. All of them must
// hold. An attribute that the event does not have is tested as the empty string.
type Filter struct {
	Events          string                `json:"events,omitempty"` // on the event's type
	Topic           string                `json:"topic,omitempty"`  // on the event's topic, or any of its message's topics
	Message         MessageFilter         `json:"message"`
	Transaction     TransactionFilter     `json:"transaction"`
	BlockchainEvent BlockchainEventFilter `json:"blockchainevent"`
}

// MessageFilter holds the conditions on the message that an event is about.
type MessageFilter struct {
	Author string `json:"author,omitempty"`
	Group  string `json:"group,omitempty"`
	Tag    string `json:"tag,omitempty"`
	Topics string `json:"topics,omitempty"` // any of the message's topics
}

// TransactionFilter holds the condition on the transaction that an event belongs to.
type TransactionFilter struct {
	Type string `json:"type,omitempty"`
}

// BlockchainEventFilter holds the conditions on the blockchain event that an event is about.
type BlockchainEventFilter struct {
	Listener string `json:"listener,omitempty"`
	Name     string `json:"name,omitempty"`
}

// ParseFilter reads a filter as clients write it: also with the old spellings topics, tag, group and author at the root. A field that it does not know is
// an error, since ignoring it would let through more than was asked for.
func ParseFilter(raw json.RawMessage) (Filter, error) {
	var in struct {
		Filter
		Topics string `json:"topics"`
		Tag    string `json:"tag"`
		Group  string `json:"group"`
		Author string `json:"author"`
	}
	if len(raw) == 0 {
		return Filter{}, nil
	}
	if err := decodeStrictly(raw, "filter", &in); err != nil {
		return Filter{}, err
	}
	f := in.Filter
	for _, old := range []struct {
		path, value string
		field       *string
	}{
		{"filter.topics", in.Topics, &f.Topic},
		{"filter.tag", in.Tag, &f.Message.Tag},
		{"filter.group", in.Group, &f.Message.Group},
		{"filter.author", in.Author, &f.Message.Author},
	} {
		if old.value == "" {
			continue
		}
		if *old.field != "" && *old.field != old.value {
			return Filter{}, pactwire.Invalid(old.path, "is the old spelling of a condition that is given as well, with another value")
		}
		*old.field = old.value
	}
	return f, nil
}

// decodeStrictly reads one JSON object and words what is wrong with it.
func decodeStrictly(raw json.RawMessage, path string, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	var mismatch *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &mismatch):
		if mismatch.Field != "" {
			path += "." + strings.TrimPrefix(mismatch.Field, "Filter.") // the embedded one
		}
		return pactwire.Invalid(path, "must not be a JSON %s", mismatch.Value)
	}
	if _, field, ok := strings.Cut(err.Error(), "unknown field "); ok {
		return pactwire.Invalid(path, "has no field %s", field)
	}
	return pactwire.Invalid(path, "is not a JSON object")
}

// Matcher is a compiled Filter.
type Matcher struct {
	events, topic, author, group, tag, topics, txType, listener, name *regexp.Regexp

	// Conditions that the database can test exactly as well, so that what they exclude is never read.
	typeContains string
	listenerID   *uuid.UUID
}

// Compile checks the filter's expressions and prepares it.
func (f Filter) Compile() (*Matcher, error) {
	m := &Matcher{}
	for _, c := range []struct {
		path, pattern string
		into          **regexp.Regexp
	}{
		{"filter.events", f.Events, &m.events},
		{"filter.topic", f.Topic, &m.topic},
		{"filter.message.author", f.Message.Author, &m.author},
		{"filter.message.group", f.Message.Group, &m.group},
		{"filter.message.tag", f.Message.Tag, &m.tag},
		{"filter.message.topics", f.Message.Topics, &m.topics},
		{"filter.transaction.type", f.Transaction.Type, &m.txType},
		{"filter.blockchainevent.listener", f.BlockchainEvent.Listener, &m.listener},
		{"filter.blockchainevent.name", f.BlockchainEvent.Name, &m.name},
	} {
		if c.pattern == "" {
			continue
		}
		if n := utf8.RuneCountInString(c.pattern); n > maxPattern {
			return nil, pactwire.Invalid(c.path, "must be at most %d characters, has %d", maxPattern, n)
		}
		compiled, err := regexp.Compile(c.pattern)
		if err != nil {
			return nil, pactwire.Invalid(c.path, "is not a regular expression (RE2): %s", reason(err))
		}
		*c.into = compiled
	}
	m.typeContains = literal(f.Events)
	// An id is as long as the attribute that it is tested against: containing it is being it. The attribute is in lower case.
	if id, err := uuid.Parse(f.BlockchainEvent.Listener); err == nil && id.String() == f.BlockchainEvent.Listener {
		m.listenerID = &id
	}
	return m, nil
}

func reason(err error) string {
	var bad *syntax.Error
	if errors.As(err, &bad) {
		return bad.Code.String()
	}
	return "it cannot be compiled"
}

// literal returns the pattern if it has no meaning but itself, and the empty string otherwise.
func literal(pattern string) string {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil || parsed.Op != syntax.OpLiteral || parsed.Flags&syntax.FoldCase != 0 {
		return ""
	}
	return string(parsed.Rune)
}

// Match tells whether the event passes.
func (m *Matcher) Match(e *store.Event) bool {
	switch {
	case m.events != nil && !m.events.MatchString(e.Type),
		m.txType != nil && !m.txType.MatchString(text(e.TxType)),
		m.name != nil && !m.name.MatchString(text(e.Name)),
		m.author != nil && !m.author.MatchString(text(e.Author)),
		m.group != nil && !m.group.MatchString(text(e.Group)),
		m.tag != nil && !m.tag.MatchString(text(e.Tag)),
		m.topics != nil && !anyMatches(m.topics, "", e.Topics),
		m.topic != nil && !anyMatches(m.topic, e.Topic, e.Topics):
		return false
	case m.listenerID != nil:
		return e.Listener != nil && *e.Listener == *m.listenerID
	case m.listener != nil:
		id := ""
		if e.Listener != nil {
			id = e.Listener.String()
		}
		return m.listener.MatchString(id)
	}
	return true
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

// anyMatches tests the values that there are, and the empty string if there are none.
func anyMatches(pattern *regexp.Regexp, one string, more []string) bool {
	if one != "" || len(more) == 0 {
		if pattern.MatchString(one) {
			return true
		}
	}
	for _, s := range more {
		if pattern.MatchString(s) {
			return true
		}
	}
	return false
}
