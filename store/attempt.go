package store

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// Why a transaction was signed.
const (
	AttemptSubmit  = "submit"  // the first one
	AttemptNonce   = "nonce"   // another program had used the nonce of the one before up
	AttemptBump    = "bump"    // unmined for long, or its fee was refused
	AttemptSpeedUp = "speedup" // asked for
	AttemptCancel  = "cancel"  // asked for: it does nothing but use the nonce up
)

// Attempt is a transaction that was signed for an operation.
type Attempt struct {
	Hash                 common.Hash
	Nonce                uint64
	GasPrice             *big.Int // or the next two
	MaxFeePerGas         *big.Int
	MaxPriorityFeePerGas *big.Int
	Created              time.Time
	Reason               string
	Asked                bool   // the fees are the caller's wish
	Refused              string // why no node took it, in the node's words; empty when one did, or when nobody knows
}

type attemptJSON struct {
	Hash    common.Hash `json:"hash"`
	Nonce   uint64      `json:"nonce"`
	Price   *big.Int    `json:"price,omitempty"`
	Max     *big.Int    `json:"max,omitempty"`
	Tip     *big.Int    `json:"tip,omitempty"`
	Created int64       `json:"at"` // microseconds
	Reason  string      `json:"why"`
	Asked   bool        `json:"asked,omitempty"`
	Refused string      `json:"refused,omitempty"`
}

// encode is what json.Marshal makes of attemptJSON; one is written for each transaction, so it is written by hand.
func (a *Attempt) encode() string {
	b := make([]byte, 0, 192)
	b = append(b, `{"hash":"`...)
	b = append(b, a.Hash.Hex()...)
	b = append(b, `","nonce":`...)
	b = strconv.AppendUint(b, a.Nonce, 10)
	for _, v := range []struct {
		name string
		n    *big.Int
	}{{"price", a.GasPrice}, {"max", a.MaxFeePerGas}, {"tip", a.MaxPriorityFeePerGas}} {
		if v.n != nil {
			b = append(b, `,"`+v.name+`":`...)
			b = v.n.Append(b, 10)
		}
	}
	b = append(b, `,"at":`...)
	b = strconv.AppendInt(b, a.Created.UnixMicro(), 10)
	b = append(b, `,"why":"`...)
	b = append(b, a.Reason...)
	b = append(b, '"')
	if a.Asked {
		b = append(b, `,"asked":true`...)
	}
	if a.Refused != "" {
		text, _ := json.Marshal(a.Refused) // text always encodes
		b = append(b, `,"refused":`...)
		b = append(b, text...)
	}
	return string(append(b, '}'))
}

func decodeAttempts(texts []string) ([]Attempt, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	all := make([]Attempt, len(texts))
	for i, text := range texts {
		var a attemptJSON
		if err := json.Unmarshal([]byte(text), &a); err != nil {
			return nil, fmt.Errorf("decode an attempt: %w", err)
		}
		all[i] = Attempt{
			Hash: a.Hash, Nonce: a.Nonce, GasPrice: a.Price, MaxFeePerGas: a.Max, MaxPriorityFeePerGas: a.Tip,
			Created: time.UnixMicro(a.Created).UTC(), Reason: a.Reason, Asked: a.Asked, Refused: a.Refused,
		}
	}
	return all, nil
}
