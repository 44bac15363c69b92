package chain

import (
	"context"
	"encoding/json"
	"errors"
	"math/big"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

func dialTest(t testing.TB, urls ...string) *Client {
	t.Helper()
	c, err := Dial(context.Background(), Config{Name: "dev", URLs: urls, CallTimeout: 5 * time.Second, PollInterval: 20 * time.Millisecond}, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestDialFailsWithoutANode(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1", "ws://127.0.0.1:1"} {
		_, err := Dial(context.Background(), Config{Name: "dev", URLs: []string{url}}, testLog(t))
		if pactwire.KindOf(err) != pactwire.KindUnavailable {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestNextNodeTakesOver(t *testing.T) {
	chain := chaintest.New(t)
	proxy := newProxy(t, chain.HTTPURL())
	c := dialTest(t, proxy.server.URL, chain.WSURL())
	ctx := context.Background()
	if _, err := c.Head(ctx); err != nil {
		t.Fatal(err)
	}
	if proxy.calls.Load() == 0 {
		t.Fatal("the first node was not asked")
	}
	proxy.answer.Store(http.StatusBadGateway)
	if _, err := c.Head(ctx); pactwire.KindOf(err) != pactwire.KindUnavailable {
		t.Fatalf("the call that met the failure: %v", err)
	}
	head, err := c.Head(ctx)
	if err != nil || head.Number != chain.Head() || head.BaseFee == nil || head.GasLimit == 0 || head.Time == 0 {
		t.Fatalf("%+v, %v", head, err)
	}
}

func TestAnotherChainIsRefused(t *testing.T) {
	chain := chaintest.New(t)
	proxy := newProxy(t, chain.HTTPURL())
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(method string) any {
			if method == "eth_chainId" {
				return "0x1"
			}
			return map[string]any{"hash": common.Hash{1}, "number": "0x0"}
		})
	}))
	defer other.Close()
	c := dialTest(t, proxy.server.URL, other.URL)
	proxy.answer.Store(http.StatusBadGateway)
	for range 3 {
		if _, err := c.Head(context.Background()); pactwire.KindOf(err) != pactwire.KindUnavailable {
			t.Fatalf("a node of another chain: %v", err)
		}
	}
	proxy.answer.Store(0)
	deadline := time.Now().Add(10 * time.Second)
	for {
		if _, err := c.Head(context.Background()); err == nil {
			return
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestNodeComesBack(t *testing.T) {
	dir := t.TempDir()
	chain := chaintest.New(t, chaintest.InFolder(dir))
	address := strings.TrimPrefix(chain.WSURL(), "ws://")
	c := dialTest(t, chain.WSURL())
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	heads := c.SubscribeHeads(ctx)
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	chain.Stop(t)
	deadline := time.Now().Add(20 * time.Second)
	for {
		_, err := c.Head(ctx)
		if pactwire.KindOf(err) == pactwire.KindUnavailable {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("without a node: %v", err)
		}
		time.Sleep(5 * time.Millisecond)
	}
	again := chaintest.New(t, chaintest.InFolder(dir), chaintest.Listen(address))
	for {
		if _, err := c.Head(ctx); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	// New heads wake again, too.
	for woken := false; !woken; {
		again.Mine(1)
		select {
		case <-heads:
			woken = true
		case <-time.After(50 * time.Millisecond):
			if time.Now().After(deadline) {
				t.Fatal("no head wakes")
			}
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

func TestHeadsWakeOverBothTransports(t *testing.T) {
	chain := chaintest.New(t)
	for _, url := range []string{chain.WSURL(), chain.HTTPURL()} {
		c := dialTest(t, url)
		ctx, stop := context.WithCancel(context.Background())
		heads := c.SubscribeHeads(ctx)
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		deadline := time.After(10 * time.Second)
		for n := 0; n < 3; {
			chain.Mine(1)
			select {
			case <-heads:
				n++
			case <-deadline:
				t.Fatal("no head wakes")
			}
		}
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
}

func TestNonsenseIsABadUpstream(t *testing.T) {
	var body atomic.Value
	body.Store("")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, _ := body.Load().(string); text != "" {
			_, _ = w.Write([]byte(text))
			return
		}
		answer(w, r, func(method string) any {
			if method == "eth_chainId" {
				return "0x1"
			}
			return map[string]any{"hash": common.Hash{1}, "number": "0x0"}
		})
	}))
	defer server.Close()
	c := dialTest(t, server.URL)
	for _, text := range []string{
		`<html>`, `{"jsonrpc":"2.0","id":3,"result":17}`, `{"jsonrpc":"2.0","id":3}`, `[]`, `{"jsonrpc":"2.0","id":3,"result":{"number":"x"}}`,
	} {
		body.Store(text)
		_, err := c.Head(context.Background())
		if pactwire.KindOf(err) != pactwire.KindBadUpstream {
			t.Errorf("%s: %s %v", text, pactwire.KindOf(err), err)
		}
		_, err = c.Call(context.Background(), CallRequest{})
		if pactwire.KindOf(err) != pactwire.KindBadUpstream {
			t.Errorf("%s: call: %s %v", text, pactwire.KindOf(err), err)
		}
	}
}

func TestCallsTravelTogether(t *testing.T) {
	chain := chaintest.New(t)
	a := contracts.SimpleStorage()
	to := chain.Deploy(t, a)
	chain.Transact(t, 1, to, a, "set", big.NewInt(77))
	proxy := newProxy(t, chain.HTTPURL())
	proxy.delay.Store(int64(2 * time.Millisecond))
	c := dialTest(t, proxy.server.URL)
	before := proxy.calls.Load()
	const n = 400
	var wait sync.WaitGroup
	var wrong atomic.Int64
	for i := range n {
		wait.Go(func() {
			if i%10 == 3 { // some fail, and only they
				_, err := c.Call(context.Background(), CallRequest{To: to, Data: []byte{1, 2, 3, 4}})
				var revert *RevertError
				if !errors.As(err, &revert) {
					wrong.Add(1)
				}
				return
			}
			got, err := c.Call(context.Background(), CallRequest{To: to, Data: a.Parsed.Methods["get"].ID})
			if err != nil || new(big.Int).SetBytes(got).Int64() != 77 {
				wrong.Add(1)
			}
		})
	}
	wait.Wait()
	if wrong.Load() != 0 {
		t.Fatalf("%d of %d calls went wrong", wrong.Load(), n)
	}
	if messages := proxy.calls.Load() - before; messages >= n/2 || messages < n/maxCallBatch {
		t.Fatalf("%d messages for %d calls", messages, n)
	}
}

func TestSlowCallHoldsUpNoOther(t *testing.T) {
	block := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(method string) any {
			switch method {
			case "eth_chainId":
				return "0x1"
			case "eth_estimateGas":
				<-block
				return "0x5208"
			case "eth_call":
				return "0x2a"
			}
			return map[string]any{"hash": common.Hash{1}, "number": "0x0"}
		})
	}))
	defer server.Close()
	defer close(block)
	c := dialTest(t, server.URL)
	ctx, stop := context.WithTimeout(context.Background(), 5*time.Second)
	defer stop()
	var wait sync.WaitGroup
	slow, cancel := context.WithCancel(ctx)
	wait.Go(func() {
		if _, err := c.EstimateGas(slow, CallRequest{}); !errors.Is(err, context.Canceled) {
			t.Errorf("the slow call: %v", err)
		}
	})
	for range 20 {
		if _, err := c.Call(ctx, CallRequest{}); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	wait.Wait()
}

func TestCallErrorsAreTheClients(t *testing.T) {
	chain := chaintest.New(t)
	zoo := contracts.Zoo()
	to := chain.Deploy(t, zoo, "zoo")
	c := dialTest(t, chain.WSURL())
	ctx := context.Background()
	from := chain.Accounts[3].Address
	pack := func(method string, args ...any) []byte {
		data, err := zoo.Parsed.Pack(method, args...)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	gas, err := c.EstimateGas(ctx, CallRequest{From: &from, To: to, Data: pack("claim", big.NewInt(1))})
	if err != nil || gas < 21_000 {
		t.Fatalf("estimate %d, %v", gas, err)
	}
	for name, do := range map[string]func(CallRequest) error{
		"call":     func(r CallRequest) error { _, err := c.Call(ctx, r); return err },
		"estimate": func(r CallRequest) error { _, err := c.EstimateGas(ctx, r); return err },
	} {
		for method, data := range map[string][]byte{
			"failWith": pack("failWith", "x"), "failPlain": pack("failPlain"), "failSilently": pack("failSilently"), "failAssert": pack("failAssert"),
			"failInvalid": pack("failInvalid"),
		} {
			err := do(CallRequest{From: &from, To: to, Data: data, Gas: 200_000})
			var revert *RevertError
			if method == "failInvalid" && pactwire.KindOf(err) == pactwire.KindInvalid {
				continue // the estimate only sees that no gas is enough
			}
			if !errors.As(err, &revert) {
				t.Errorf("%s %s: %v", name, method, err)
			} else if (method == "failWith" || method == "failPlain") && len(revert.Data) < 4 {
				t.Errorf("%s %s: data %x", name, method, revert.Data)
			}
		}
		poor := common.Address{9}
		for what, r := range map[string]CallRequest{
			"insufficient_funds": {From: &poor, To: to, Value: big.NewInt(1)},
			"block_not_found":    {From: &from, To: to, Block: hexutil.EncodeUint64(1 << 40)},
		} {
			err := do(r)
			var known *pactwire.Error
			if !errors.As(err, &known) || known.Kind != pactwire.KindInvalid || known.Code != what {
				t.Errorf("%s %s: %v", name, what, err)
			}
		}
	}
}

func TestRevertsOfEveryNode(t *testing.T) {
	data := "0x08c379a0"
	for name, e := range map[string]jsonRPCError{
		"geth":        {3, "execution reverted: no", data},
		"geth silent": {-32000, "execution reverted", nil},
		"besu":        {-32000, "Execution reverted", data},
		"nethermind":  {-32015, "VM execution error.", "Reverted 0x08c379a0"},
		"erigon":      {3, "execution reverted", data},
		"anvil":       {3, "execution reverted: custom error 0x08c379a0", data},
		"hardhat":     {-32603, "Error: VM Exception while processing transaction: reverted with reason string 'no'", map[string]any{"data": data}},
	} {
		revert := asRevert(e)
		if revert == nil {
			t.Errorf("%s: not recognised", name)
		} else if want := e.data != nil; want != (len(revert.Data) == 4) {
			t.Errorf("%s: data %x", name, revert.Data)
		}
	}
	for _, e := range []jsonRPCError{{-32000, "header not found", nil}, {-32601, "the method does not exist", nil}, {-32015, "VM execution error.", nil}} {
		if asRevert(e) != nil {
			t.Errorf("%v was taken for a revert", e)
		}
	}
}

// jsonRPCError is a node's refusal, as go-ethereum's client gives it.
type jsonRPCError struct {
	code    int
	message string
	data    any
}

func (e jsonRPCError) Error() string  { return e.message }
func (e jsonRPCError) ErrorCode() int { return e.code }
func (e jsonRPCError) ErrorData() any { return e.data }

var _ rpc.DataError = jsonRPCError{}

// answer is a minimal node over HTTP.
func answer(w http.ResponseWriter, r *http.Request, result func(method string) any) {
	type request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	var raw json.RawMessage
	if err := json.NewDecoder(r.Body).Decode(&raw); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	reply := func(q request) any { return map[string]any{"jsonrpc": "2.0", "id": q.ID, "result": result(q.Method)} }
	var out any
	if raw[0] == '[' {
		var list []request
		_ = json.Unmarshal(raw, &list)
		replies := make([]any, len(list))
		for i := range list {
			replies[i] = reply(list[i])
		}
		out = replies
	} else {
		var one request
		_ = json.Unmarshal(raw, &one)
		out = reply(one)
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}
