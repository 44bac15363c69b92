package chain

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
)

// withoutBlockReceipts is a node that does not offer eth_getBlockReceipts. asked counts how often somebody wanted them.
func withoutBlockReceipts(t testing.TB, url string, asked *atomic.Int64) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var calls []map[string]json.RawMessage
		single := !bytes.HasPrefix(bytes.TrimSpace(body), []byte("["))
		if single {
			body = []byte("[" + string(body) + "]")
		}
		if err := json.Unmarshal(body, &calls); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		for _, c := range calls {
			if strings.Contains(string(c["method"]), "eth_getBlockReceipts") {
				asked.Add(1)
				c["method"] = json.RawMessage(`"eth_notThere"`)
			}
		}
		var forward any = calls
		if single {
			forward = calls[0]
		}
		out, err := json.Marshal(forward)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		answer, err := http.Post(url, "application/json", bytes.NewReader(out))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.Copy(w, answer.Body)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

func TestReceiptsOfManyTransactions(t *testing.T) {
	t.Parallel()
	for _, offered := range []bool{true, false} {
		t.Run(fmt.Sprintf("offered %v", offered), func(t *testing.T) {
			t.Parallel()
			b := newSubmitBench(t, 0)
			var asked atomic.Int64
			if !offered {
				poor, err := Dial(context.Background(), Config{Name: "dev", URLs: []string{withoutBlockReceipts(t, b.chain.HTTPURL(), &asked)}}, testLog(t))
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(b.client.Close)
				b.client = poor // closed in its place
			}
			a := contracts.SimpleStorage()
			to := b.chain.Deploy(t, a)
			var ids []uuid.UUID
			for i := range 300 {
				ids = append(ids, b.create(t, b.call(t, a, to, "set", big.NewInt(int64(i)))))
			}
			b.submit(t)
			for _, id := range ids {
				op := b.succeeded(t, id)
				out, ok := op.Mined()
				receipt, err := b.chain.Client().TransactionReceipt(context.Background(), *op.TransactionHash)
				if err != nil || !ok || out.BlockHash != receipt.BlockHash.Hex() || out.GasUsed != fmt.Sprint(receipt.GasUsed) || out.TransactionHash != receipt.TxHash.Hex() {
					t.Fatalf("the output %+v does not fit the receipt %+v, %v", out, receipt, err)
				}
			}
			if !offered && asked.Load() > maxBlockReads {
				t.Errorf("what the node does not offer was asked for %d times", asked.Load())
			}
			b.oneEventEach(t, ids)
		})
	}
}

func TestUnknownMethodsInTheWordsOfNodes(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]int{
		"the method eth_x does not exist/is not available":           -32601, // geth
		"data did not match any variant of untagged enum EthRpcCall": -32602, // anvil
		"Method not enabled": -32604, // Besu
	} {
		if err := (jsonRPCError{code: code, message: text}); !notOffered(err) {
			t.Errorf("%q means that the method is not offered", text)
		}
	}
	if err := (jsonRPCError{code: -32602, message: "data did not match any variant of untagged enum EthRpcCall"}); !unknownMethod(err) {
		t.Error("anvil's words are not known")
	}
	if err := (jsonRPCError{code: -32000, message: "header not found"}); notOffered(err) || unknownMethod(err) {
		t.Error("a missing header is no missing method")
	}
}
