package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// call is an invoke or a query, whichever of the three ways it came in.
type call struct {
	ns      *Namespace
	method  *contract.CompiledMethod
	errors  []contract.Error          // that the method may revert with
	events  []*contract.CompiledEvent // of the interface, to read logs
	to      common.Address
	api     string     // name of the API, when one was used
	iface   *uuid.UUID // the interface, when one was used
	input   json.RawMessage
	options json.RawMessage
	key     *string
	idempotencyKey
}

// idempotencyKey is the key from the header and from the body; they mean the same.
type idempotencyKey struct{ header, body *string }

func (k idempotencyKey) value() (string, error) {
	header, body := value(k.header), value(k.body)
	if header != "" && body != "" && header != body {
		return "", pactwire.Invalid("idempotencyKey", "differs from the header Idempotency-Key; give it once")
	}
	if body != "" {
		return body, nil
	}
	return header, nil
}

// InvokeContractAPI invokes a method of a named API.
func (s *Server) InvokeContractAPI(ctx context.Context, r gen.InvokeContractAPIRequestObject) (gen.InvokeContractAPIResponseObject, error) {
	c, err := s.apiCall(ctx, r.Namespace, r.APIName, r.Method, r.Body)
	if err != nil {
		return nil, err
	}
	if value(r.Params.DryRun) {
		out, err := s.dryRun(ctx, c)
		return gen.InvokeContractAPI200ApplicationVndPactwireDryrunPlusJSONResponse{
			InvokeOutcomeApplicationVndPactwireDryrunPlusJSONResponse: gen.InvokeOutcomeApplicationVndPactwireDryrunPlusJSONResponse(out),
		}, err
	}
	c.header = r.Params.IdempotencyKey
	op, err := s.invoke(ctx, c, value(r.Params.Confirm))
	if err != nil {
		return nil, err
	}
	if value(r.Params.Confirm) {
		return gen.InvokeContractAPI200JSONResponse{InvokeOutcomeJSONResponse: gen.InvokeOutcomeJSONResponse(toOperation(op))}, nil
	}
	return gen.InvokeContractAPI202JSONResponse{InvocationJSONResponse: gen.InvocationJSONResponse{ID: op.ID}}, nil
}

// InvokeContractInterface invokes a method of an interface at a location.
func (s *Server) InvokeContractInterface(ctx context.Context, r gen.InvokeContractInterfaceRequestObject) (gen.InvokeContractInterfaceResponseObject, error) {
	c, err := s.interfaceCall(ctx, r.Namespace, r.InterfaceID, r.Method, r.Body)
	if err != nil {
		return nil, err
	}
	if value(r.Params.DryRun) {
		out, err := s.dryRun(ctx, c)
		return gen.InvokeContractInterface200ApplicationVndPactwireDryrunPlusJSONResponse{
			InvokeOutcomeApplicationVndPactwireDryrunPlusJSONResponse: gen.InvokeOutcomeApplicationVndPactwireDryrunPlusJSONResponse(out),
		}, err
	}
	c.header = r.Params.IdempotencyKey
	op, err := s.invoke(ctx, c, value(r.Params.Confirm))
	if err != nil {
		return nil, err
	}
	if value(r.Params.Confirm) {
		return gen.InvokeContractInterface200JSONResponse{InvokeOutcomeJSONResponse: gen.InvokeOutcomeJSONResponse(toOperation(op))}, nil
	}
	return gen.InvokeContractInterface202JSONResponse{InvocationJSONResponse: gen.InvocationJSONResponse{ID: op.ID}}, nil
}

// InvokeContract invokes a method that the request describes.
func (s *Server) InvokeContract(ctx context.Context, r gen.InvokeContractRequestObject) (gen.InvokeContractResponseObject, error) {
	c, err := s.inlineCall(r.Namespace, r.Body)
	if err != nil {
		return nil, err
	}
	if value(r.Params.DryRun) {
		out, err := s.dryRun(ctx, c)
		return gen.InvokeContract200ApplicationVndPactwireDryrunPlusJSONResponse{
			InvokeOutcomeApplicationVndPactwireDryrunPlusJSONResponse: gen.InvokeOutcomeApplicationVndPactwireDryrunPlusJSONResponse(out),
		}, err
	}
	c.header = r.Params.IdempotencyKey
	op, err := s.invoke(ctx, c, value(r.Params.Confirm))
	if err != nil {
		return nil, err
	}
	if value(r.Params.Confirm) {
		return gen.InvokeContract200JSONResponse{InvokeOutcomeJSONResponse: gen.InvokeOutcomeJSONResponse(toOperation(op))}, nil
	}
	return gen.InvokeContract202JSONResponse{InvocationJSONResponse: gen.InvocationJSONResponse{ID: op.ID}}, nil
}

