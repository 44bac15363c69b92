package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/multiparty"
)

// BroadcastMessage sends a message to all members.
func (s *Server) BroadcastMessage(ctx context.Context, r gen.BroadcastMessageRequestObject) (gen.BroadcastMessageResponseObject, error) {
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	in := multiparty.MessageInput{}
	if in.IdempotencyKey, err = (idempotencyKey{r.Params.IdempotencyKey, r.Body.IdempotencyKey}).value(); err != nil {
		return nil, err
	}
	if h := r.Body.Header; h != nil {
		in.Tag, in.Topics = value(h.Tag), h.Topics
		if len(h.Topic) > 0 && len(h.Topics) > 0 && !slices.Equal(h.Topic, h.Topics) {
			return nil, pactwire.Invalid("header.topic", "differs from header.topics; give one of them")
		}
		if len(in.Topics) == 0 {
			in.Topics = h.Topic
		}
	}
	for _, d := range r.Body.Data {
		v := d.Value
		if len(v) == 0 {
			v = json.RawMessage("null")
		}
		in.Data = append(in.Data, v)
	}
	sent, err := ns.Network.BroadcastMessage(ctx, in)
	if err != nil {
		return nil, fmt.Errorf("broadcast a message: %w", err)
	}
	if !value(r.Params.Confirm) {
		out, err := s.messageAnswer(ctx, sent, false)
		return gen.BroadcastMessage202JSONResponse(out), err
	}
	if err := ns.Network.WaitConfirmed(ctx, sent.ID); err != nil {
		return nil, fmt.Errorf("wait for message %s: %w", sent.ID, err)
	}
	if sent, err = s.db.Message(ctx, ns.Name, sent.ID); err != nil {
		return nil, fmt.Errorf("read message %s: %w", sent.ID, err)
	}
	out, err := s.messageAnswer(ctx, sent, false)
	return gen.BroadcastMessage200JSONResponse(out), err
}
