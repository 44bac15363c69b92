package chain

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// CallRequest is a call that changes nothing: a query, or the estimate of a transaction.
type CallRequest struct {
	From                                         *common.Address
	To                                           common.Address
	Create                                       bool // a contract creation: To is not used
	Data                                         []byte
	Value                                        *big.Int
	Gas                                          uint64 // 0: the node's own limit
	GasPrice, MaxFeePerGas, MaxPriorityFeePerGas *big.Int
	Block                                        string // "" for latest, a tag, or a number as 0x hex
}

// MarshalJSON writes the request as the first argument of eth_call.
func (r CallRequest) MarshalJSON() ([]byte, error) {
	call := struct {
		From                 *common.Address `json:"from,omitempty"`
		To                   *common.Address `json:"to,omitempty"`
		Data                 hexutil.Bytes   `json:"data,omitempty"`
		Value                *hexutil.Big    `json:"value,omitempty"`
		Gas                  hexutil.Uint64  `json:"gas,omitempty"`
		GasPrice             *hexutil.Big    `json:"gasPrice,omitempty"`
		MaxFeePerGas         *hexutil.Big    `json:"maxFeePerGas,omitempty"`
		MaxPriorityFeePerGas *hexutil.Big    `json:"maxPriorityFeePerGas,omitempty"`
	}{
		From: r.From, Data: r.Data, Value: (*hexutil.Big)(r.Value), Gas: hexutil.Uint64(r.Gas), GasPrice: (*hexutil.Big)(r.GasPrice),
		MaxFeePerGas: (*hexutil.Big)(r.MaxFeePerGas), MaxPriorityFeePerGas: (*hexutil.Big)(r.MaxPriorityFeePerGas),
	}
	if !r.Create {
		call.To = &r.To
	}
	out, err := json.Marshal(call)
	if err != nil {
		return nil, fmt.Errorf("encode a call: %w", err)
	}
	return out, nil
}

func (r CallRequest) block() string {
	if r.Block == "" {
		return "latest"
	}
	return r.Block
}

// Call executes the request without a transaction and returns what the contract returned. A revert comes back as *RevertError.
// Calls that are made at the same time travel together.
func (c *Client) Call(ctx context.Context, r CallRequest) ([]byte, error) {
	var out hexutil.Bytes
	if err := c.calls.do(ctx, &out, "eth_call", r, r.block()); err != nil {
		return nil, callError(err)
	}
	return out, nil
}

// EstimateGas tells how much gas the request would need as a transaction. A revert comes back as *RevertError.
func (c *Client) EstimateGas(ctx context.Context, r CallRequest) (uint64, error) {
	var gas hexutil.Uint64
	args := []any{r}
	if r.Block != "" { // some nodes know no second argument
		args = append(args, r.Block)
	}
	if err := c.calls.do(ctx, &gas, "eth_estimateGas", args...); err != nil {
		return 0, callError(err)
	}
	return uint64(gas), nil
}
