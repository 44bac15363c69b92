package handlers

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// ListMessages lists messages.
func (s *Server) ListMessages(ctx context.Context, r gen.ListMessagesRequestObject) (gen.ListMessagesResponseObject, error) {
	p := page(ctx)
	records, info, err := s.db.ListMessages(ctx, r.Namespace, p)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	items, err := convertAll(records, func(m store.Message) (gen.Message, error) {
		return s.messageAnswer(ctx, m, value(r.Params.FetchData))
	})
	if err != nil {
		return nil, err
	}
	headers := gen.ListMessages200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListMessages200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListMessages200JSONResponse{Body: items, Headers: headers}, nil
}

// GetMessage returns a message, with the values of its data when asked to.
func (s *Server) GetMessage(ctx context.Context, r gen.GetMessageRequestObject) (gen.GetMessageResponseObject, error) {
	m, err := s.db.Message(ctx, r.Namespace, r.ID)
	if err != nil {
		return nil, fmt.Errorf("get a message: %w", err)
	}
	out, err := s.messageAnswer(ctx, m, value(r.Params.Data) || value(r.Params.FetchData))
	if err != nil {
		return nil, err
	}
	ns, err := s.namespace(r.Namespace)
	if err != nil {
		return nil, err
	}
	pin, err := s.db.MessagePin(ctx, ns.Chain.Name, &m)
	if err != nil {
		return nil, fmt.Errorf("get the pin of a message: %w", err)
	}
	if pin != nil {
		out.Pin = &gen.MessagePin{
			Contract: contract.FormatAddress(ns.Network.PinContract()), TransactionHash: common.BytesToHash(pin.TxHash).Hex(),
			BlockNumber: strconv.FormatInt(pin.BlockNumber, 10), BatchHash: hex.EncodeToString(pin.Hash), Location: pin.Location,
		}
	}
	return gen.GetMessage200JSONResponse(out), nil
}

// GetMessageData returns the data of a message.
func (s *Server) GetMessageData(ctx context.Context, r gen.GetMessageDataRequestObject) (gen.GetMessageDataResponseObject, error) {
	if _, err := s.db.Message(ctx, r.Namespace, r.ID); err != nil {
		return nil, fmt.Errorf("find a message: %w", err)
	}
	data, err := s.db.MessageData(ctx, r.Namespace, r.ID)
	if err != nil {
		return nil, fmt.Errorf("get the data of a message: %w", err)
	}
	out := make(gen.GetMessageData200JSONResponse, 0, len(data))
	for _, d := range data {
		out = append(out, toData(d))
	}
	return out, nil
}

// GetData returns one piece of data.
func (s *Server) GetData(ctx context.Context, r gen.GetDataRequestObject) (gen.GetDataResponseObject, error) {
	d, err := s.db.Data(ctx, r.Namespace, r.ID)
	if err != nil {
		return nil, fmt.Errorf("get data: %w", err)
	}
	return gen.GetData200JSONResponse(toData(d)), nil
}

func toData(d store.Data) gen.Data {
	return gen.Data{
		ID: d.ID, Namespace: d.Namespace, Hash: hex.EncodeToString(d.Hash), Created: d.Created.UTC(), Value: json.RawMessage(d.Value),
	}
}

// messageAnswer makes the answer from a record; values says whether the data's values go with it.
func (s *Server) messageAnswer(ctx context.Context, m store.Message, values bool) (gen.Message, error) {
	var out gen.Message
	body, err := m.Body()
	if err != nil {
		return out, fmt.Errorf("read message %s: %w", m.ID, err)
	}
	if err := json.Unmarshal([]byte(body), &out); err != nil {
		return out, fmt.Errorf("read message %s: %w", m.ID, err)
	}
	if !values {
		return out, nil
	}
	data, err := s.db.MessageData(ctx, m.Namespace, m.ID)
	if err != nil {
		return out, fmt.Errorf("get the data of message %s: %w", m.ID, err)
	}
	byID := make(map[uuid.UUID]string, len(data))
	for _, d := range data {
		byID[d.ID] = d.Value
	}
	for i := range out.Data {
		if v, ok := byID[out.Data[i].ID]; ok {
			out.Data[i].Value = json.RawMessage(v)
		}
	}
	return out, nil
}
