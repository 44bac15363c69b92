package chain

import (
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/rpc"
)

// sendVerdict is what a node's answer to eth_sendRawTransaction means for us.
type sendVerdict int

const (
	sendAccepted    sendVerdict = iota // the node has it
	sendRetry                          // no fault of the transaction: pool full, node syncing, an earlier nonce still missing
	sendUnknown                        // refused, for a reason that we do not know
	sendNonceTooLow                    // a transaction with this nonce has been mined: ours, or a foreign one
	sendNonceTaken                     // another transaction with this nonce waits in the pool
	sendFeeTooLow                      // the same with a higher fee would be taken
	sendNoFunds                        // the account cannot pay
	sendInvalid                        // it will never be taken
)

// sendTexts are the words of geth, Erigon, Besu, Nethermind, anvil and Hardhat, lower case. The first that fits counts: the order matters where one
// text holds another.
var sendTexts = []struct {
	verdict sendVerdict
	texts   []string
}{
	{sendAccepted, []string{
		"already known", "known transaction", "already imported", "alreadyknown", "already in mempool", "transaction already exists",
		"transaction_already_known", "alreadyexists", "duplicate hash", "already in the txpool",
	}},
	{sendNonceTooLow, []string{"nonce too low", "nonce_too_low", "oldnonce", "noncetoolow", "nonce is too low", "invalid nonce; got", "nonce below"}},
	{sendNonceTaken, []string{
		"replacement transaction underpriced", "transaction_replacement_underpriced", "replacementnotallowed", "replacement not allowed",
		"could not replace existing tx", "replacement_underpriced", "gas price too low to replace", "noncetaken",
	}},
	{sendRetry, []string{
		"future transaction tries to replace", "nonce too high", "nonce_too_far", "noncetoofar", "nonce too far", "too distant from current sender nonce",
		"noncegap", "nonce gap", "nonce_too_distant", "in-flight transaction limit", "transaction pool is full", "txpool is full", "pool is full",
		"account limit exceeded", "exceeds account limit", "txpool limit", "mempool is full", "insufficientslots", "feetoolowtocompete",
		"too many requests", "rate limit", "syncing", "try again", "timeout", "timed out", "lower_nonce_invalid_transaction_exists",
		"txpool_disabled", "gapped-nonce tx from delegated accounts", "internal error", "block is out of range",
	}},
	{sendInvalid, []string{
		"intrinsic gas too low", "intrinsic_gas_exceeds", "intrinsic gas exceeds", "gaslimittoolow", "floor data gas", "gas limit too low",
		"exceeds block gas limit", "exceeds_block_gas_limit", "gaslimitexceeded", "gas limit is", "gas limit too high", "transaction gas limit",
		"oversized data", "txsizeexceeded", "transaction size", "max initcode size exceeded", "initcode", "tx fee", "exceeds the configured cap", "tx_feecap",
		"invalid sender", "invalid chain id", "wrong_chain_id", "invalid signature", "invalidtransaction", "tip above", "higher than max fee",
		"max_priority_fee_per_gas_exceeds", "transaction type not supported", "invalid_transaction_type", "only replay-protected",
		"negative value", "nonce has max value", "rlp:", "max code size", "sender not an eoa", "not authorized",
	}},
	{sendFeeTooLow, []string{
		"transaction underpriced", "underpriced", "less than block base fee", "fee cap less than", "gas_price_below", "gas price below", "gas price too low",
		"below configured minimum", "feetoolow", "fee too low", "max fee per gas less than", "gas tip cap", "gas price is too low",
		"miner gas price", "below current base fee", "gas_price_too_low",
	}},
	{sendNoFunds, []string{
		"insufficient funds", "upfront cost exceeds", "upfront_cost_exceeds", "insufficientfunds", "insufficient balance", "insufficient_funds",
		"sender doesn't have enough funds", "overshot",
	}},
}

// classifySend judges the answer to one eth_sendRawTransaction. An error that is no answer of the node says nothing: the transaction may have arrived.
func classifySend(err error) sendVerdict {
	if err == nil {
		return sendAccepted
	}
	var refusal rpc.Error
	if !errors.As(err, &refusal) {
		return sendRetry
	}
	lower := strings.ToLower(refusal.Error())
	for _, known := range sendTexts {
		for _, text := range known.texts {
			if strings.Contains(lower, text) {
				return known.verdict
			}
		}
	}
	return sendUnknown
}

// aloneTooDear tells whether the account could not pay for this transaction even if it had no other one under way. Only geth's words and those of its kin say so.
func aloneTooDear(err error) bool {
	lower := strings.ToLower(err.Error())
	return strings.Contains(lower, "tx cost") && !strings.Contains(lower, "queued cost")
}

// definite tells whether err is the node's own refusal, after which it does not have the transaction.
func definite(err error) bool {
	var refusal rpc.Error
	return errors.As(err, &refusal)
}
