package chain

import (
	"encoding/json"
	"math/big"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// TestCatchUpOverALyingNode has a node that spoils what it sends of the past, in ways that no error tells.
func TestCatchUpOverALyingNode(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t, chaintest.Manual())
	zoo := contracts.Zoo()
	address := chain.Deploy(t, zoo, "far")
	for range 100 {
		chain.Transact(t, 1, address, zoo, "emitMany", big.NewInt(3))
	}
	const events = 300
	logs := func(change func([]map[string]any) []map[string]any) func(rpcCall, json.RawMessage) json.RawMessage {
		return func(call rpcCall, result json.RawMessage) json.RawMessage {
			var list []map[string]any
			if call.Method == "eth_getLogs" && json.Unmarshal(result, &list) == nil {
				if list = change(list); list == nil {
					list = []map[string]any{}
				}
				result, _ = json.Marshal(list)
			}
			return result
		}
	}
	for name, c := range map[string]struct {
		exact  int64
		change func([]map[string]any) []map[string]any
	}{
		"some blocks": {verifyBlocks, func(list []map[string]any) []map[string]any {
			return slices.DeleteFunc(list, func(l map[string]any) bool { return strings.HasSuffix(l["blockNumber"].(string), "2") })
		}},
		"one log of three": {verifyBlocks, func(list []map[string]any) []map[string]any {
			at := 0
			return slices.DeleteFunc(list, func(l map[string]any) bool {
				at++
				return at%3 == 0 || strings.HasSuffix(l["blockNumber"].(string), "6") // these betray it
			})
		}},
		"cut":                    {verifyBlocks, func(list []map[string]any) []map[string]any { return list[:min(len(list), 10)] }},
		"all, far from the head": {0, func([]map[string]any) []map[string]any { return nil }},
		"cut, far from the head": {0, func(list []map[string]any) []map[string]any { return list[:min(len(list), 4)] }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proxy := newLyingNode(t, chain.HTTPURL())
			r := newRigAt(t, chain, proxy.server.URL, 0)
			r.cfg.VerifyBlocks, r.cfg.FirstRange = &c.exact, 200
			l := r.listen(zoo, "Counted(uint256,uint256)", &address, "oldest")
			proxy.set(nil, logs(c.change))
			r.start()
			if have := r.history(events); len(have) != events {
				t.Errorf("%d events, want %d", len(have), events)
			}
			r.reached(chain.Head())
			r.consistent(l)
		})
	}
	t.Run("foreign hashes, far from the head", func(t *testing.T) {
		t.Parallel()
		proxy := newLyingNode(t, chain.HTTPURL())
		r := newRigAt(t, chain, proxy.server.URL, 0)
		r.cfg.VerifyBlocks = new(int64)
		l := r.listen(zoo, "Counted(uint256,uint256)", &address, "oldest")
		var lies atomic.Int64
		proxy.set(nil, logs(func(list []map[string]any) []map[string]any {
			for i := range list {
				if lies.Add(1) <= 400 {
					list[i]["blockHash"] = "0x" + strings.Repeat("ab", 32)
				}
			}
			return list
		}))
		r.start()
		r.history(events)
		r.reached(chain.Head())
		r.consistent(l)
	})
	t.Run("without times, far from the head", func(t *testing.T) {
		t.Parallel()
		proxy := newLyingNode(t, chain.HTTPURL())
		r := newRigAt(t, chain, proxy.server.URL, 0)
		r.cfg.VerifyBlocks = new(int64)
		l := r.listen(zoo, "Counted(uint256,uint256)", &address, "oldest")
		proxy.set(nil, logs(func(list []map[string]any) []map[string]any {
			for i := range list {
				delete(list[i], "blockTimestamp")
			}
			return list
		}))
		r.start()
		r.history(events)
		r.reached(chain.Head())
		r.consistent(l)
	})
}

func TestWhatIsVerified(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.Int64Range(0, 100).Draw(t, "first")
		last := first + rapid.Int64Range(-1, 200).Draw(t, "blocks")
		exact := rapid.Int64Range(-10, 400).Draw(t, "exact")
		filters := rapid.Bool().Draw(t, "filters")
		var logs []chainLog
		withLogs, timeless := map[int64]bool{}, map[int64]bool{}
		for n := first; n <= last+1; n++ { // that of the block after the last one is read already
			for range rapid.IntRange(0, 2).Draw(t, "logs") {
				l := chainLog{block: n, time: rapid.Int64Range(0, 2).Draw(t, "time")}
				logs = append(logs, l)
				withLogs[n] = true
				timeless[n] = timeless[n] || l.time == 0
			}
		}
		numbers := toVerify(logs, first, last, exact, filters)
		if !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) != len(numbers) {
			t.Fatalf("%v", numbers)
		}
		sampled := 0
		for n := first; n <= last; n++ {
			_, verified := slices.BinarySearch(numbers, n)
			must := timeless[n] || n >= exact && (filters || withLogs[n])
			if must && !verified {
				t.Errorf("block %d is not verified: %v", n, numbers)
			}
			if verified && !must {
				sampled++
			}
		}
		if sampled > 2*sampleBlocks {
			t.Errorf("%d blocks are verified beyond need", sampled)
		}
		if len(numbers) > 0 && (numbers[0] < first || numbers[len(numbers)-1] > last) {
			t.Errorf("%v is not within %d to %d", numbers, first, last)
		}
		if far := min(last, exact-1); filters && far >= first && sampled == 0 {
			if i, _ := slices.BinarySearch(numbers, far+1); i == 0 {
				t.Errorf("no sample of %d to %d", first, far)
			}
		}
	})
}
