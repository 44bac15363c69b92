package delivery

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

func TestFilterMatches(t *testing.T) {
	listener := uuid.MustParse("6f1f0c3c-9c1e-4f1e-8a57-0d9b1f3a0c11")
	text := func(s string) *string { return &s }
	chain := store.Event{Type: store.EventBlockchainReceived, Listener: &listener, Name: text("Changed"), Topic: "prices", TxType: text("")}
	message := store.Event{
		Type: store.EventMessageConfirmed, Author: text("did:a"), Tag: text("invoice"), Group: text("g"), Topics: []string{"t1", "t2"}, TxType: text("batch_pin"),
	}
	for _, c := range []struct {
		filter         string
		chain, message bool
	}{
		{``, true, true},
		{`{}`, true, true},
		{`null`, true, true},
		{`{"events":".*","topic":".*","message":{"author":".*","group":".*","tag":".*","topics":".*"},"transaction":{"type":".*"},` +
			`"blockchainevent":{"listener":".*","name":".*"}}`, true, true},
		{`{"events":"blockchain_event_received"}`, true, false},
		{`{"events":"confirmed"}`, false, true},
		{`{"events":"^confirmed"}`, false, false},
		{`{"events":"message_confirmed|blockchain_event_received"}`, true, true},
		{`{"message":{"tag":"^invoice$"}}`, false, true},
		{`{"message":{"tag":"^$"}}`, true, false},
		{`{"tag":"inv"}`, false, true},
		{`{"author":"^did:a$","group":"g"}`, false, true},
		{`{"message":{"topics":"t2"}}`, false, true},
		{`{"message":{"topics":"^$"}}`, true, false},
		{`{"topic":"t2"}`, false, true},
		{`{"topic":"^prices$"}`, true, false},
		{`{"topics":"^prices$"}`, true, false},
		{`{"topics":"^t1$"}`, false, true},
		{`{"transaction":{"type":"batch_pin"}}`, false, true},
		{`{"blockchainevent":{"listener":"6f1f0c3c-9c1e-4f1e-8a57-0d9b1f3a0c11"}}`, true, false},
		{`{"blockchainevent":{"listener":"6F1F0C3C-9c1e-4f1e-8a57-0d9b1f3a0c11"}}`, false, false},
		{`{"blockchainevent":{"listener":"^6f1f"}}`, true, false},
		{`{"blockchainevent":{"listener":"^$"}}`, false, true},
		{`{"blockchainevent":{"name":"Chang"},"events":"received"}`, true, false},
		{`{"blockchainevent":{"name":"Chang"},"events":"confirmed"}`, false, false},
	} {
		f, err := ParseFilter(json.RawMessage(c.filter))
		if err != nil {
			t.Fatalf("%s: %v", c.filter, err)
		}
		m, err := f.Compile()
		if err != nil {
			t.Fatalf("%s: %v", c.filter, err)
		}
		if got := m.Match(&chain); got != c.chain {
			t.Errorf("%s on the blockchain event: %v", c.filter, got)
		}
		if got := m.Match(&message); got != c.message {
			t.Errorf("%s on the message: %v", c.filter, got)
		}
	}
}

func TestBadFiltersNameTheField(t *testing.T) {
	for filter, path := range map[string]string{
		`{"events":"("}`:  "filter.events",
		`{"topic":"(?="}`: "filter.topic",
		`{"message":{"author":"` + strings.Repeat("ä", 1001) + `"}}`: "filter.message.author",
		`{"message":{"tag":7}}`:                "filter.message.tag",
		`{"blockchainevent":{"name":"[z-a]"}}`: "filter.blockchainevent.name",
		`{"tag":"*"}`:                          "filter.message.tag",
		`{"tag":"a","message":{"tag":"b"}}`:    "filter.tag",
		`{"eventz":"a"}`:                       "filter",
		`[]`:                                   "filter",
		`{`:                                    "filter",
	} {
		f, err := ParseFilter(json.RawMessage(filter))
		if err == nil {
			_, err = f.Compile()
		}
		e, ok := err.(*pactwire.Error) //nolint:errorlint // it is not wrapped
		if !ok || e.Kind != pactwire.KindInvalid || e.Fields[0].Path != path {
			t.Errorf("%.40s: %v", filter, err)
		}
	}
	if f, err := ParseFilter(json.RawMessage(`{"events":"` + strings.Repeat("ä", 1000) + `"}`)); err != nil {
		t.Error(err)
	} else if _, err := f.Compile(); err != nil {
		t.Error(err)
	}
}

func TestFilterIsAnsweredWithItsEmptyParts(t *testing.T) {
	f, err := ParseFilter(json.RawMessage(`{"events":"a","tag":"b"}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(mustMarshal(f)); got != `{"events":"a","message":{"tag":"b"},"transaction":{},"blockchainevent":{}}` {
		t.Errorf("got %s", got)
	}
}

func TestPushdownOnlyWhereItIsExact(t *testing.T) {
	for pattern, want := range map[string]string{
		"blockchain_event_received": "blockchain_event_received", "confirmed": "confirmed", "": "", ".*": "", "^message_confirmed$": "",
		"a|b": "", "(?i)message": "", "m[a]x": "max", "a+": "", `\.`: ".",
	} {
		m, err := Filter{Events: pattern}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if m.typeContains != want {
			t.Errorf("%q: %q, want %q", pattern, m.typeContains, want)
		}
	}
	for pattern, want := range map[string]bool{
		"6f1f0c3c-9c1e-4f1e-8a57-0d9b1f3a0c11": true, "6F1F0C3C-9c1e-4f1e-8a57-0d9b1f3a0c11": false, "6f1f0c3c9c1e4f1e8a570d9b1f3a0c11": false, "6f1f": false,
	} {
		m, err := Filter{BlockchainEvent: BlockchainEventFilter{Listener: pattern}}.Compile()
		if err != nil {
			t.Fatal(err)
		}
		if (m.listenerID != nil) != want {
			t.Errorf("%q: %v", pattern, m.listenerID)
		}
	}
}

func FuzzParseFilter(f *testing.F) {
	f.Add(`{"events":"a","message":{"tag":"b"},"topics":"c"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		filter, err := ParseFilter(json.RawMessage(raw))
		if err != nil {
			if pactwire.KindOf(err) != pactwire.KindInvalid {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := ParseFilter(mustMarshal(filter))
		if err != nil || again != filter && json.Valid([]byte(raw)) && strings.ToValidUTF8(raw, "") == raw {
			t.Fatalf("%+v became %+v, %v", filter, again, err)
		}
	})
}
