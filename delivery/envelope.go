package delivery

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// Ref names a subscription in a frame.
type Ref struct {
	ID        uuid.UUID `json:"id"`
	Namespace string    `json:"namespace"`
	Name      string    `json:"name"`
}

// AppendEvent appends the event as clients see it, with its enrichment, and with the subscription if there is one. The body is spliced in as it is stored.
func AppendEvent(dst []byte, e *store.Event, sub *Ref) []byte {
	var subscription []byte
	if sub != nil {
		subscription = mustMarshal(sub)
	}
	return appendEvent(dst, e, subscription, e.Body)
}

const timeFormat = "2006-01-02T15:04:05.000000Z"

func appendEvent(dst []byte, e *store.Event, subscription []byte, body string) []byte {
	dst = append(dst, `{"id":"`...)
	dst = appendID(dst, e.ID)
	dst = append(dst, `","sequence":`...)
	dst = strconv.AppendInt(dst, e.Sequence, 10)
	dst = append(dst, `,"type":`...)
	dst = appendText(dst, e.Type)
	dst = append(dst, `,"namespace":`...)
	dst = appendText(dst, e.Namespace)
	dst = append(dst, `,"reference":"`...)
	dst = appendID(dst, e.Reference)
	dst = append(dst, '"')
	if e.Transaction != nil {
		dst = append(dst, `,"tx":"`...)
		dst = appendID(dst, *e.Transaction)
		dst = append(dst, '"')
	}
	if e.Topic != "" {
		dst = append(dst, `,"topic":`...)
		dst = appendText(dst, e.Topic)
	}
	dst = append(dst, `,"created":"`...)
	dst = e.Created.UTC().AppendFormat(dst, timeFormat)
	dst = append(dst, '"')
	if len(subscription) > 0 {
		dst = append(dst, `,"subscription":`...)
		dst = append(dst, subscription...)
	}
	if e.BodyKey != "" && len(body) >= 2 {
		dst = append(dst, ',')
		dst = appendText(dst, e.BodyKey)
		dst = append(dst, ':')
		if e.Type == store.EventBlockchainReceived && e.BodyKey == store.BodyBlockchainEvent && body[0] == '{' {
			// The record's own sequence is this entry's; see store.Event.
			dst = append(dst, `{"sequence":`...)
			dst = strconv.AppendInt(dst, e.Sequence, 10)
			if body = body[1:]; body != "}" {
				dst = append(dst, ',')
			}
		}
		dst = append(dst, body...)
	}
	return append(dst, '}')
}

// TypeBatch is the type of a frame that holds several events.
const TypeBatch = "event_batch"

// appendBatch appends a frame of several events, given one after the other with their ends.
func appendBatch(dst []byte, id uuid.UUID, subscription, events []byte, ends []int) []byte {
	dst = append(dst, `{"type":"`+TypeBatch+`","id":"`...)
	dst = appendID(dst, id)
	dst = append(dst, `","subscription":`...)
	dst = append(dst, subscription...)
	dst = append(dst, `,"events":`...)
	dst = append(dst, '[')
	start := 0
	for i, end := range ends {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, events[start:end]...)
		start = end
	}
	return append(dst, ']', '}')
}

func appendID(dst []byte, id uuid.UUID) []byte {
	const hexits = "0123456789abcdef"
	for i, b := range id {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexits[b>>4], hexits[b&15])
	}
	return dst
}

// appendText appends a JSON string.
func appendText(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return append(dst, mustMarshal(s)...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// withValues puts the values of a message's data into the message.
func withValues(body string, data []store.Data) (string, error) {
	var message map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &message); err != nil {
		return "", fmt.Errorf("decode the message: %w", err)
	}
	if len(message["data"]) == 0 {
		return body, nil
	}
	var items []map[string]json.RawMessage
	if err := json.Unmarshal(message["data"], &items); err != nil {
		return "", fmt.Errorf("decode the message's data: %w", err)
	}
	values := make(map[string]string, len(data))
	for i := range data {
		values[`"`+data[i].ID.String()+`"`] = data[i].Value
	}
	for _, item := range items {
		if value, ok := values[string(item["id"])]; ok {
			item["value"] = json.RawMessage(value)
		}
	}
	list, err := json.Marshal(items)
	if err != nil {
		return "", fmt.Errorf("encode the data: %w", err)
	}
	message["data"] = list
	whole, err := json.Marshal(message)
	if err != nil {
		return "", fmt.Errorf("encode the message: %w", err)
	}
	return string(whole), nil
}
