package chain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// heard is one listener, ready to be matched with logs. It is immutable.
type heard struct {
	listener store.Listener
	event    *contract.CompiledEvent
	address  common.Address // meaningful when the listener has one

	// Parts of each record's JSON that do not change.
	names, infoStart, infoEnd []byte
}

func newHeard(l store.Listener) (*heard, error) {
	definition, err := l.ContractEvent()
	if err != nil {
		return nil, err
	}
	compiled, err := contract.CompileEvent(definition)
	if err != nil {
		return nil, fmt.Errorf("compile the event of listener %s: %w", l.ID, err)
	}
	h := &heard{listener: l, event: compiled, address: common.BytesToAddress(l.Address)}
	if err := h.prepareJSON(); err != nil {
		return nil, err
	}
	return h, nil
}

// listening is a listener with the first block that it hears.
type listening struct {
	*heard
	from int64
}

type topicOf struct {
	topic   common.Hash
	address common.Address
}

// listenerSet finds the listeners of a log without going through all of them, and knows which logs to ask the node for. It is immutable.
type listenerSet struct {
	byTopic   map[topicOf][]listening        // event of one contract
	anywhere  map[common.Hash][]listening    // event of any contract
	anonymous map[common.Address][]listening // anonymous event of one contract
	anything  []listening                    // anonymous event of any contract
	pins      *common.Address                // the pin contract
	pinsFrom  int64
	filters   []logFilter
	marks     []bloomMark
}

// maxAddresses is how many addresses one filter holds: nodes and providers bound it.
const maxAddresses = 500

// logFilter is what eth_getLogs takes, apart from the blocks.
type logFilter struct {
	Addresses []common.Address
	Topics    []common.Hash // any of them as first topic; all logs when empty
}

func newListenerSet(list []listening, pins *common.Address, pinsFrom int64) *listenerSet {
	s := &listenerSet{
		byTopic: map[topicOf][]listening{}, anywhere: map[common.Hash][]listening{}, anonymous: map[common.Address][]listening{},
		pins: pins, pinsFrom: pinsFrom,
	}
	for _, l := range list {
		switch {
		case l.event.Anonymous && l.listener.Address == nil:
			s.anything = append(s.anything, l)
		case l.event.Anonymous:
			s.anonymous[l.address] = append(s.anonymous[l.address], l)
		case l.listener.Address == nil:
			s.anywhere[l.event.Topic0] = append(s.anywhere[l.event.Topic0], l)
		default:
			key := topicOf{l.event.Topic0, l.address}
			s.byTopic[key] = append(s.byTopic[key], l)
		}
	}
	s.buildFilters()
	s.buildMarks()
	return s
}

func (s *listenerSet) empty() bool { return len(s.filters) == 0 }

// buildFilters covers all listeners with as few requests as possible, and without fetching the logs of contracts that nobody listens to.
func (s *listenerSet) buildFilters() {
	if len(s.anything) > 0 {
		s.filters = []logFilter{{}}
		return
	}
	if len(s.anywhere) > 0 {
		topics := make([]common.Hash, 0, len(s.anywhere))
		for topic := range s.anywhere {
			topics = append(topics, topic)
		}
		s.filters = append(s.filters, logFilter{Topics: topics})
	}
	// Anonymous logs have no topic to ask for, and neither has the pin contract, which is wanted whole.
	whole := map[common.Address]bool{}
	for address := range s.anonymous {
		whole[address] = true
	}
	if s.pins != nil {
		whole[*s.pins] = true
	}
	addresses, topics := map[common.Address]bool{}, map[common.Hash]bool{}
	for key := range s.byTopic {
		if whole[key.address] || s.anywhere[key.topic] != nil {
			continue // comes with another filter
		}
		addresses[key.address], topics[key.topic] = true, true
	}
	s.addFilters(whole, nil)
	s.addFilters(addresses, topics)
	for i := range s.filters {
		sort.Slice(s.filters[i].Topics, func(a, b int) bool { return bytes.Compare(s.filters[i].Topics[a][:], s.filters[i].Topics[b][:]) < 0 })
	}
}

func (s *listenerSet) addFilters(addresses map[common.Address]bool, topics map[common.Hash]bool) {
	list := make([]common.Address, 0, len(addresses))
	for address := range addresses {
		list = append(list, address)
	}
	sort.Slice(list, func(a, b int) bool { return bytes.Compare(list[a][:], list[b][:]) < 0 })
	firsts := make([]common.Hash, 0, len(topics))
	for topic := range topics {
		firsts = append(firsts, topic)
	}
	for start := 0; start < len(list); start += maxAddresses {
		s.filters = append(s.filters, logFilter{Addresses: list[start:min(start+maxAddresses, len(list))], Topics: firsts})
	}
}

// query is the argument of eth_getLogs for a range of blocks, or for one block by its hash.
func (f logFilter) query(from, to int64, hash *common.Hash) json.RawMessage {
	q := map[string]any{}
	if hash != nil {
		q["blockHash"] = hash
	} else {
		q["fromBlock"], q["toBlock"] = hexutil.Uint64(from), hexutil.Uint64(to) //nolint:gosec // block numbers are not negative
	}
	if len(f.Addresses) > 0 {
		q["address"] = f.Addresses
	}
	if len(f.Topics) > 0 {
		q["topics"] = []any{f.Topics}
	}
	text, err := json.Marshal(q)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return text
}

// match calls yield for each listener that may hear the log; whether the log is truly of its event shows when it is decoded.
func (s *listenerSet) match(l *chainLog, yield func(*heard)) {
	each := func(list []listening) {
		for _, candidate := range list {
			if l.block >= candidate.from {
				yield(candidate.heard)
			}
		}
	}
	if len(l.topics) > 0 {
		each(s.byTopic[topicOf{l.topics[0], l.address}])
		each(s.anywhere[l.topics[0]])
	}
	each(s.anonymous[l.address])
	each(s.anything)
}

// wants tells whether anybody may hear the log.
func (s *listenerSet) wants(l *chainLog) bool {
	if s.isPin(l) {
		return true
	}
	wanted := false
	s.match(l, func(*heard) { wanted = true })
	return wanted
}

func (s *listenerSet) isPin(l *chainLog) bool {
	return s.pins != nil && l.address == *s.pins && l.block >= s.pinsFrom
}
