package chain

import (
	"encoding/json"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// TestLogsThatANodeLeavesOutOrRepeats has the answers to eth_getLogs spoilt in ways that no error tells.
func TestLogsThatANodeLeavesOutOrRepeats(t *testing.T) {
	t.Parallel()
	spoil := func(spoilt func([]json.RawMessage) []json.RawMessage) func(rpcCall, json.RawMessage) json.RawMessage {
		return func(call rpcCall, result json.RawMessage) json.RawMessage {
			if call.Method != "eth_getLogs" {
				return result
			}
			var logs []json.RawMessage
			_ = json.Unmarshal(result, &logs)
			if logs = spoilt(logs); logs == nil {
				logs = []json.RawMessage{}
			}
			result, _ = json.Marshal(logs)
			return result
		}
	}
	for name, change := range map[string]func([]json.RawMessage) []json.RawMessage{
		"none":   func([]json.RawMessage) []json.RawMessage { return nil },
		"twice":  func(logs []json.RawMessage) []json.RawMessage { return append(logs, logs...) },
		"random": func(logs []json.RawMessage) []json.RawMessage { return logs[:len(logs)*int(time.Now().UnixNano()%2)] },
		"backwards": func(logs []json.RawMessage) []json.RawMessage {
			for i, k := 0, len(logs)-1; i < k; i, k = i+1, k-1 {
				logs[i], logs[k] = logs[k], logs[i]
			}
			return logs
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain := chaintest.New(t)
			proxy := newLyingNode(t, chain.HTTPURL())
			r := newRigAt(t, chain, proxy.server.URL, 0)
			zoo := contracts.Zoo()
			address := chain.Deploy(t, zoo, "spoilt")
			l := r.listen(zoo, "Counted(uint256,uint256)", &address, "newest")
			other := r.listen(zoo, "Counted(uint256,uint256)", nil, "newest")
			r.start()
			r.reached(chain.Head())
			proxy.set(nil, spoil(change))
			for range 10 {
				chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(3))
			}
			if events := r.history(60); len(events) != 60 {
				t.Errorf("%d events, want 60", len(events))
			}
			r.reached(chain.Head())
			r.consistent(l)
			r.consistent(other)
		})
	}
}

// TestABadNodeIsSetAside has two nodes of which the first goes bad in one way or another: the second one is used, and nothing is lost.
func TestABadNodeIsSetAside(t *testing.T) {
	t.Parallel()
	head := func(call rpcCall) bool {
		return call.Method == "eth_getBlockByNumber" && string(call.Params[0]) == `"latest"`
	}
	for _, c := range []struct {
		name, reason string
		change       func(first json.RawMessage) func(rpcCall, json.RawMessage) json.RawMessage
	}{
		{"old head", troubleBehind, func(old json.RawMessage) func(rpcCall, json.RawMessage) json.RawMessage {
			return func(call rpcCall, result json.RawMessage) json.RawMessage {
				if head(call) {
					return old
				}
				return result
			}
		}},
		{"foreign hashes", troubleForeign, func(json.RawMessage) func(rpcCall, json.RawMessage) json.RawMessage {
			return func(call rpcCall, result json.RawMessage) json.RawMessage {
				if call.Method != "eth_getLogs" {
					return result
				}
				var logs []map[string]any
				_ = json.Unmarshal(result, &logs)
				for i := range logs {
					logs[i]["blockHash"] = "0x" + strings.Repeat("ab", 32)
				}
				result, _ = json.Marshal(logs)
				return result
			}
		}},
		{"missing blocks", refusedMissing.String(), func(json.RawMessage) func(rpcCall, json.RawMessage) json.RawMessage {
			return func(call rpcCall, result json.RawMessage) json.RawMessage {
				if call.Method == "eth_getBlockByNumber" {
					return json.RawMessage("null")
				}
				return result
			}
		}},
		{"hidden logs", troubleHidden, func(json.RawMessage) func(rpcCall, json.RawMessage) json.RawMessage {
			return func(call rpcCall, result json.RawMessage) json.RawMessage {
				if call.Method == "eth_getLogs" {
					return json.RawMessage("[]")
				}
				return result
			}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			chain := chaintest.New(t)
			proxy := newLyingNode(t, chain.HTTPURL())
			r := newRigAt(t, chain, proxy.server.URL+","+chain.HTTPURL(), 0)
			storage := contracts.SimpleStorage()
			address := chain.Deploy(t, storage)
			l := r.listen(storage, changed, &address, "oldest")
			r.start()
			for i := range 5 {
				r.set(address, int64(i))
			}
			r.history(5)
			proxy.set(nil, c.change(proxy.answerAs(t, `"0x2"`)))
			events := 5
			var nodes []Node
			for deadline := time.Now().Add(readerLimit); ; {
				if nodes = r.client.Nodes(); nodes[0].Reason != "" {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("no node was set aside: %+v", nodes)
				}
				r.set(address, int64(events))
				events++
				time.Sleep(200 * time.Millisecond) // between two looks
			}
			if nodes[0].Reason != c.reason || time.Until(nodes[0].Until) <= 0 {
				t.Errorf("%+v, want %s", nodes[0], c.reason)
			}
			r.set(address, int64(events))
			if got := r.history(events + 1); len(got) != events+1 {
				t.Errorf("%d events, want %d", len(got), events+1)
			}
			r.reached(chain.Head())
			r.consistent(l)
			if nodes = r.client.Nodes(); !nodes[1].InUse {
				t.Errorf("the other node is not in use: %+v", nodes)
			}
		})
	}
}

// TestTheOnlyNodeIsNotSetAside makes sure that a chain with one node keeps it, whatever it says.
func TestTheOnlyNodeIsNotSetAside(t *testing.T) {
	t.Parallel()
	r := newRig(t, 0)
	if r.client.distrust(t.Context(), r.client.url(), troubleBad, "") {
		t.Error("the only node was set aside")
	}
	if nodes := r.client.Nodes(); len(nodes) != 1 || !nodes[0].InUse || nodes[0].Reason != "" {
		t.Errorf("%+v", nodes)
	}
}

// TestBloomFindsWhatALogLeaves compares with go-ethereum's way of filling the filter, through blocks of a real chain.
func TestBloomFindsWhatALogLeaves(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	zoo := contracts.Zoo()
	address := chain.Deploy(t, zoo, "bloom")
	receipt := chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(2))
	block, err := chain.Client().HeaderByHash(t.Context(), receipt.BlockHash)
	if err != nil {
		t.Fatal(err)
	}
	filter := [256]byte(block.Bloom)
	if !mayHold(&filter, bitsOf(address[:])) || !mayHold(&filter, bitsOf(receipt.Logs[0].Topics[0][:])) {
		t.Error("the filter does not know its logs")
	}
	found := 0
	for i := range 200 {
		other := common.BytesToHash([]byte{7, byte(i)})
		if mayHold(&filter, bitsOf(other[:])) {
			found++
		}
	}
	if found > 5 {
		t.Errorf("the filter knows %d of 200 foreign values", found)
	}
}
