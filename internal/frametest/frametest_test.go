package frametest

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestExamplesAndReferencesOfTheDocument(t *testing.T) {
	d, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if d.root["asyncapi"] != "3.0.0" {
		t.Errorf("the version is %v", d.root["asyncapi"])
	}
	examples := 0
	messages := d.root["components"].(map[string]any)["messages"].(map[string]any)
	for name, m := range messages {
		list, _ := m.(map[string]any)["examples"].([]any)
		for _, e := range list {
			examples++
			raw, err := json.Marshal(e.(map[string]any)["payload"])
			if err != nil {
				t.Fatal(err)
			}
			check := Sent
			if name == "protocolError" {
				check = Received
			}
			if err := check(raw); err != nil {
				t.Errorf("the example of %s: %v", name, err)
			}
		}
	}
	if examples < 5 {
		t.Errorf("only %d examples were seen", examples)
	}
	resolve(t, d.root, d.root)
}

// resolve follows every reference.
func resolve(t *testing.T, root map[string]any, v any) {
	t.Helper()
	switch v := v.(type) {
	case map[string]any:
		if ref, ok := v["$ref"].(string); ok {
			var at any = root
			for part := range strings.SplitSeq(strings.TrimPrefix(ref, "#/"), "/") {
				object, _ := at.(map[string]any)
				at = object[part]
			}
			if at == nil {
				t.Errorf("%s leads nowhere", ref)
			}
		}
		for _, member := range v {
			resolve(t, root, member)
		}
	case []any:
		for _, item := range v {
			resolve(t, root, item)
		}
	}
}

func TestWrongFramesAreFound(t *testing.T) {
	const event = `{"id":"0197a3c2-6f1f-7aaa-8bbb-0123456789ab","sequence":1,"type":"message_confirmed","namespace":"default",
		"reference":"0197a3c2-6f1f-7aaa-8bbb-0123456789ab","created":"2026-01-01T00:00:00.000000Z",
		"subscription":{"id":"0197a3c2-6f1f-7aaa-8bbb-0123456789ab","namespace":"default","name":"app"}}`
	if err := Received([]byte(event)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{
		strings.Replace(event, `"sequence":1`, `"sequence":"1"`, 1),
		strings.Replace(event, `"sequence":1`, `"sequence":1,"extra":true`, 1),
		strings.Replace(event, `message_confirmed`, `message_lost`, 1),
		strings.Replace(event, `0123456789ab`, `01234567`, 1),
		`{"type":"protocol_error"}`,
		`{"type":"event_batch","id":"0197a3c2-6f1f-7aaa-8bbb-0123456789ab","subscription":{"id":"0197a3c2-6f1f-7aaa-8bbb-0123456789ab","namespace":"d","name":"a"},"events":[]}`,
		`[]`, `{`,
	} {
		if err := Received([]byte(bad)); err == nil {
			t.Errorf("accepted: %s", bad)
		}
	}
	if err := Sent([]byte(`{"type":"nack"}`)); err == nil {
		t.Error("a nack without an id was accepted")
	}
}
