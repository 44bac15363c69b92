package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// ListDeadLetters lists the events that a webhook did not take.
func (s *Server) ListDeadLetters(ctx context.Context, r gen.ListDeadLettersRequestObject) (gen.ListDeadLettersResponseObject, error) {
	sub, err := s.db.Subscription(ctx, r.Namespace, r.NameOrID)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	p := page(ctx)
	records, info, err := s.db.ListDeadLetters(ctx, sub.ID, p)
	if err != nil {
		return nil, fmt.Errorf("list dead letters: %w", err)
	}
	items, err := convertAll(records, toDeadLetter)
	if err != nil {
		return nil, err
	}
	headers := gen.ListDeadLetters200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListDeadLetters200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListDeadLetters200JSONResponse{Body: items, Headers: headers}, nil
}

func toDeadLetter(l store.DeadLetter) (gen.DeadLetter, error) {
	out := gen.DeadLetter{
		Event: l.Event, Sequence: l.Sequence, Attempts: l.Attempts, Reason: l.Reason, Status: presentStatus(l.Status), Created: l.Created.UTC(),
	}
	if l.Redrive != nil {
		at := l.Redrive.UTC()
		out.Redrive = &at
	}
	if err := json.Unmarshal([]byte(l.Payload), &out.Payload); err != nil {
		return out, fmt.Errorf("read the dead letter of event %s: %w", l.Event, err)
	}
	return out, nil
}

// RedriveDeadLetters has dead letters delivered again.
func (s *Server) RedriveDeadLetters(ctx context.Context, r gen.RedriveDeadLettersRequestObject) (gen.RedriveDeadLettersResponseObject, error) {
	sub, err := s.db.Subscription(ctx, r.Namespace, r.NameOrID)
	if err != nil {
		return nil, fmt.Errorf("redrive dead letters: %w", err)
	}
	if sub.Transport != delivery.TransportWebhooks {
		return nil, notAWebhook(sub)
	}
	var request gen.RedriveRequest
	if r.Body != nil {
		request = *r.Body
	}
	n, err := s.db.Redrive(ctx, sub, request.Events)
	if err != nil {
		return nil, fmt.Errorf("redrive dead letters: %w", err)
	}
	return gen.RedriveDeadLetters202JSONResponse{Redriven: n}, nil
}

// PingSubscription posts a test event to a webhook.
func (s *Server) PingSubscription(ctx context.Context, r gen.PingSubscriptionRequestObject) (gen.PingSubscriptionResponseObject, error) {
	sub, err := s.db.Subscription(ctx, r.Namespace, r.NameOrID)
	if err != nil {
		return nil, fmt.Errorf("ping a webhook: %w", err)
	}
	if sub.Transport != delivery.TransportWebhooks || s.cfg.PingWebhook == nil {
		return nil, notAWebhook(sub)
	}
	options, err := delivery.StoredOptions(sub)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what it did
	}
	pong, err := s.cfg.PingWebhook(ctx, delivery.Ref{ID: sub.ID, Namespace: sub.Namespace, Name: sub.Name}, options)
	if err != nil {
		return nil, fmt.Errorf("ping a webhook: %w", err)
	}
	return gen.PingSubscription200JSONResponse{
		Delivered: pong.Delivered, Status: presentStatus(pong.Status), Error: present(pong.Reason),
		LatencyMs: float32(pong.Latency) / float32(time.Millisecond),
	}, nil
}

func notAWebhook(sub store.Subscription) error {
	return pactwire.Conflict("not_a_webhook", "The subscription %q has the transport %s: there are no webhooks.", sub.Name, sub.Transport)
}

// presentStatus is nil for no status.
func presentStatus(status int) *int {
	if status == 0 {
		return nil
	}
	return &status
}
