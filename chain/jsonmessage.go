package chain

import (
	"context"
	"encoding/json"
	"errors"
)

// jsonMessage takes an answer as it is, to be decoded by whoever waits for it.
type jsonMessage struct{ raw []byte }

// UnmarshalJSON implements json.Unmarshaler.
func (m *jsonMessage) UnmarshalJSON(data []byte) error {
	m.raw = append(m.raw[:0], data...)
	return nil
}

func (m *jsonMessage) decode(result any) error {
	if err := json.Unmarshal(m.raw, result); err != nil {
		return badUpstream(err, "The chain's node gave an answer that makes no sense.")
	}
	return nil
}

// isContextEnd tells whether err only says that somebody stopped waiting.
func isContextEnd(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
