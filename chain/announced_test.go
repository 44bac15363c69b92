package chain

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// socketURL is where the node can be reached that announces its heads.
func (p *lyingNode) socketURL() string { return "ws" + strings.TrimPrefix(p.server.URL, "http") }

// serveSocket passes subscriptions and what comes of them through; all else is answered as over HTTP.
func (p *lyingNode) serveSocket(w http.ResponseWriter, r *http.Request) {
	client, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer client.Close()
	node, _, err := websocket.DefaultDialer.Dial(p.announcements, nil)
	if err != nil {
		return
	}
	var running sync.WaitGroup
	defer running.Wait()
	defer node.Close()
	var writing sync.Mutex
	send := func(text []byte) {
		writing.Lock()
		defer writing.Unlock()
		_ = client.WriteMessage(websocket.TextMessage, text)
	}
	running.Go(func() {
		defer client.Close()
		for {
			_, text, err := node.ReadMessage()
			if err != nil {
				return
			}
			send(text)
		}
	})
	for {
		_, text, err := client.ReadMessage()
		if err != nil {
			return
		}
		if bytes.Contains(text, []byte("eth_subscribe")) {
			_ = node.WriteMessage(websocket.TextMessage, text)
			continue
		}
		send(p.message(r.Context(), text))
	}
}

// TestAnnouncedBlocksAreReadInOneMessage has a node that announces its heads, and spoils what is asked for together with the head in one way or another.
func TestAnnouncedBlocksAreReadInOneMessage(t *testing.T) {
	t.Parallel()
	foreign := `"0x` + strings.Repeat("ab", 32) + `"`
	var heads atomic.Int64
	for name, c := range map[string]struct {
		confirmations uint64
		oneByOne      bool // it is read one by one afterwards
		refuse        func(rpcCall) string
		change        func(rpcCall, json.RawMessage) json.RawMessage
	}{
		"fine":          {},
		"confirmations": {confirmations: 1, oneByOne: true},
		"refused logs": {oneByOne: true, refuse: func(call rpcCall) string {
			if call.Method == "eth_getLogs" && call.together > 1 {
				return "unknown block"
			}
			return ""
		}},
		"refused head": {oneByOne: true, refuse: func(call rpcCall) string {
			if call.Method == "eth_getBlockByNumber" && call.together > 1 && string(call.Params[0]) == `"latest"` {
				return "not in a batch"
			}
			return ""
		}},
		"another head": {oneByOne: true, change: func(call rpcCall, result json.RawMessage) json.RawMessage {
			if call.Method == "eth_getBlockByNumber" && call.together > 1 && string(call.Params[0]) == `"latest"` && heads.Add(1)%2 == 1 {
				var head map[string]json.RawMessage
				_ = json.Unmarshal(result, &head)
				head["hash"] = json.RawMessage(foreign)
				result, _ = json.Marshal(head)
			}
			return result
		}},
		"left out": {change: func(call rpcCall, result json.RawMessage) json.RawMessage {
			if call.Method == "eth_getLogs" {
				return json.RawMessage("[]")
			}
			return result
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain := chaintest.New(t)
			proxy := newLyingNode(t, chain.HTTPURL())
			proxy.announcements = chain.WSURL()
			r := newRigAt(t, chain, proxy.socketURL(), c.confirmations)
			storage := contracts.SimpleStorage()
			address := chain.Deploy(t, storage)
			l := r.listen(storage, changed, &address, "oldest")
			if !c.oneByOne {
				r.cfg.PollInterval = time.Minute // on a busy machine it looks by itself before it is told
			}
			r.start()
			r.reached(chain.Head() - c.confirmations)
			var together, alone atomic.Int64
			proxy.set(func(call rpcCall) string {
				if call.Method == "eth_getLogs" {
					if call.together > 1 {
						together.Add(1)
					} else {
						alone.Add(1)
					}
				}
				if c.refuse != nil {
					return c.refuse(call)
				}
				return ""
			}, c.change)
			const blocks = 10
			for i := range blocks {
				r.set(address, int64(i))
				r.reached(chain.Head() - c.confirmations)
			}
			chain.Mine(int(c.confirmations))
			r.history(blocks)
			r.consistent(l)
			if c.confirmations > 0 && together.Load() > 0 || c.confirmations == 0 && together.Load() == 0 {
				t.Errorf("%d requests for logs came with the head", together.Load())
			}
			if c.oneByOne && alone.Load() < blocks || !c.oneByOne && alone.Load() > blocks/2 { // now and then an announcement is late
				t.Errorf("%d requests for logs came alone", alone.Load())
			}
		})
	}
}
