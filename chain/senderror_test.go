package chain

import (
	"errors"
	"testing"
)

func TestSendErrorsOfEveryNode(t *testing.T) {
	for text, want := range map[string]sendVerdict{
		// geth, Erigon
		"already known": sendAccepted,
		"nonce too low": sendNonceTooLow,
		"nonce too low: next nonce 5, tx nonce 3":                                                     sendNonceTooLow,
		"replacement transaction underpriced":                                                         sendNonceTaken,
		"replacement transaction underpriced: new tx gas fee cap 1 <= 1 queued":                       sendNonceTaken,
		"transaction underpriced":                                                                     sendFeeTooLow,
		"transaction underpriced: gas tip cap 0, minimum needed 1":                                    sendFeeTooLow,
		"transaction gas price below minimum: gas tip cap 0, minimum needed 1":                        sendFeeTooLow,
		"max fee per gas less than block base fee: address 0x1, maxFeePerGas: 1, baseFee: 7":          sendFeeTooLow,
		"insufficient funds for gas * price + value: balance 0, tx cost 21000, overshot 21000":        sendNoFunds,
		"insufficient funds for gas * price + value: balance 9, queued cost 8, tx cost 2, overshot 1": sendNoFunds,
		"intrinsic gas too low: gas 100, minimum needed 21204":                                        sendInvalid,
		"exceeds block gas limit":                                                                     sendInvalid,
		"transaction gas limit too high (cap: 16777216, tx: 30000000)":                                sendInvalid,
		"oversized data: transaction size 200000, limit 131072":                                       sendInvalid,
		"tx fee (2.10 ether) exceeds the configured cap (1.00 ether)":                                 sendInvalid,
		"max priority fee per gas higher than max fee per gas: address 0x1":                           sendInvalid,
		"txpool is full": sendRetry,
		"future transaction tries to replace pending transaction":    sendRetry,
		"in-flight transaction limit reached for delegated accounts": sendRetry,
		"NonceTooLow":        sendNonceTooLow,
		"ReplaceUnderpriced": sendFeeTooLow,
		// Besu
		"Known transaction":                                          sendAccepted,
		"Nonce too low":                                              sendNonceTooLow,
		"Replacement transaction underpriced":                        sendNonceTaken,
		"Gas price below configured minimum gas price":               sendFeeTooLow,
		"Upfront cost exceeds account balance":                       sendNoFunds,
		"Intrinsic gas exceeds gas limit":                            sendInvalid,
		"Transaction gas limit exceeds block gas limit":              sendInvalid,
		"Transaction nonce is too distant from current sender nonce": sendRetry,
		// Nethermind
		"AlreadyKnown": sendAccepted,
		"OldNonce, Current nonce: 5, nonce of rejected tx: 3": sendNonceTooLow,
		"OldNonce":                                  sendNonceTooLow,
		"ReplacementNotAllowed":                     sendNonceTaken,
		"FeeTooLow, MaxFeePerGas too low":           sendFeeTooLow,
		"FeeTooLowToCompete":                        sendRetry,
		"InsufficientFunds, Account balance: 0":     sendNoFunds,
		"GasLimitExceeded, Gas limit: 1":            sendInvalid,
		"NonceGap, Future nonce. Expected nonce: 1": sendRetry,
		// anvil
		"transaction already imported":               sendAccepted,
		"nonce too high":                             sendRetry,
		"Insufficient funds for gas * price + value": sendNoFunds,
		"max fee per gas less than block base fee":   sendFeeTooLow,
		"intrinsic gas too low":                      sendInvalid,
		// nobody's
		"the moon is in the wrong phase": sendUnknown,
	} {
		if got := classifySend(jsonRPCError{-32000, text, nil}); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
	if classifySend(nil) != sendAccepted || classifySend(errors.New("connection lost")) != sendRetry {
		t.Error("no error, or no answer, is judged wrongly")
	}
}
