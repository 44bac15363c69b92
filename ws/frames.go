package ws

import (
	"encoding/json"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/delivery"
)

// The types of frames. Frames of events have a type of their own each: the event's.
const (
	typeStart         = "start"
	typeAck           = "ack"
	typeNack          = "nack"
	typeProtocolError = "protocol_error"
)

// ClientFrame is any frame that a client sends: text, one JSON object.
//
//	{"type":"start","namespace":"default","name":"orders","autoack":false}
//	{"type":"start","namespace":"default","ephemeral":true,"filter":{"events":"message_confirmed"},"options":{"readAhead":50}}
//	{"type":"ack","id":"6f1f…","subscription":{"id":"0b7e…"}}
//	{"type":"nack","id":"6f1f…"}
type ClientFrame struct {
	Type string `json:"type"` // start, ack, nack

	// Of start.
	Namespace string          `json:"namespace,omitempty"` // may be left out where the address or the query says it
	Name      string          `json:"name,omitempty"`      // of the subscription; optional when ephemeral
	AutoAck   bool            `json:"autoack,omitempty"`   // an event counts as acknowledged when it is written
	Ephemeral bool            `json:"ephemeral,omitempty"` // nothing is kept; from now on, or from options.firstEvent
	Filter    json.RawMessage `json:"filter,omitempty"`    // of an ephemeral one, as in a subscription
	Options   json.RawMessage `json:"options,omitempty"`   // of an ephemeral one, as in a subscription; a durable one takes readAhead

	// Of ack and nack.
	ID           string           `json:"id,omitempty"`           // of the event, or of the batch; an ack without it is for the oldest in flight
	Subscription *SubscriptionRef `json:"subscription,omitempty"` // which of the connection's subscriptions is meant
}

// SubscriptionRef names one of the connection's subscriptions: by id, or by namespace and name.
type SubscriptionRef struct {
	ID        string `json:"id,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// names tells whether it names the subscription. A nil or empty one names every subscription.
func (r *SubscriptionRef) names(ref delivery.Ref) bool {
	if r == nil {
		return true
	}
	if r.ID != "" {
		id, err := uuid.Parse(r.ID)
		return err == nil && id == ref.ID
	}
	return (r.Namespace == "" || r.Namespace == ref.Namespace) && (r.Name == "" || r.Name == ref.Name)
}

// ProtocolError is the frame that tells a client what it did wrong. Events, and batches of them, are the other frames that the server sends; see
// delivery.AppendEvent and delivery.TypeBatch. All frames are described in openapi/asyncapi.yaml.
//
//	{"type":"protocol_error","error":"…"}
type ProtocolError struct {
	Type  string `json:"type"` // protocol_error
	Error string `json:"error"`
}
