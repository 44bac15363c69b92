package webhook

import (
	"context"
	"encoding/json"
	"time"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
)

// TypePing is the type of the event that tests a webhook. It stands in no history.
const TypePing = "ping"

// Ping posts a signed test event, once, and tells what came of it.
func (s *Server) Ping(ctx context.Context, ref delivery.Ref, options delivery.Options) (delivery.Pong, error) {
	if options.Webhook == nil {
		return delivery.Pong{}, pactwire.Conflict("not_a_webhook", "The subscription %q has no webhook that could be tested.", ref.Name)
	}
	id, err := uuid.NewV7()
	if err != nil {
		return delivery.Pong{}, err //nolint:wrapcheck // no random numbers
	}
	body, err := json.Marshal(map[string]any{
		"id": id, "sequence": 0, "type": TypePing, "namespace": ref.Namespace, "reference": id, "created": time.Now().UTC(), "subscription": ref,
	})
	if err != nil {
		return delivery.Pong{}, err //nolint:wrapcheck // strings
	}
	if options.Batch {
		body = append(append([]byte{'['}, body...), ']')
	}
	began := time.Now()
	a := s.post(ctx, options.Webhook, message{id.String(), body})
	if err := ctx.Err(); err != nil {
		return delivery.Pong{}, err //nolint:wrapcheck // the request's own end
	}
	return delivery.Pong{Delivered: a.reason == "", Status: a.status, Reason: a.reason, Latency: time.Since(began)}, nil
}