// apiCall resolves a call through a named API.
func (s *Server) apiCall(ctx context.Context, namespace, name, method string, body *gen.InvokeRequest) (call, error) {
	ns, err := s.namespace(namespace)
	if err != nil {
		return call{}, err
	}
	api, err := s.findAPI(ctx, namespace, name)
	if err != nil {
		return call{}, err
	}
	compiled, err := s.compile(ctx, namespace, api.Interface)
	if err != nil {
		return call{}, err
	}
	m, err := compiled.Method(method)
	if err != nil {
		return call{}, fmt.Errorf("find a method: %w", err)
	}
	to, err := locate(api.Location, body.Location)
	if err != nil {
		return call{}, err
	}
	return call{
		ns: ns, method: m, errors: compiled.errors, events: compiled.Events(), to: to, api: api.Name, iface: &api.Interface, input: body.Input,
		options: body.Options, key: body.Key, idempotencyKey: idempotencyKey{body: body.IdempotencyKey},
	}, nil
}

// interfaceCall resolves a call through an interface.
func (s *Server) interfaceCall(ctx context.Context, namespace string, id uuid.UUID, method string, body *gen.InvokeRequest) (call, error) {
	ns, err := s.namespace(namespace)
	if err != nil {
		return call{}, err
	}
	record, err := s.db.Interface(ctx, namespace, id)
	if err != nil {
		return call{}, fmt.Errorf("find an interface: %w", err)
	}
	compiled, err := s.compileRecord(record)
	if err != nil {
		return call{}, err
	}
	m, err := compiled.Method(method)
	if err != nil {
		return call{}, fmt.Errorf("find a method: %w", err)
	}
	if body.Location == nil {
		return call{}, pactwire.Invalid("location", "is required: the address of the contract")
	}
	to, err := locate(nil, body.Location)
	if err != nil {
		return call{}, err
	}
	return call{
		ns: ns, method: m, errors: compiled.errors, events: compiled.Events(), to: to, iface: &id, input: body.Input, options: body.Options, key: body.Key,
		idempotencyKey: idempotencyKey{body: body.IdempotencyKey},
	}, nil
}

// inlineCall resolves a call that brings its method along.
func (s *Server) inlineCall(namespace string, body *gen.InlineInvokeRequest) (call, error) {
	ns, err := s.namespace(namespace)
	if err != nil {
		return call{}, err
	}
	custom := fromErrors(body.Errors)
	m, err := contract.CompileMethod(fromMethod(body.Method), custom)
	if err != nil {
		return call{}, fmt.Errorf("read the method: %w", err)
	}
	to, err := parseLocation(&body.Location)
	if err != nil {
		return call{}, err
	}
	return call{
		ns: ns, method: m, errors: custom, to: to, input: body.Input, options: body.Options, key: body.Key,
		idempotencyKey: idempotencyKey{body: body.IdempotencyKey},
	}, nil
}

// invoke checks, encodes, estimates and stores the transaction; with wait it returns the outcome.
func (s *Server) invoke(ctx context.Context, c call, wait bool) (store.Operation, error) {
	id := store.NewID()
	if !wait {
		return s.accept(ctx, c, id)
	}
	awaited := s.db.Await(id)
	defer awaited.Close()
	op, err := s.accept(ctx, c, id)
	switch {
	case err != nil:
		return op, err
	case op.ID != id: // it was accepted before, and may have ended
		op, err = s.db.AwaitOperation(ctx, op.ID)
	default:
		op, err = awaited.Outcome(ctx)
	}
	return op, err //nolint:wrapcheck // says what was done
}

