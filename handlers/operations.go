package handlers

import (
	"context"
	"fmt"

	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// GetOperation returns an operation.
func (s *Server) GetOperation(ctx context.Context, r gen.GetOperationRequestObject) (gen.GetOperationResponseObject, error) {
	op, err := s.db.Operation(ctx, r.Namespace, r.ID)
	if err != nil {
		return nil, fmt.Errorf("get an operation: %w", err)
	}
	return gen.GetOperation200JSONResponse(toOperation(op)), nil
}

// ListOperations lists operations.
func (s *Server) ListOperations(ctx context.Context, r gen.ListOperationsRequestObject) (gen.ListOperationsResponseObject, error) {
	p := page(ctx)
	items, info, err := s.listOperations(ctx, r.Namespace, p)
	if err != nil {
		return nil, err
	}
	headers := gen.ListOperations200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListOperations200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListOperations200JSONResponse{Body: items, Headers: headers}, nil
}

// ListTransactionOperations lists the operations of a transaction.
func (s *Server) ListTransactionOperations(ctx context.Context, r gen.ListTransactionOperationsRequestObject) (gen.ListTransactionOperationsResponseObject, error) {
	if _, err := s.db.Transaction(ctx, r.Namespace, r.ID); err != nil {
		return nil, fmt.Errorf("find a transaction: %w", err)
	}
	p := page(ctx)
	p.Filters["tx"] = r.ID.String()
	items, info, err := s.listOperations(ctx, r.Namespace, p)
	if err != nil {
		return nil, err
	}
	headers := gen.ListTransactionOperations200ResponseHeaders{XNextAfter: present(info.Next)}
	if p.Count {
		return gen.ListTransactionOperations200ApplicationVndPactwirePagePlusJSONResponse{Body: counted(items, info.Total), Headers: headers}, nil
	}
	return gen.ListTransactionOperations200JSONResponse{Body: items, Headers: headers}, nil
}

func (s *Server) listOperations(ctx context.Context, namespace string, p store.Page) ([]gen.Operation, store.PageInfo, error) {
	records, info, err := s.db.ListOperations(ctx, namespace, p)
	if err != nil {
		return nil, info, fmt.Errorf("list operations: %w", err)
	}
	items := make([]gen.Operation, 0, len(records))
	for _, record := range records {
		items = append(items, toOperation(record))
	}
	return items, info, nil
}

// GetTransaction returns a transaction of this node.
func (s *Server) GetTransaction(ctx context.Context, r gen.GetTransactionRequestObject) (gen.GetTransactionResponseObject, error) {
	t, err := s.db.Transaction(ctx, r.Namespace, r.ID)
	if err != nil {
		return nil, fmt.Errorf("get a transaction: %w", err)
	}
	hashes := t.BlockchainIDs
	if hashes == nil {
		hashes = []string{}
	}
	return gen.GetTransaction200JSONResponse{
		ID: t.ID, Namespace: t.Namespace, Type: t.Type, Created: t.Created.UTC(), IdempotencyKey: t.IdempotencyKey, BlockchainIds: hashes,
	}, nil
}

func toOperation(op store.Operation) gen.Operation {
	out := gen.Operation{
		ID: op.ID, Namespace: op.Namespace, Tx: op.Transaction, Type: op.Type, Status: op.Status, Plugin: op.Plugin, Input: op.Input,
		Output: op.Output, Error: present(op.Error), Retry: op.Retry, Created: op.Created.UTC(), Updated: op.Updated.UTC(),
	}
	if op.Revert != nil {
		out.Revert = toRevert(op.Revert)
	}
	if op.TransactionHash != nil {
		out.TransactionHash = present(op.TransactionHash.Hex())
	}
	if mined, ok := op.Mined(); ok {
		out.BlockNumber, out.GasUsed = present(mined.BlockNumber), present(mined.GasUsed)
	}
	for i := range op.Attempts {
		out.Attempts = append(out.Attempts, toAttempt(&op.Attempts[i]))
	}
	return out
}
