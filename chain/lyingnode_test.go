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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

// rpcCall is one call as it passes the proxy.
type rpcCall struct {
	ID     json.RawMessage   `json:"id"`
	Method string            `json:"method"`
	Params []json.RawMessage `json:"params"`

	together int // how many calls came in the same message
}

// lyingNode stands between the reader and the node. refuse may answer a call with an error text; change may alter the node's result.
type lyingNode struct {
	target  string
	refuse  func(rpcCall) string
	change  func(rpcCall, json.RawMessage) json.RawMessage
	batches bool
	server  *httptest.Server
	mu      sync.Mutex

	announcements string // the node's WebSocket, for those who subscribe
}

func newLyingNode(t *testing.T, target string) *lyingNode {
	t.Helper()
	p := &lyingNode{target: target, batches: true}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

func (p *lyingNode) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if websocket.IsWebSocketUpgrade(r) {
		p.serveSocket(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(p.message(r.Context(), body))
}

// message answers one call, or several in one message.
func (p *lyingNode) message(ctx context.Context, body []byte) []byte {
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("[")) {
		call := rpcCall{together: 1}
		_ = json.Unmarshal(body, &call)
		return p.answer(ctx, call)
	}
	if !p.batches {
		return []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"batch requests are not supported"}}`)
	}
	var calls []rpcCall
	_ = json.Unmarshal(body, &calls)
	answers := make([]json.RawMessage, len(calls))
	for i, call := range calls {
		call.together = len(calls)
		answers[i] = p.answer(ctx, call)
	}
	all, _ := json.Marshal(answers)
	return all
}

func (p *lyingNode) answer(ctx context.Context, call rpcCall) json.RawMessage {
	p.mu.Lock()
	refuse, change := p.refuse, p.change
	p.mu.Unlock()
	if refuse != nil {
		if text := refuse(call); text != "" {
			message, _ := json.Marshal(text)
			return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32005,"message":%s}}`, call.ID, message)
		}
	}
	request, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": call.ID, "method": call.Method, "params": call.Params})
	req, _ := http.NewRequestWithContext(ctx, http.MethodPost, p.target, bytes.NewReader(request))
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"bad gateway"}}`, call.ID)
	}
	defer resp.Body.Close()
	answer, _ := io.ReadAll(resp.Body)
	var parts struct {
		Result json.RawMessage `json:"result"`
	}
	if change == nil || json.Unmarshal(answer, &parts) != nil || parts.Result == nil {
		return answer
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, call.ID, change(call, parts.Result))
}

func (p *lyingNode) set(refuse func(rpcCall) string, change func(rpcCall, json.RawMessage) json.RawMessage) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse, p.change = refuse, change
}

// logRange is how many blocks an eth_getLogs asks for; 0 for another call or one block by its hash.
func logRange(call rpcCall) int64 {
	if call.Method != "eth_getLogs" {
		return 0
	}
	var q struct{ FromBlock, ToBlock string }
	_ = json.Unmarshal(call.Params[0], &q)
	from, err1 := strconv.ParseInt(strings.TrimPrefix(q.FromBlock, "0x"), 16, 64)
	to, err2 := strconv.ParseInt(strings.TrimPrefix(q.ToBlock, "0x"), 16, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return to - from + 1
}

func TestRefusalsOfNodesLoseNothing(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t, chaintest.Manual())
	zoo := contracts.Zoo()
	address := chain.Deploy(t, zoo, "far")
	for i := range 40 {
		if i%4 == 0 {
			chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(3))
		}
		chain.Mine(4)
	}
	var asked atomic.Int64
	every := func(n int64, text string) func(rpcCall) string {
		return func(call rpcCall) string {
			if call.Method == "eth_getLogs" && asked.Add(1)%n != 0 {
				return text
			}
			return ""
		}
	}
	tooWide := func(limit int64, text string) func(rpcCall) string {
		return func(call rpcCall) string {
			if logRange(call) > limit {
				return text
			}
			return ""
		}
	}
	for name, refuse := range map[string]func(rpcCall) string{
		"infura":     tooWide(30, "query returned more than 10000 results. Try with this block range [0x0, 0x10]."),
		"alchemy":    tooWide(10, "Log response size exceeded. You can make eth_getLogs requests with up to a 2K block range"),
		"quicknode":  tooWide(7, "eth_getLogs is limited to a 10,000 range"),
		"ankr":       tooWide(3, "block range is too wide"),
		"bsc":        tooWide(50, "exceed maximum block range: 5000"),
		"bor":        tooWide(1, "Block range limit exceeded"),
		"avalanche":  tooWide(9, "requested too many blocks from 0 to 40, maximum is set to 9"),
		"blockpi":    tooWide(12, "eth_getLogs and eth_newFilter are limited to a 12 blocks range"),
		"drpc":       tooWide(15, "query exceeds max block range 15"),
		"publicnode": tooWide(20, "exceed maximum block range: 20"),
		"cloudflare": tooWide(5, "Invalid params: range is too large, max is 5 blocks"),
		"geth":       tooWide(25, "exceed max results of 10000"),
		"nethermind": every(3, "Too many logs requested. Max logs per response is 20000."),
		"erigon":     every(2, "query returned more than 10000 logs, the server timed out"),
		"few calls": func(call rpcCall) string {
			if call.Method == "eth_getHeaderByNumber" || call.Method == "eth_getBlockReceipts" {
				return "Unsupported method: " + call.Method
			}
			return ""
		},
		"rate":        every(3, "Your app has exceeded its compute units per second capacity"),
		"rate429":     every(2, "Too Many Requests"),
		"lagging":     every(3, "unknown block"),
		"timeout":     every(3, "query timeout exceeded"),
		"mysterious":  every(3, "internal error"),
		"beyond head": every(2, "block range extends beyond current head block"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := newLyingNode(t, chain.HTTPURL())
			r := newRigAt(t, chain, proxy.server.URL, 0)
			l := r.listen(zoo, "Counted(uint256,uint256)", &address, "oldest")
			proxy.set(refuse, nil)
			r.start()
			if events := r.history(30); len(events) != 30 {
				t.Errorf("%d events, want 30", len(events))
			}
			r.reached(chain.Head())
			r.consistent(l)
		})
	}
	t.Run("no batches", func(t *testing.T) {
		t.Parallel()
		proxy := newLyingNode(t, chain.HTTPURL())
		proxy.batches = false
		r := newRigAt(t, chain, proxy.server.URL, 0)
		l := r.listen(zoo, "Counted(uint256,uint256)", &address, "oldest")
		r.start()
		r.history(30)
		r.reached(chain.Head())
		r.consistent(l)
	})
	t.Run("foreign hashes", func(t *testing.T) {
		t.Parallel()
		proxy := newLyingNode(t, chain.HTTPURL())
		r := newRigAt(t, chain, proxy.server.URL, 0)
		l := r.listen(zoo, "Counted(uint256,uint256)", &address, "oldest")
		var lies atomic.Int64
		proxy.set(nil, func(call rpcCall, result json.RawMessage) json.RawMessage {
			if call.Method == "eth_getLogs" && lies.Add(1) <= 10 {
				var logs []map[string]any
				_ = json.Unmarshal(result, &logs)
				for i := range logs {
					logs[i]["blockHash"] = "0x" + strings.Repeat("ab", 32)
				}
				result, _ = json.Marshal(logs)
			}
			return result
		})
		r.start()
		r.history(30)
		r.reached(chain.Head())
		r.consistent(l)
		if lies.Load() <= 10 {
			t.Errorf("only %d answers were asked for", lies.Load())
		}
	})
}

// TestAnOldHeadTakesNothingBack has a node that goes back far behind what it said before.
func TestAnOldHeadTakesNothingBack(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	proxy := newLyingNode(t, chain.HTTPURL())
	r := newRigAt(t, chain, proxy.server.URL, 0)
	storage := contracts.SimpleStorage()
	address := chain.Deploy(t, storage)
	l := r.listen(storage, changed, &address, "oldest")
	r.start()
	for i := range 5 {
		r.set(address, int64(i))
	}
	r.history(5)
	var asked atomic.Int64
	latest := func(call rpcCall) bool {
		return call.Method == "eth_getBlockByNumber" && string(call.Params[0]) == `"latest"`
	}
	old := proxy.answerAs(t, `"0x2"`)
	proxy.set(nil, func(call rpcCall, result json.RawMessage) json.RawMessage {
		if latest(call) {
			asked.Add(1)
			return old
		}
		return result
	})
	for deadline := time.Now().Add(readerLimit); asked.Load() < 10; {
		if time.Now().After(deadline) {
			t.Fatal("the head was not asked for")
		}
		time.Sleep(5 * time.Millisecond) // polls a condition
	}
	proxy.set(nil, nil)
	r.set(address, 5)
	events := r.history(6)
	if len(events) != 6 || events[5].Type != store.EventBlockchainReceived {
		t.Errorf("%d events, the last one %+v", len(events), events[len(events)-1])
	}
	r.reached(chain.Head())
	r.consistent(l)
}

// answerAs returns the node's block with that number.
func (p *lyingNode) answerAs(t *testing.T, number string) json.RawMessage {
	t.Helper()
	resp, err := http.Post(p.target, "application/json", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"eth_getBlockByNumber","params":[`+number+`,false]}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var answer struct{ Result json.RawMessage }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatal(err)
	}
	return answer.Result
}
