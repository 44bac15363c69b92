package chain

import (
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	pactwire "github.com/pactwire/pactwire"
)

// RevertError is what a node answers when the EVM reverted.
type RevertError struct {
	Data    []byte // what the contract reverted with; nil when it gave nothing or the node does not tell
	Message string // the node's words
}

// Error implements error.
func (e *RevertError) Error() string { return e.Message }

// asRevert recognises a revert in the words of geth, Erigon and anvil (code 3, or -32000 "execution reverted", data as a string), Besu (-32000
// "Execution reverted"), and Nethermind and the former Parity (-32015, data "Reverted 0x…").
func asRevert(err error) *RevertError {
	var refusal rpc.Error
	if !errors.As(err, &refusal) {
		return nil
	}
	message := refusal.Error()
	lower := strings.ToLower(message)
	var given any
	var withData rpc.DataError
	if errors.As(err, &withData) {
		given = withData.ErrorData()
	}
	data, hasData := revertData(given)
	switch {
	case refusal.ErrorCode() == 3, strings.Contains(lower, "revert"):
	case refusal.ErrorCode() == -32015 && hasData: // "VM execution error."
	case evmHalted(lower):
	default:
		return nil
	}
	return &RevertError{Data: data, Message: message}
}

// asRevertOf is the *RevertError in err, if there is one.
func asRevertOf(err error) *RevertError {
	var revert *RevertError
	if errors.As(err, &revert) {
		return revert
	}
	return nil
}

// revertData finds the revert data in the data member of a JSON-RPC error.
func revertData(given any) ([]byte, bool) {
	switch v := given.(type) {
	case string:
		text := strings.TrimSpace(strings.TrimPrefix(v, "Reverted"))
		if data, err := hexutil.Decode(text); err == nil {
			return data, true
		}
		return nil, strings.HasPrefix(v, "Reverted")
	case map[string]any: // Hardhat and Ganache wrap it
		for _, key := range []string{"data", "result"} {
			if data, ok := revertData(v[key]); ok {
				return data, true
			}
		}
	}
	return nil, false
}

// evmHalted tells whether the contract ended by an exceptional halt, which takes all gas and gives no data.
func evmHalted(lower string) bool {
	for _, text := range []string{
		"invalid opcode", "invalidopcode", "opcodenotfound", "invalidfeopcode", "stack underflow", "stackunderflow", "stack limit reached", "stackoverflow",
		"invalid jump", "invalidjump", "bad jump", "badjump", "invalid operation", "write protection", "bad instruction", "badinstruction",
		"return data out of bounds",
	} {
		if strings.Contains(lower, text) {
			return true
		}
	}
	return false
}

// callError turns the error of eth_call or eth_estimateGas into one that the caller of the service understands: a client's mistake is never a failure of ours.
func callError(err error) error {
	if revert := asRevert(err); revert != nil {
		return revert
	}
	var refusal rpc.Error
	if !errors.As(err, &refusal) {
		if err == nil || pactwire.KindOf(err) != pactwire.KindInternal || isContextEnd(err) {
			return err
		}
		return badUpstream(err, "The chain's node gave an answer that makes no sense.")
	}
	lower := strings.ToLower(refusal.Error())
	for _, known := range callRefusals {
		for _, text := range known.texts {
			if strings.Contains(lower, text) {
				return &pactwire.Error{Kind: known.kind, Code: known.code, Message: known.message, Err: err}
			}
		}
	}
	return badUpstream(err, "The chain's node refused the call for a reason that is not known here.")
}

// callRefusals are the refusals of calls and estimates by which nodes mean the request, in the words of the different nodes.
var callRefusals = []struct {
	kind          pactwire.Kind
	code, message string
	texts         []string
}{
	{
		pactwire.KindInvalid, "insufficient_funds", "The signing account has not enough funds for the value and the gas of this call.",
		[]string{
			"insufficient funds", "insufficient balance", "insufficient sender balance", "upfront cost exceeds", "upfront gas cost cannot exceed",
			"insufficientbalance", "outoffunds", "out of funds", "insufficientfunds", "gas required exceeds allowance (0)",
		},
	},
	{
		pactwire.KindInvalid, "gas_too_low", "The gas limit is too low for this call, or the account cannot pay for the gas that it needs.",
		[]string{
			"gas required exceeds allowance", "intrinsic gas too low", "out of gas", "outofgas", "gas limit is too low", "gas too low",
			"transaction gas limit", "gas limit below intrinsic", "cannot execute transaction with gas limit", "floor data gas",
		},
	},
	{
		pactwire.KindInvalid, "gas_too_high", "The gas limit is higher than the chain allows.",
		[]string{"exceeds block gas limit", "gas limit too high", "gas cap", "gaslimitexceeded", "gas limit reached", "exceeds maximum"},
	},
	{
		pactwire.KindInvalid, "fee_too_low", "The fee that is offered is lower than the chain's base fee.",
		[]string{
			"less than block base fee", "less than the block base fee", "fee cap less than", "gas price below", "gasprice is less", "feecaptoolow", "miner premium",
			"gas price too low", "fee too low",
		},
	},
	{
		pactwire.KindInvalid, "fee_invalid", "maxPriorityFeePerGas is higher than maxFeePerGas, or legacy and EIP-1559 fees are mixed.",
		[]string{"higher than max fee", "both gasprice and", "cannot be greater than max fee", "tip above fee"},
	},
	{
		pactwire.KindInvalid, "nonce_invalid", "The nonce is not the one that the chain expects of this account.",
		[]string{"nonce too low", "nonce too high", "invalid nonce"},
	},
	{
		pactwire.KindInvalid, "block_not_found", "There is no such block.",
		[]string{
			"header not found", "block not found", "unknown block", "blocknotfound", "blockoutofrange", "block out of range", "header for hash not found",
			"cannot query unfinalized", "finalized block not found", "safe block not found", "block number out of range", "no block", "incorrect head block",
		},
	},
	{
		pactwire.KindInvalid, "block_state_unavailable", "The chain's node no longer has the state of that block.",
		[]string{"missing trie node", "state is not available", "historical state", "world state unavailable", "state not available", "pruned"},
	},
	{
		pactwire.KindInvalid, "contract_too_large", "The contract's code is larger than the chain allows.",
		[]string{"max code size exceeded", "max initcode size exceeded", "createcontractsizelimit", "contractsizeexceeded"},
	},
	{
		pactwire.KindUnavailable, "chain_unavailable", "The chain's node is overloaded at the moment.",
		[]string{"execution aborted", "timeout", "too many requests", "rate limit", "limit exceeded", "try again", "syncing"},
	},
}
