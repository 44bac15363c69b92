package chain

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

// standing is a node whose head goes no further once it is frozen. Connections to it are counted.
type standing struct {
	*lyingNode
	head     atomic.Pointer[json.RawMessage] // of the last block that it tells; nil: it goes on
	dialled  atomic.Int64
	elsewise atomic.Bool // it says that it serves another chain
}

func newStanding(t *testing.T, chain *chaintest.Chain) *standing {
	t.Helper()
	s := &standing{lyingNode: newLyingNode(t, chain.HTTPURL())}
	s.set(nil, func(call rpcCall, result json.RawMessage) json.RawMessage {
		if call.Method == "eth_chainId" {
			s.dialled.Add(1)
			if s.elsewise.Load() {
				return json.RawMessage(`"0x7"`)
			}
		}
		head := s.head.Load()
		if head == nil {
			return result
		}
		var block struct{ Number json.RawMessage }
		_ = json.Unmarshal(*head, &block)
		switch {
		case call.Method == "eth_blockNumber":
			return block.Number
		case call.Method == "eth_getBlockByNumber" && string(call.Params[0]) == `"latest"`:
			return *head
		}
		return result
	})
	return s
}

func (s *standing) freeze(t *testing.T) {
	t.Helper()
	head := s.answerAs(t, `"latest"`)
	s.head.Store(&head)
}

// watching makes the reader look often, with a metric for the nodes that it sets aside.
func (r *rig) watching() *prometheus.Registry {
	registry := prometheus.NewRegistry()
	r.cfg.headLook, r.cfg.Registerer = 20*time.Millisecond, registry
	return registry
}

// TestANodeWhoseHeadStandsStillIsSetAside has three nodes, of which the first two stop following the chain: what is emitted afterwards comes from the third.
func TestANodeWhoseHeadStandsStillIsSetAside(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	first, second := newStanding(t, chain), newStanding(t, chain)
	r := newRigAt(t, chain, strings.Join([]string{first.server.URL, second.server.URL, chain.WSURL()}, ","), 0)
	registry := r.watching()
	storage := contracts.SimpleStorage()
	address := chain.Deploy(t, storage)
	l := r.listen(storage, changed, &address, "oldest")
	r.start()
	for i := range 5 {
		r.set(address, int64(i))
	}
	r.history(5)
	r.reached(chain.Head())
	first.freeze(t)
	second.freeze(t)
	for i := range 2 * aheadBlocks {
		r.set(address, int64(5+i))
	}
	if got := r.history(5 + 2*aheadBlocks); len(got) != 5+2*aheadBlocks {
		t.Errorf("%d events, want %d", len(got), 5+2*aheadBlocks)
	}
	nodes := r.client.Nodes()
	if nodes[0].Reason != troubleStill || time.Until(nodes[0].Until) <= 0 || nodes[1].Reason != "" || !nodes[2].InUse {
		t.Errorf("the nodes are %+v", nodes)
	}
	// The third one stands still as well now. Nobody goes back to the first, which does not even get asked, and the second is no better.
	asked := second.dialled.Load()
	until(t, "the second node is asked again", func() bool { return second.dialled.Load() >= asked+2 })
	if n := first.dialled.Load(); n != 1 {
		t.Errorf("%d connections to the node that was set aside, want the first one only", n)
	}
	r.set(address, 99)
	r.history(6 + 2*aheadBlocks)
	r.reached(chain.Head())
	r.consistent(l)
	if nodes := r.client.Nodes(); !nodes[2].InUse {
		t.Errorf("the nodes are %+v", nodes)
	}
	if n := asideBy(t, registry); len(n) != 1 || n[troubleStill] != 1 {
		t.Errorf("the metric counts %v", n)
	}
}

// asideBy is how many nodes were set aside, by reason.
func asideBy(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, f := range families {
		if f.GetName() != "pactwire_reader_nodes_set_aside_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "reason" {
					counts[label.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return counts
}

// TestAHeadMayStandStill has a node in use whose head stands still, and another one that is no reason to leave it.
func TestAHeadMayStandStill(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(t *testing.T, chain *chaintest.Chain, first, second *standing){
		"the chain stands still": func(*testing.T, *chaintest.Chain, *standing, *standing) {},
		"a little ahead": func(t *testing.T, chain *chaintest.Chain, first, _ *standing) {
			first.freeze(t)
			chain.Mine(aheadBlocks - 1)
		},
		"another chain": func(t *testing.T, chain *chaintest.Chain, first, second *standing) {
			first.freeze(t)
			second.elsewise.Store(true)
			chain.Mine(100)
		},
		"out of reach": func(t *testing.T, chain *chaintest.Chain, first, second *standing) {
			first.freeze(t)
			second.set(func(call rpcCall) string {
				if call.Method == "eth_blockNumber" {
					return "not today"
				}
				return ""
			}, second.change)
			chain.Mine(100)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chain := chaintest.New(t)
			first, second := newStanding(t, chain), newStanding(t, chain)
			r := newRigAt(t, chain, first.server.URL+","+second.server.URL, 0)
			registry := r.watching()
			r.start()
			r.reached(chain.Head())
			prepare(t, chain, first, second)
			until(t, "the other node is asked some times", func() bool { return second.dialled.Load() >= 4 })
			if nodes := r.client.Nodes(); !nodes[0].InUse || nodes[0].Reason != "" || nodes[1].Reason != "" {
				t.Errorf("the nodes are %+v", nodes)
			}
			if n := asideBy(t, registry); len(n) != 0 {
				t.Errorf("nodes were set aside: %v", n)
			}
			if still := gauge(t, registry, "pactwire_reader_head_still_seconds"); still < (stillLooks * r.cfg.headLook).Seconds() {
				t.Errorf("the head stands still for %v s", still)
			}
			if n := first.dialled.Load(); n != 1 {
				t.Errorf("%d connections to the node in use", n)
			}
		})
	}
}

// TestTheOtherNodesAreAskedSeldom has the chain stand still for hours.
func TestTheOtherNodesAreAskedSeldom(t *testing.T) {
	t.Parallel()
	now := time.Now()
	w := newHeadWatch(headLook, now)
	asked := 0
	look := func(looks int, number uint64, ahead bool) (enough bool) {
		for range looks {
			now = now.Add(headLook)
			if w.seen("a", number, now) {
				asked++
				enough = w.compared("a", ahead, now)
			}
		}
		return enough
	}
	if look(stillLooks, 7, false); asked != 0 {
		t.Errorf("asked %d times before it stood still for long", asked)
	}
	if look(720, 7, false); asked > 40 {
		t.Errorf("asked %d times in an hour", asked)
	}
	if still := w.stillFor(now); still < time.Hour {
		t.Errorf("it stands still for %s", still)
	}
	// Another one is ahead for a moment: this one's block was only on its way.
	for asked = 0; asked == 0; {
		if look(1, 7, true) {
			t.Error("one answer was enough")
		}
	}
	asked = 0
	if look(stillLooks, 8, true) || asked != 0 {
		t.Errorf("asked %d times after the head had moved", asked)
	}
	if still := w.stillFor(now); still != (stillLooks-1)*headLook {
		t.Errorf("it stands still for %s", still)
	}
	if look(certainLooks, 8, true) {
		t.Error("one answer was enough")
	}
	if !look(1, 8, true) {
		t.Error("two answers were not enough")
	}
}
