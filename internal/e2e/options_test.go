package e2e

import (
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/gen"
)

const zooAPI = "/api/v1/namespaces/default/apis/zoo"

// called is what the zoo says of a call.
type called struct{ Sender, BlockNumber, Balance string }

// whoCalls queries with options or a key.
func (s *service) whoCalls(t *testing.T, request string) called {
	t.Helper()
	status, answer := s.post(t, zooAPI+"/query/whoCalls", request)
	var c called
	if status != http.StatusOK || json.Unmarshal(answer, &c) != nil {
		t.Fatalf("query whoCalls with %s: %d %s", request, status, answer)
	}
	return c
}

// pay invokes with options, and returns the transaction as the chain has it.
func (s *service) pay(t *testing.T, options, more string) *types.Transaction {
	t.Helper()
	status, answer := s.post(t, zooAPI+"/invoke/pay?confirm=true", `{"input":{"data":"0x"},"options":`+options+more+`}`)
	var op gen.Operation
	if status != http.StatusOK || json.Unmarshal(answer, &op) != nil || op.Status != "Succeeded" {
		t.Fatalf("invoke with %s: %d %s", options, status, answer)
	}
	tx, _, err := s.chain.Client().TransactionByHash(t.Context(), common.HexToHash(*op.TransactionHash))
	must(t, err)
	return tx
}

func TestOptionsOfAnInvokeGoIntoTheTransaction(t *testing.T) {
	t.Parallel()
	s, _, _ := zoo(t)
	key := s.chain.Accounts[0].Address

	// More wei than 64 bits hold, however it is written.
	want, total := new(big.Int).Add(new(big.Int).Lsh(big.NewInt(1), 64), big.NewInt(1)), new(big.Int)
	for _, value := range []string{`"18446744073709551617"`, `18446744073709551617`, `"0x10000000000000001"`, `18446744073709551617e0`} {
		if tx := s.pay(t, `{"value":`+value+`}`, ""); tx.Value().Cmp(want) != 0 {
			t.Errorf("the value %s became %s", value, tx.Value())
		}
		total.Add(total, want)
	}
	if got := s.whoCalls(t, `{}`).Balance; got != total.String() {
		t.Errorf("the contract has %s, want %s", got, total)
	}

	if tx := s.pay(t, `{"gas":"123456"}`, ""); tx.Gas() != 123456 {
		t.Errorf("the gas limit is %d", tx.Gas())
	}
	if tx := s.pay(t, `{"gasPrice":5000000001}`, ""); tx.Type() != types.LegacyTxType || tx.GasPrice().Int64() != 5000000001 {
		t.Errorf("the gas price made a transaction of type %d at %s", tx.Type(), tx.GasPrice())
	}
	tx := s.pay(t, `{"maxFeePerGas":"0x12a05f201","maxPriorityFeePerGas":1000000001}`, "")
	if tx.Type() != types.DynamicFeeTxType || tx.GasFeeCap().Int64() != 5000000001 || tx.GasTipCap().Int64() != 1000000001 {
		t.Errorf("the fees made a transaction of type %d with %s and %s", tx.Type(), tx.GasFeeCap(), tx.GasTipCap())
	}
	next, err := s.chain.Client().PendingNonceAt(t.Context(), key)
	must(t, err)
	if tx = s.pay(t, fmt.Sprintf(`{"nonce":%d}`, next), ""); tx.Nonce() != next {
		t.Errorf("the nonce is %d, want %d", tx.Nonce(), next)
	}
	for _, spelling := range []string{key.Hex(), contract.FormatAddress(key)} {
		tx = s.pay(t, `{}`, `,"key":"`+spelling+`"`)
		if from, err := types.Sender(types.LatestSignerForChainID(tx.ChainId()), tx); err != nil || from != key {
			t.Errorf("the key %s made a transaction of %s, %v", spelling, from, err)
		}
	}
	// A nonce that is used up: the operation says so.
	status, answer := s.post(t, zooAPI+"/invoke/pay?confirm=true", `{"input":{"data":"0x"},"options":{"nonce":0}}`)
	var op gen.Operation
	if status != http.StatusOK || json.Unmarshal(answer, &op) != nil || op.Status != "Failed" || !strings.Contains(*op.Error, "nonce 0") {
		t.Errorf("a nonce that is used up: %d %s", status, answer)
	}
}

