package handlers

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
	"github.com/pactwire/pactwire/store"
)

// callOptions are the options of an invoke or a query (decisions, section 5).
type callOptions struct {
	value, gasPrice, maxFeePerGas, maxPriorityFeePerGas *big.Int
	gas, nonce                                          *uint64
	block                                               string // query: "" for the latest
}

// purpose tells an invoke from a query: each has an option that the other does not.
type purpose string

const (
	forInvoke purpose = "invoke"
	forQuery  purpose = "query"
	forChange purpose = "change" // of an operation: fees only
)

// parseOptions reads the options of a request. Unknown ones are refused.
func parseOptions(raw json.RawMessage, use purpose) (callOptions, error) {
	var o callOptions
	var given map[string]json.RawMessage
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || string(raw) == "null" {
		return o, nil
	}
	if err := json.Unmarshal(raw, &given); err != nil {
		return o, pactwire.Invalid("options", "must be an object")
	}
	integers := map[string]**big.Int{
		"value": &o.value, "gasPrice": &o.gasPrice, "maxFeePerGas": &o.maxFeePerGas, "maxPriorityFeePerGas": &o.maxPriorityFeePerGas,
	}
	small := map[string]**uint64{"gas": &o.gas}
	switch use {
	case forInvoke:
		small["nonce"] = &o.nonce
	case forChange:
		delete(integers, "value")
		clear(small)
	}
	for name, value := range given {
		switch {
		case integers[name] != nil:
			n, err := contract.ParseUnsigned("options."+name, value, 256)
			if err != nil {
				return o, err //nolint:wrapcheck // names the field
			}
			*integers[name] = n
		case small[name] != nil:
			n, err := contract.ParseUnsigned("options."+name, value, 64)
			if err != nil {
				return o, err //nolint:wrapcheck // names the field
			}
			v := n.Uint64()
			*small[name] = &v
		case name == "blockNumber" && use == forQuery:
			block, err := parseBlock(value)
			if err != nil {
				return o, err
			}
			o.block = block
		default:
			known := slices.Collect(maps.Keys(integers))
			known = slices.AppendSeq(known, maps.Keys(small))
			if use == forQuery {
				known = append(known, "blockNumber")
			}
			slices.Sort(known)
			return o, pactwire.Invalid("options."+name, "is not an option of this request; there are %s", strings.Join(known, ", "))
		}
	}
	if o.gasPrice != nil && (o.maxFeePerGas != nil || o.maxPriorityFeePerGas != nil) {
		return o, pactwire.Invalid("options.gasPrice", "cannot be given together with maxFeePerGas or maxPriorityFeePerGas")
	}
	if o.maxFeePerGas != nil && o.maxPriorityFeePerGas != nil && o.maxPriorityFeePerGas.Cmp(o.maxFeePerGas) > 0 {
		return o, pactwire.Invalid("options.maxPriorityFeePerGas", "must not be above maxFeePerGas")
	}
	if o.gas != nil && *o.gas == 0 {
		return o, pactwire.Invalid("options.gas", "must be above 0")
	}
	return o, nil
}

var blockTags = map[string]bool{"latest": true, "pending": true, "safe": true, "finalized": true, "earliest": true}

// parseBlock reads a block number or a tag.
func parseBlock(raw json.RawMessage) (string, error) {
	var tag string
	if json.Unmarshal(raw, &tag) == nil && blockTags[tag] {
		return tag, nil
	}
	n, err := contract.ParseUnsigned("options.blockNumber", raw, 63)
	if err != nil {
		return "", pactwire.Invalid("options.blockNumber", "must be a block number, or latest, pending, safe, finalized or earliest")
	}
	return "0x" + n.Text(16), nil
}

// request makes the call that the options stand for.
func (o callOptions) request(from, to common.Address, data []byte) chain.CallRequest {
	r := chain.CallRequest{
		From: &from, To: to, Data: data, Value: o.value, GasPrice: o.gasPrice, MaxFeePerGas: o.maxFeePerGas,
		MaxPriorityFeePerGas: o.maxPriorityFeePerGas, Block: o.block,
	}
	if o.gas != nil {
		r.Gas = *o.gas
	}
	return r
}

// wishes are the options that go into a transaction.
func (o callOptions) wishes() store.TxOptions {
	return store.TxOptions{
		Gas: o.gas, GasPrice: o.gasPrice, MaxFeePerGas: o.maxFeePerGas, MaxPriorityFeePerGas: o.maxPriorityFeePerGas, Nonce: o.nonce,
	}
}

// parseLocation reads a contract's address.
func parseLocation(l *gen.Location) (common.Address, error) {
	address, err := contract.ParseAddress(l.Address)
	if err != nil {
		return address, pactwire.Invalid("location.address", "%s", err.Error())
	}
	return address, nil
}

// locate decides which contract a request means: the API's own location, or the one that the request brings.
func locate(own []byte, asked *gen.Location) (common.Address, error) {
	if asked == nil {
		if own == nil {
			return common.Address{}, pactwire.Invalid("location", "is required: the API was made without a location, so each request names the contract's address")
		}
		return common.BytesToAddress(own), nil
	}
	address, err := parseLocation(asked)
	if err != nil {
		return address, err
	}
	if own != nil && address != common.BytesToAddress(own) {
		return address, pactwire.Invalid("location.address", "must be the API's own location %s or be left out", store.Account(own))
	}
	return address, nil
}
