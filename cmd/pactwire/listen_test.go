package main

import "testing"

func TestEventsOfFrames(t *testing.T) {
	t.Parallel()
	one, err := eventsOf([]byte(`{"id":"a","type":"message_confirmed"}`))
	if err != nil || len(one) != 1 || one[0].id != "a" || string(one[0].text) != `{"id":"a","type":"message_confirmed"}` {
		t.Errorf("an event: %v, %v", one, err)
	}
	batch, err := eventsOf([]byte(`{"id":"x","type":"event_batch","events":[{"id":"a"},{"id":"b"}]}`))
	if err != nil || len(batch) != 2 || batch[1].id != "b" || string(batch[1].text) != `{"id":"b"}` {
		t.Errorf("a batch: %v, %v", batch, err)
	}
	if _, err := eventsOf([]byte(`{"type":"protocol_error","error":"no"}`)); err == nil || err.Error() != "no" {
		t.Errorf("an error: %v", err)
	}
	if _, err := eventsOf([]byte(`{`)); err == nil {
		t.Error("half a frame was accepted")
	}
}
