package multiparty

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/pactwire/pactwire/store"
)

// repeat recognises a broadcast that a caller sends again because it got no answer.
type repeat struct {
	key  string // empty: the caller gave none
	body []byte // hash of what was asked for
}

// newRepeat makes a repeat from what was asked for, before it has ids.
func newRepeat(key, kind string, asked any) repeat {
	if key == "" {
		return repeat{}
	}
	text, err := json.Marshal([]any{kind, asked})
	if err != nil {
		text = []byte(kind) // it cannot be broadcast either, and that says why
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) == nil {
		text = compact.Bytes()
	}
	hash := sha256.Sum256(text)
	return repeat{key: key, body: hash[:]}
}

// accept is asked before a broadcast is made: it returns the message of the first time when this is a repeat, and an error when this node may not broadcast.
func (n *Network) accept(ctx context.Context, r repeat) (*store.Message, error) {
	if r.key != "" {
		m, existed, err := n.db.RepeatedMessage(ctx, n.cfg.Namespace, r.key, r.body)
		if err != nil {
			return nil, err //nolint:wrapcheck // it speaks to the caller
		}
		if existed {
			return &m, nil
		}
	}
	return nil, n.requireMember(ctx)
}

// create stores the broadcast. When another request with the same key was faster, it returns that one's message.
func (n *Network) create(ctx context.Context, b *store.Broadcast, r repeat) (*store.Message, error) {
	if r.key != "" {
		b.Message.IdempotencyKey, b.Message.BodyHash = &r.key, r.body
	}
	err := n.db.CreateBroadcast(ctx, b)
	if !errors.Is(err, store.ErrRepeated) {
		return nil, err //nolint:wrapcheck // it speaks to the caller
	}
	m, existed, err := n.db.RepeatedMessage(ctx, n.cfg.Namespace, r.key, r.body)
	if err != nil {
		return nil, err //nolint:wrapcheck // as above
	}
	if !existed {
		return nil, store.ErrRepeated // it has gone again: the caller may repeat once more
	}
	return &m, nil
}
