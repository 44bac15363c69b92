package delivery

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

func TestAppendEvent(t *testing.T) {
	id := uuid.MustParse("00000000-0000-7000-8000-000000000001")
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.FixedZone("", 3600))
	sub := &Ref{ID: id, Namespace: "default", Name: "sub"}
	for _, c := range []struct {
		name  string
		event store.Event
		sub   *Ref
		want  string
	}{
		{
			"blockchain event",
			store.Event{
				Namespace: "default", Sequence: 7, ID: id, Type: store.EventBlockchainReceived, Reference: id, Transaction: &id, Topic: "a\"ü\x00", Created: created,
				BodyKey: store.BodyBlockchainEvent, Body: `{"name":"Changed"}`,
			},
			sub,
			`{"id":"00000000-0000-7000-8000-000000000001","sequence":7,"type":"blockchain_event_received","namespace":"default",` +
				`"reference":"00000000-0000-7000-8000-000000000001","tx":"00000000-0000-7000-8000-000000000001","topic":"a\"ü\u0000",` +
				`"created":"2026-01-02T02:04:05.000000Z","subscription":{"id":"00000000-0000-7000-8000-000000000001","namespace":"default","name":"sub"},` +
				`"blockchainevent":{"sequence":7,"name":"Changed"}}`,
		},
		{
			"removed",
			store.Event{
				Namespace: "default", Sequence: 8, ID: id, Type: store.EventBlockchainRemoved, Reference: id, Created: created,
				BodyKey: store.BodyBlockchainEvent, Body: `{"name":"Changed"}`,
			},
			nil,
			`{"id":"00000000-0000-7000-8000-000000000001","sequence":8,"type":"blockchain_event_removed","namespace":"default",` +
				`"reference":"00000000-0000-7000-8000-000000000001","created":"2026-01-02T02:04:05.000000Z","blockchainevent":{"name":"Changed"}}`,
		},
		{
			"no body",
			store.Event{Namespace: "default", Sequence: 9, ID: id, Type: "x", Reference: id, Created: created},
			nil,
			`{"id":"00000000-0000-7000-8000-000000000001","sequence":9,"type":"x","namespace":"default",` +
				`"reference":"00000000-0000-7000-8000-000000000001","created":"2026-01-02T02:04:05.000000Z"}`,
		},
		{
			"empty body",
			store.Event{
				Namespace: "default", Sequence: 9, ID: id, Type: store.EventBlockchainReceived, Reference: id, Created: created,
				BodyKey: store.BodyBlockchainEvent, Body: `{}`,
			},
			nil,
			`{"id":"00000000-0000-7000-8000-000000000001","sequence":9,"type":"blockchain_event_received","namespace":"default",` +
				`"reference":"00000000-0000-7000-8000-000000000001","created":"2026-01-02T02:04:05.000000Z","blockchainevent":{"sequence":9}}`,
		},
	} {
		got := string(AppendEvent(nil, &c.event, c.sub))
		if got != c.want || !json.Valid([]byte(got)) {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestWithValues(t *testing.T) {
	a, b := uuid.New(), uuid.New()
	body := `{"header":{"id":"x"},"data":[{"id":"` + a.String() + `","hash":"aa"},{"id":"` + b.String() + `","hash":"bb"}]}`
	got, err := withValues(body, []store.Data{{ID: a, Value: `{"n":12345678901234567890123}`}})
	want := `{"data":[{"hash":"aa","id":"` + a.String() + `","value":{"n":12345678901234567890123}},{"hash":"bb","id":"` + b.String() + `"}],"header":{"id":"x"}}`
	if err != nil || got != want {
		t.Errorf("got %s, %v", got, err)
	}
	if got, err := withValues(`{"header":{}}`, nil); err != nil || got != `{"header":{}}` {
		t.Errorf("without data: %s, %v", got, err)
	}
}

func TestOptions(t *testing.T) {
	for raw, want := range map[string]string{
		``:                                      `{"firstEvent":"40","readAhead":0,"withData":false}`,
		`{"firstEvent":null,"withData":true}`:   `{"firstEvent":"40","readAhead":0,"withData":true}`,
		`{"firstEvent":"-1","readAhead":65535}`: `{"firstEvent":"-1","readAhead":65535,"withData":false}`,
		`{"firstEvent":007}`:                    "",
		`{"firstEvent":"007"}`:                  `{"firstEvent":"7","readAhead":0,"withData":false}`,
		`{"firstEvent":-2}`:                     "",
		`{"firstEvent":1.5}`:                    "",
		`{"firstEvent":"later"}`:                "",
		`{"firstEvent":99999999999999999999}`:   "",
		`{"readAhead":1.5}`:                     "",
		`{"readAhead":"5"}`:                     "",
		`{"readAhead":65536}`:                   "",
		`{"withData":"yes"}`:                    "",
		`{"url":"http://x"}`:                    `{"firstEvent":"40","readAhead":0,"withData":false,"url":"http://x"}`,
		`{"url":7}`:                             "",
		`{"fastack":true}`:                      "",
		`{"reply":true}`:                        "",
		`{"retry":{"count":1001}}`:              "",
		`{"retry":{"initialDelay":"soon"}}`:     "",
		`{"retry":{"attempts":1}}`:              "",
		`{"httpOptions":{"proxyURL":"x"}}`:      "",
		`{"headers":{"a":["b"]}}`:               "",
		`{"batchTimeout":"2h"}`:                 "",
		`{"batch":true}`:                        `{"firstEvent":"40","readAhead":50,"withData":false,"batch":true}`,
		`{"batch":true,"readAhead":7}`:          `{"firstEvent":"40","readAhead":7,"withData":false,"batch":true}`,
		`{"batch":true,"batchTimeout":"500"}`:   `{"firstEvent":"40","readAhead":50,"withData":false,"batch":true,"batchTimeout":"500ms"}`,
		`{"batch":false}`:                       `{"firstEvent":"40","readAhead":0,"withData":false}`,
		`{"unknown":1}`:                         "",
		`[]`:                                    "",
	} {
		o, err := ParseOptions(json.RawMessage(raw))
		got := ""
		if err == nil {
			resolved, _ := o.Resolve(40)
			got = string(mustMarshal(resolved))
		}
		if got != want {
			t.Errorf("%s: got %s, %v", raw, got, err)
		}
	}
}
