package handlers

import (
	"fmt"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// encode makes of the request what would be stored, without the estimate.
func (c call) encode() (store.NewOperation, callOptions, error) {
	none := store.NewOperation{}
	key, err := c.signingKey()
	if err != nil {
		return none, callOptions{}, err
	}
	options, err := parseOptions(c.options, forInvoke)
	if err != nil {
		return none, options, err
	}
	if options.value != nil && options.value.Sign() > 0 && !c.method.Payable() {
		return none, options, pactwire.Invalid("options.value", "must be 0 or be left out: %s is not payable", c.method.Signature)
	}
	data, err := c.method.Encode(c.input)
	if err != nil {
		return none, options, fmt.Errorf("encode the input: %w", err)
	}
	return store.NewOperation{
		Namespace: c.ns.Name, Type: store.OpInvoke, Chain: c.ns.Chain.Name, Key: key, To: &c.to, Data: data, Value: options.value,
		Options: options.wishes(), Errors: c.errors,
	}, options, nil
}

// signingKey is the key that the request names, or the namespace's.
func (c call) signingKey() (common.Address, error) {
	if c.key == nil || *c.key == "" {
		return c.ns.Key, nil
	}
	address, err := contract.ParseAddress(*c.key)
	if err != nil {
		return address, pactwire.Invalid("key", "%s", err.Error())
	}
	for _, known := range c.ns.Chain.Keys {
		if known == address {
			return address, nil
		}
	}
	return address, pactwire.Invalid("key", "must be an address that this node holds the key of")
}
