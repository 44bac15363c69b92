package handlers

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

type timestamp = time.Time

// ListEvents lists the history.
func (s *Server) ListEvents(ctx context.Context, r gen.ListEventsRequestObject) (gen.ListEventsResponseObject, error) {
	p := page(ctx)
	records, info, err := s.db.ListEvents(ctx, r.Namespace, p)
	if err != nil {
		return nil, fmt.Errorf("list events: %w", err)
	}
	items, err := convertAll(records, func(e store.Event) (gen.Event, error) { return toEventEntry(e, value(r.Params.FetchReferences)) })
	if err != nil {
		return nil, err
	}
	headers := gen.ListEvents200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListEvents200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListEvents200JSONResponse{Body: items, Headers: headers}, nil
}

// GetEvent returns one entry of the history.
func (s *Server) GetEvent(ctx context.Context, r gen.GetEventRequestObject) (gen.GetEventResponseObject, error) {
	e, err := s.db.EventByID(ctx, r.Namespace, r.ID)
	if err != nil {
		return nil, fmt.Errorf("get an event: %w", err)
	}
	out, err := toEventEntry(e, value(r.Params.FetchReferences))
	return gen.GetEvent200JSONResponse(out), err
}

// ListSubscriptionEvents reads the part of the history that passes a subscription's filter, oldest first.
func (s *Server) ListSubscriptionEvents(ctx context.Context, r gen.ListSubscriptionEventsRequestObject) (gen.ListSubscriptionEventsResponseObject, error) {
	sub, err := s.db.Subscription(ctx, r.Namespace, r.NameOrID)
	if err != nil {
		return nil, fmt.Errorf("get a subscription: %w", err)
	}
	filter, err := delivery.ParseFilter(sub.Filter)
	if err != nil {
		return nil, fmt.Errorf("read the filter of subscription %s: %w", sub.Name, err)
	}
	matcher, err := filter.Compile()
	if err != nil {
		return nil, fmt.Errorf("compile the filter of subscription %s: %w", sub.Name, err)
	}
	after, last := int64(0), int64(1)<<62
	if first := r.Params.Startsequence; first != nil && *first > 0 {
		after = *first - 1
	}
	if r.Params.Endsequence != nil {
		last = *r.Params.Endsequence
	}
	limit := page(ctx).Limit
	if limit == 0 {
		limit = 25
	}
	items := make(gen.ListSubscriptionEvents200JSONResponse, 0, limit)
	for len(items) < limit {
		read, err := s.db.EventsAfter(ctx, store.EventQuery{Namespace: r.Namespace, After: after, Limit: 500, Bytes: 4 << 20})
		if err != nil {
			return nil, fmt.Errorf("read the history: %w", err)
		}
		for i := range read.Events {
			e := &read.Events[i]
			if e.Sequence > last || len(items) == limit {
				return items, nil
			}
			if !matcher.Match(e) {
				continue
			}
			item, err := toEventEntry(*e, true)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		if after = read.Through; after >= read.Head || after >= last {
			return items, nil
		}
	}
	return items, nil
}

// toEventEntry makes the answer from an entry of the history; enriched says whether what the event is about goes with it.
func toEventEntry(e store.Event, enriched bool) (gen.Event, error) {
	if !enriched {
		e.BodyKey, e.Body = "", ""
	}
	var out gen.Event
	if err := json.Unmarshal(delivery.AppendEvent(nil, &e, nil), &out); err != nil {
		return out, fmt.Errorf("read event %s: %w", e.ID, err)
	}
	return out, nil
}

// ListBlockchainEvents lists what listeners heard.
func (s *Server) ListBlockchainEvents(ctx context.Context, r gen.ListBlockchainEventsRequestObject) (gen.ListBlockchainEventsResponseObject, error) {
	p := page(ctx)
	records, info, err := s.db.ListBlockchainEvents(ctx, r.Namespace, p)
	if err != nil {
		return nil, fmt.Errorf("list blockchain events: %w", err)
	}
	items, err := convertAll(records, toBlockchainEvent)
	if err != nil {
		return nil, err
	}
	headers := gen.ListBlockchainEvents200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListBlockchainEvents200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListBlockchainEvents200JSONResponse{Body: items, Headers: headers}, nil
}

// GetBlockchainEvent returns one record of a listener.
func (s *Server) GetBlockchainEvent(ctx context.Context, r gen.GetBlockchainEventRequestObject) (gen.GetBlockchainEventResponseObject, error) {
	record, err := s.db.BlockchainEvent(ctx, r.Namespace, r.ID)
	if err != nil {
		return nil, fmt.Errorf("get a blockchain event: %w", err)
	}
	out, err := toBlockchainEvent(record)
	return gen.GetBlockchainEvent200JSONResponse(out), err
}

func toBlockchainEvent(b store.BlockchainEvent) (gen.BlockchainEvent, error) {
	var out gen.BlockchainEvent
	if b.Body == "" { // the history was pruned: what the record itself knows is left
		return gen.BlockchainEvent{
			ID: b.ID, Sequence: &b.Sequence, Source: "ethereum", Namespace: b.Namespace, Name: b.Name, Listener: b.Listener, ProtocolID: b.ProtocolID,
			Output: json.RawMessage(`{}`), Info: map[string]string{"transactionHash": fmt.Sprintf("0x%x", b.TxHash)}, Timestamp: b.Timestamp.UTC(),
		}, nil
	}
	if err := json.Unmarshal([]byte(b.Body), &out); err != nil {
		return out, fmt.Errorf("read blockchain event %s: %w", b.ID, err)
	}
	out.Sequence = &b.Sequence
	return out, nil
}
