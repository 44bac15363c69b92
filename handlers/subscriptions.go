package handlers

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/oapi-codegen/nullable"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// CreateSubscription makes a durable subscription.
func (s *Server) CreateSubscription(ctx context.Context, r gen.CreateSubscriptionRequestObject) (gen.CreateSubscriptionResponseObject, error) {
	request, err := readSubscription(r.Namespace, *r.Body)
	if err != nil {
		return nil, err
	}
	created, err := s.deliveries.Create(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("make a subscription: %w", err)
	}
	out, err := toSubscription(created)
	return gen.CreateSubscription201JSONResponse(out), err
}

// ReplaceSubscription makes or changes a durable subscription by its name.
func (s *Server) ReplaceSubscription(ctx context.Context, r gen.ReplaceSubscriptionRequestObject) (gen.ReplaceSubscriptionResponseObject, error) {
	request, err := readSubscription(r.Namespace, *r.Body)
	if err != nil {
		return nil, err
	}
	changed, _, err := s.deliveries.Put(ctx, request)
	if err != nil {
		return nil, fmt.Errorf("change a subscription: %w", err)
	}
	out, err := toSubscription(changed)
	return gen.ReplaceSubscription200JSONResponse(out), err
}

func readSubscription(namespace string, in gen.SubscriptionInput) (delivery.SubscriptionRequest, error) {
	request := delivery.SubscriptionRequest{Namespace: namespace, Name: in.Name, Transport: value(in.Transport)}
	if err := sameNamespace(namespace, in.Namespace); err != nil {
		return request, err
	}
	var err error
	if in.Filter != nil {
		if request.Filter, err = json.Marshal(in.Filter); err != nil {
			return request, pactwire.Invalid("filter", "cannot be read")
		}
	}
	if in.Options != nil {
		if request.Options, err = json.Marshal(in.Options); err != nil {
			return request, pactwire.Invalid("options", "cannot be read")
		}
	}
	return request, nil
}

// ListSubscriptions lists subscriptions.
func (s *Server) ListSubscriptions(ctx context.Context, r gen.ListSubscriptionsRequestObject) (gen.ListSubscriptionsResponseObject, error) {
	p := page(ctx)
	records, info, err := s.db.ListSubscriptions(ctx, r.Namespace, p)
	if err != nil {
		return nil, fmt.Errorf("list subscriptions: %w", err)
	}
	items, err := convertAll(records, func(sub store.Subscription) (gen.Subscription, error) {
		return s.subscriptionAnswer(ctx, sub, value(r.Params.FetchStatus))
	})
	if err != nil {
		return nil, err
	}
	headers := gen.ListSubscriptions200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListSubscriptions200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListSubscriptions200JSONResponse{Body: items, Headers: headers}, nil
}

// GetSubscription returns one subscription.
func (s *Server) GetSubscription(ctx context.Context, r gen.GetSubscriptionRequestObject) (gen.GetSubscriptionResponseObject, error) {
	sub, err := s.db.Subscription(ctx, r.Namespace, r.NameOrID)
	if err != nil {
		return nil, fmt.Errorf("get a subscription: %w", err)
	}
	out, err := s.subscriptionAnswer(ctx, sub, value(r.Params.FetchStatus))
	return gen.GetSubscription200JSONResponse(out), err
}

// DeleteSubscription removes a subscription.
func (s *Server) DeleteSubscription(ctx context.Context, r gen.DeleteSubscriptionRequestObject) (gen.DeleteSubscriptionResponseObject, error) {
	if err := s.db.DeleteSubscription(ctx, r.Namespace, r.NameOrID); err != nil {
		return nil, fmt.Errorf("delete a subscription: %w", err)
	}
	return gen.DeleteSubscription204Response{}, nil
}

func (s *Server) subscriptionAnswer(ctx context.Context, sub store.Subscription, status bool) (gen.Subscription, error) {
	out, err := toSubscription(sub)
	if err != nil || !status {
		return out, err
	}
	now, err := s.deliveries.Status(ctx, sub)
	if err != nil {
		return out, fmt.Errorf("read the status of subscription %s: %w", sub.Name, err)
	}
	out.Status = &gen.SubscriptionStatus{
		Position: now.Position, Head: now.Head, Lag: now.Lag, InFlight: now.InFlight, Consumers: now.Consumers, LastError: present(now.LastError),
	}
	if a := now.Attempt; a != nil {
		out.Status.Attempts = &gen.DeliveryAttempts{Count: a.Count, Error: a.Reason, Status: presentStatus(a.Status), Next: a.Next.UTC()}
	}
	if sub.Transport == delivery.TransportWebhooks {
		out.Status.DeadLetters = &now.DeadLetters
	}
	return out, nil
}

func toSubscription(sub store.Subscription) (gen.Subscription, error) {
	out := gen.Subscription{
		ID: sub.ID, Namespace: sub.Namespace, Name: sub.Name, Transport: sub.Transport, Created: sub.Created.UTC(),
	}
	if err := json.Unmarshal(sub.Filter, &out.Filter); err != nil {
		return out, fmt.Errorf("read the filter of subscription %s: %w", sub.Name, err)
	}
	options, err := delivery.StoredOptions(sub)
	if err != nil {
		return out, err //nolint:wrapcheck // it says what it did
	}
	answered, err := json.Marshal(options.Redacted())
	if err == nil {
		err = json.Unmarshal(answered, &out.Options)
	}
	if err != nil {
		return out, fmt.Errorf("answer the options of subscription %s: %w", sub.Name, err)
	}
	if sub.Updated == nil {
		out.Updated = nullable.NewNullNullable[timestamp]()
	} else {
		out.Updated = nullable.NewNullableWithValue(sub.Updated.UTC())
	}
	return out, nil
}