// accept stores the transaction as an operation with the id, or returns the one that its idempotency key was first used for.
func (s *Server) accept(ctx context.Context, c call, id uuid.UUID) (store.Operation, error) {
	none := store.Operation{}
	n, options, err := c.encode()
	if err != nil {
		return none, err
	}
	repeat, err := c.idempotencyKey.value()
	if err != nil {
		return none, err
	}
	n.ID, n.Input, n.IdempotencyKey = id, c.describe(n.Key), repeat
	if repeat != "" {
		n.BodyHash = fingerprint(n)
		// The chain may have moved on since: a repeat must not be estimated anew.
		if op, known, err := s.db.RepeatedOperation(ctx, n); known || err != nil {
			return op, err //nolint:wrapcheck // says what was done
		}
	}
	if err := s.requireCode(ctx, c.ns.Chain, c.to); err != nil {
		return none, err
	}
	if n.Gas, err = c.ns.Chain.Client.EstimateGasAgain(ctx, options.request(n.Key, c.to, n.Data)); err != nil {
		return none, c.failed(err)
	}
	op, _, err := c.ns.Chain.Submitter.Accept(ctx, n)
	if err != nil {
		return none, fmt.Errorf("accept an invocation: %w", err)
	}
	return op, nil
}

// describe is the operation's input as a person reads it later.
func (c call) describe(key common.Address) json.RawMessage {
	type location struct {
		Address string `json:"address"`
	}
	out, err := json.Marshal(struct {
		Type      string          `json:"type"`
		API       string          `json:"api,omitempty"`
		Interface *uuid.UUID      `json:"interface,omitempty"`
		Location  location        `json:"location"`
		Method    string          `json:"method"`
		Input     json.RawMessage `json:"input,omitempty"`
		Options   json.RawMessage `json:"options,omitempty"`
		Key       string          `json:"key"`
	}{"invoke", c.api, c.iface, location{contract.FormatAddress(c.to)}, c.method.Signature, c.input, c.options, contract.FormatAddress(key)})
	if err != nil {
		return nil // the input was valid JSON a moment ago
	}
	return out
}

// fingerprint tells two requests with the same idempotency key apart.
func fingerprint(n store.NewOperation) []byte {
	text, err := json.Marshal(struct {
		Key     common.Address
		To      *common.Address
		Data    hexutil.Bytes
		Value   string
		Options store.TxOptions
	}{n.Key, n.To, n.Data, fmt.Sprint(n.Value), n.Options})
	if err != nil {
		return nil
	}
	sum := sha256.Sum256(text)
	return sum[:]
}

// failed words what the chain said of a call.
func (c call) failed(err error) error {
	return failed(err, c.method.Signature, c.method.Errors.Decode)
}

func failed(err error, what string, decode func([]byte) *pactwire.Revert) error {
	var reverted *chain.RevertError
	if !errors.As(err, &reverted) {
		return fmt.Errorf("try %s on the chain: %w", what, err)
	}
	revert := decode(reverted.Data)
	message := "The contract reverted without giving a reason."
	if revert != nil && revert.Reason != "" {
		message = "The contract reverted: " + revert.Reason
	}
	return &pactwire.Error{Kind: pactwire.KindReverted, Code: "reverted", Message: message, Revert: revert, Err: err}
}

// requireCode refuses an address without a contract: a transaction to it would succeed and do nothing.
func (s *Server) requireCode(ctx context.Context, on *Chain, address common.Address) error {
	key := on.Name + "/" + address.Hex()
	if _, known := s.contracts.Get(key); known {
		return nil
	}
	var code hexutil.Bytes
	if err := on.Client.CallContext(ctx, &code, "eth_getCode", address, "latest"); err != nil {
		return fmt.Errorf("look for a contract at %s: %w", address, err)
	}
	if len(code) == 0 {
		return &pactwire.Error{
			Kind: pactwire.KindInvalid, Code: "no_contract", Message: "There is no contract at " + contract.FormatAddress(address) + ".",
			Fields: []pactwire.Field{{Path: "location.address", Message: "must be the address of a contract"}},
		}
	}
	s.contracts.Add(key, struct{}{})
	return nil
}
