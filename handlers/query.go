package handlers

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
)

// QueryContractAPI queries a method of a named API.
func (s *Server) QueryContractAPI(ctx context.Context, r gen.QueryContractAPIRequestObject) (gen.QueryContractAPIResponseObject, error) {
	c, err := s.apiCall(ctx, r.Namespace, r.APIName, r.Method, r.Body)
	if err != nil {
		return nil, err
	}
	out, err := s.query(ctx, c)
	return written{body: out}, err
}

// QueryContractInterface queries a method of an interface at a location.
func (s *Server) QueryContractInterface(ctx context.Context, r gen.QueryContractInterfaceRequestObject) (gen.QueryContractInterfaceResponseObject, error) {
	c, err := s.interfaceCall(ctx, r.Namespace, r.InterfaceID, r.Method, r.Body)
	if err != nil {
		return nil, err
	}
	out, err := s.query(ctx, c)
	return written{body: out}, err
}

// QueryContract queries a method that the request describes.
func (s *Server) QueryContract(ctx context.Context, r gen.QueryContractRequestObject) (gen.QueryContractResponseObject, error) {
	c, err := s.inlineCall(r.Namespace, r.Body)
	if err != nil {
		return nil, err
	}
	out, err := s.query(ctx, c)
	return written{body: out}, err
}

func (s *Server) query(ctx context.Context, c call) (json.RawMessage, error) {
	from, err := c.caller()
	if err != nil {
		return nil, err
	}
	options, err := parseOptions(c.options, forQuery)
	if err != nil {
		return nil, err
	}
	if options.value != nil && options.value.Sign() > 0 && !c.method.Payable() {
		return nil, pactwire.Invalid("options.value", "must be 0 or be left out: %s is not payable", c.method.Signature)
	}
	data, err := c.method.Encode(c.input)
	if err != nil {
		return nil, fmt.Errorf("encode the input: %w", err)
	}
	returned, err := c.ns.Chain.Client.Call(ctx, options.request(from, c.to, data))
	if err != nil {
		return nil, c.failed(err)
	}
	if len(returned) == 0 {
		// Nothing came back: either the method returns nothing, or there is no contract that could.
		if err := s.requireCode(ctx, c.ns.Chain, c.to); err != nil {
			return nil, err
		}
	}
	decoded, err := c.method.DecodeOutput(returned)
	if err != nil {
		return nil, fmt.Errorf("decode the output: %w", err)
	}
	return decoded, nil
}

// caller is the address that a query comes from: any address will do.
func (c call) caller() (common.Address, error) {
	if c.key == nil || *c.key == "" {
		return c.ns.Key, nil
	}
	address, err := contract.ParseAddress(*c.key)
	if err != nil {
		return address, pactwire.Invalid("key", "%s", err.Error())
	}
	return address, nil
}