func TestOptionsOfAQueryGoIntoTheCall(t *testing.T) {
	t.Parallel()
	s, _, _ := zoo(t)
	const somebody = "0xffcf8fdee72ac11b5c542428b35eef5769c409f0"
	if got := s.whoCalls(t, `{"key":"0xFFcf8FDEE72ac11b5c542428B35EEF5769C409f0"}`).Sender; got != somebody {
		t.Errorf("the caller is %s", got)
	}
	// The same contract at a block before it was paid and after it.
	before := s.chain.Head()
	s.pay(t, `{"value":7}`, "")
	after := s.chain.Head()
	for _, c := range []struct {
		block, number, balance string
	}{
		{fmt.Sprint(before), fmt.Sprint(before), "0"},
		{fmt.Sprintf(`"%d"`, before), fmt.Sprint(before), "0"},
		{fmt.Sprintf(`"0x%x"`, before), fmt.Sprint(before), "0"},
		{fmt.Sprint(after), fmt.Sprint(after), "7"},
		{`"latest"`, fmt.Sprint(after), "7"},
		{`"safe"`, fmt.Sprint(after), "7"},
		{`"pending"`, fmt.Sprint(after + 1), "7"},
	} {
		got := s.whoCalls(t, `{"options":{"blockNumber":`+c.block+`}}`)
		if got.BlockNumber != c.number || got.Balance != c.balance {
			t.Errorf("at the block %s: %+v, want block %s and balance %s", c.block, got, c.number, c.balance)
		}
	}
	// What is sent along must be there, and enough gas too; it is never spent.
	for _, options := range []string{
		`"value":"18446744073709551617"`, `"gas":100000`, `"gasPrice":5000000000`, `"maxFeePerGas":5000000000,"maxPriorityFeePerGas":1000000000`,
	} {
		if status, answer := s.post(t, zooAPI+"/query/pay", `{"input":{"data":"0x"},"options":{`+options+`}}`); status != http.StatusOK {
			t.Errorf("query with %s: %d %s", options, status, answer)
		}
	}
	if got := s.whoCalls(t, `{}`).Balance; got != "7" {
		t.Errorf("queries have changed the balance to %s", got)
	}
}

func TestOptionsThatCannotBeAreRefused(t *testing.T) {
	t.Parallel()
	s, _, _ := zoo(t)
	const both, invoke, query = "query invoke", "invoke", "query"
	for _, c := range []struct{ verbs, method, options, code, field string }{
		{both, "pay", `"amount":1`, "invalid_request", "options.amount"},
		{both, "pay", `"Gas":100000`, "invalid_request", "options.Gas"},
		{both, "pay", `"from":"0x5fbdb2315678afecb367f032d93f642f64180aa3"`, "invalid_request", "options.from"},
		{query, "pay", `"nonce":1`, "invalid_request", "options.nonce"},
		{invoke, "pay", `"blockNumber":1`, "invalid_request", "options.blockNumber"},
		{both, "claim", `"value":1`, "invalid_request", "options.value"},
		{both, "pay", `"value":-1`, "invalid_request", "options.value"},
		{both, "pay", `"value":"1e"`, "invalid_request", "options.value"},
		{both, "pay", `"value":1.5`, "invalid_request", "options.value"},
		{both, "pay", `"value":"115792089237316195423570985008687907853269984665640564039457584007913129639936"`, "invalid_request", "options.value"},
		{both, "pay", `"value":"340282366920938463463374607431768211455"`, "insufficient_funds", ""},
		{both, "pay", `"gas":0`, "invalid_request", "options.gas"},
		{both, "pay", `"gas":"18446744073709551616"`, "invalid_request", "options.gas"},
		{both, "pay", `"gas":21001`, "gas_too_low", ""},
		{both, "pay", `"gasPrice":1`, "fee_too_low", ""},
		{both, "pay", `"maxFeePerGas":1`, "fee_too_low", ""},
		{both, "pay", `"gasPrice":1,"maxFeePerGas":1`, "invalid_request", "options.gasPrice"},
		{both, "pay", `"maxFeePerGas":1,"maxPriorityFeePerGas":2`, "invalid_request", "options.maxPriorityFeePerGas"},
		{query, "pay", `"blockNumber":999999`, "block_not_found", ""},
		{query, "pay", `"blockNumber":"soon"`, "invalid_request", "options.blockNumber"},
		{query, "pay", `"blockNumber":-1`, "invalid_request", "options.blockNumber"},
		{query, "pay", `"blockNumber":"18446744073709551616"`, "invalid_request", "options.blockNumber"},
		{query, "whoCalls", `"blockNumber":"earliest"`, "no_contract", "location.address"},
	} {
		for verb := range strings.FieldsSeq(c.verbs) {
			input := map[string]string{"pay": `{"data":"0x"}`, "claim": `{"id":1}`, "whoCalls": `{}`}[c.method]
			status, problem := s.raw(t, "POST", zooAPI+"/"+verb+"/"+c.method, "application/json", `{"input":`+input+`,"options":{`+c.options+`}}`)
			if status != http.StatusBadRequest || problem.Code != c.code || c.field != "" && (problem.Fields == nil || problem.Fields[0].Path != c.field) {
				t.Errorf("%s %s with %s: %d %s %s %+v, want %s %s", verb, c.method, c.options, status, problem.Code, problem.Detail, problem.Fields, c.code, c.field)
			}
		}
	}
}
