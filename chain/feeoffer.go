package chain

import (
	"context"
	"math/big"

	"github.com/pactwire/pactwire/store"
)

// FeeOffer is what would be offered for a transaction at the moment, in wei: GasPrice, or the other two.
type FeeOffer struct {
	GasPrice, MaxFeePerGas, MaxPriorityFeePerGas *big.Int
	BaseFee                                      *big.Int // nil on a chain without
}

// SuggestFees tells what would be offered for a transaction with these wishes; limit bounds what is not a wish, nil does not.
func (c *Client) SuggestFees(ctx context.Context, limit *big.Int, wishes store.TxOptions) (FeeOffer, error) {
	market := &feeMarket{client: c, limit: limit}
	suggested, err := market.suggest(ctx)
	if err != nil {
		return FeeOffer{}, err
	}
	head, err := c.Head(ctx)
	if err != nil {
		return FeeOffer{}, err
	}
	offer := suggested.chosen(wishes)
	return FeeOffer{GasPrice: offer.price, MaxFeePerGas: offer.max, MaxPriorityFeePerGas: offer.tip, BaseFee: head.BaseFee}, nil
}

// Highest is the most that a unit of gas can cost.
func (o FeeOffer) Highest() *big.Int {
	if o.GasPrice != nil {
		return o.GasPrice
	}
	return o.MaxFeePerGas
}

// Expected is what a unit of gas costs in a block like the newest.
func (o FeeOffer) Expected() *big.Int {
	if o.GasPrice != nil || o.BaseFee == nil {
		return o.Highest()
	}
	price := new(big.Int).Add(o.BaseFee, o.MaxPriorityFeePerGas)
	if price.Cmp(o.MaxFeePerGas) > 0 {
		return o.MaxFeePerGas
	}
	return price
}
