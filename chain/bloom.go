package chain

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"
)

// A block's header says by its bloom filter which addresses and topics its logs may have. Where it says that there may be one of ours and the node sent none,
// the block's receipts decide: nodes with a broken or missing log index answer with nothing instead of refusing.

// bloomBits are the three bits that a value sets in a bloom filter.
type bloomBits [3]uint16

func bitsOf(value []byte) bloomBits {
	hash := crypto.Keccak256(value)
	var bits bloomBits
	for i := range bits {
		bits[i] = (uint16(hash[2*i])<<8 | uint16(hash[2*i+1])) & 2047
	}
	return bits
}

// bloom is the filter of one header; nil where the header has none.
type bloom *[256]byte

func mayHold(b bloom, bits bloomBits) bool {
	for _, bit := range bits {
		if b[255-bit/8]&(1<<(bit%8)) == 0 {
			return false
		}
	}
	return true
}

// bloomMark is what a log of somebody's event leaves in the bloom filter: an address, a topic, or both.
type bloomMark struct {
	address, topic         common.Hash // the address padded
	hasAddress, hasTopic   bool
	addressBits, topicBits bloomBits
}

// markKey identifies a mark among the logs of a block.
type markKey struct {
	address common.Address
	topic   common.Hash
}

func (m *bloomMark) key() markKey {
	return markKey{common.BytesToAddress(m.address[:]), m.topic}
}

// buildMarks lists the marks of all listeners. Where somebody hears everything, there is nothing to look for.
func (s *listenerSet) buildMarks() {
	if len(s.anything) > 0 {
		return
	}
	mark := func(address *common.Address, topic *common.Hash) {
		var m bloomMark
		if address != nil {
			m.address, m.hasAddress, m.addressBits = common.BytesToHash(address[:]), true, bitsOf(address[:])
		}
		if topic != nil {
			m.topic, m.hasTopic, m.topicBits = *topic, true, bitsOf(topic[:])
		}
		s.marks = append(s.marks, m)
	}
	for key := range s.byTopic {
		mark(&key.address, &key.topic)
	}
	for topic := range s.anywhere {
		mark(nil, &topic)
	}
	for address := range s.anonymous {
		mark(&address, nil)
	}
	if s.pins != nil {
		mark(s.pins, nil)
	}
}

// suspicious tells whether the block may hold a log of somebody's event of which none was sent; with distrust, whether it may hold one at all.
func (s *listenerSet) suspicious(head *blockHead, logs []chainLog, distrust bool) bool {
	if head.bloom == nil {
		return false
	}
	var sent map[markKey]bool
	for i := range s.marks {
		m := &s.marks[i]
		if m.hasAddress && !mayHold(head.bloom, m.addressBits) || m.hasTopic && !mayHold(head.bloom, m.topicBits) {
			continue
		}
		if distrust {
			return true
		}
		if sent == nil {
			sent = make(map[markKey]bool, 3*len(logs))
			for k := range logs {
				l := &logs[k]
				sent[markKey{address: l.address}] = true
				if len(l.topics) > 0 {
					sent[markKey{topic: l.topics[0]}], sent[markKey{l.address, l.topics[0]}] = true, true
				}
			}
		}
		if !sent[m.key()] {
			return true
		}
	}
	return false
}

// receiptLogs is an answer of eth_getBlockReceipts, of which only the logs are read.
type receiptLogs struct {
	found bool
	logs  []chainLog
}

var errBadReceipts = errors.New("json: the answer to eth_getBlockReceipts is no list of receipts")

// UnmarshalJSON implements json.Unmarshaler.
func (r *receiptLogs) UnmarshalJSON(b []byte) error {
	*r = receiptLogs{}
	if string(b) == "null" {
		return nil
	}
	var receipts []struct {
		Logs json.RawMessage `json:"logs"`
	}
	if err := json.Unmarshal(b, &receipts); err != nil {
		return errBadReceipts
	}
	for _, receipt := range receipts {
		var page logPage
		if err := page.UnmarshalJSON(receipt.Logs); err != nil {
			return err
		}
		r.logs = append(r.logs, page.logs...)
	}
	r.found = true
	return nil
}

// withoutReceipts is how long a node is not asked for receipts after it said that it does not know the call.
const withoutReceipts = 10 * time.Minute

// hiddenLogs returns the wanted logs that a block's receipts show and that are not among those that the node sent.
func (r *Reader) hiddenLogs(ctx context.Context, set *listenerSet, head *blockHead, logs []chainLog) ([]chainLog, error) {
	var receipts receiptLogs
	err := r.client.CallContext(ctx, &receipts, "eth_getBlockReceipts", head.hash)
	var refusal rpc.Error
	if errors.As(err, &refusal) && unknownMethod(refusal) {
		r.receiptsTry.Store(time.Now().Add(withoutReceipts).UnixNano())
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the receipts of block %d: %w", head.number, err)
	}
	if !receipts.found {
		return nil, fmt.Errorf("read the receipts of block %d: %w", head.number, errMissingBlock)
	}
	var hidden []chainLog
	known := make(map[int64]bool, len(logs))
	for i := range logs {
		known[logs[i].index] = true
	}
	for i := range receipts.logs {
		l := &receipts.logs[i]
		if l.block != head.number || l.blockHash != head.hash {
			return nil, fmt.Errorf("a receipt of block %d is of block %s: %w", head.number, l.blockHash, errForeignBlock)
		}
		if set.wants(l) && !known[l.index] {
			hidden = append(hidden, *l)
		}
	}
	return hidden, nil
}

// unknownMethod tells whether the node refuses because it does not have the call.
func unknownMethod(err rpc.Error) bool {
	const methodNotFound, methodNotSupported = -32601, -32004
	if err.ErrorCode() == methodNotFound || err.ErrorCode() == methodNotSupported {
		return true
	}
	text := strings.ToLower(err.Error())
	if strings.Contains(text, "did not match any variant") { // anvil's words
		return true
	}
	for _, words := range []string{"method not found", "does not exist", "unsupported method", "not supported", "not available", "not allowed", "not whitelisted"} {
		if strings.Contains(text, words) && strings.Contains(text, "method") {
			return true
		}
	}
	return false
}

// complete puts what the receipts of suspicious blocks show into logs, which are in chain order as heads are, and tells how many logs that were. Only the given
// headers are looked at, and of those that are suspicious at most so many: where the filters of all blocks are nearly full, they tell nothing. Of a node that has
// been found to leave out logs, all blocks are suspicious that may hold some.
func (r *Reader) complete(ctx context.Context, set *listenerSet, heads []blockHead, logs []chainLog, most int) (all []chainLog, added int, err error) {
	if len(set.marks) == 0 || time.Now().UnixNano() < r.receiptsTry.Load() {
		return logs, 0, nil
	}
	for {
		known := r.distrusts()
		if known {
			most = len(heads)
		}
		hidden, blocks, err := r.lookBehind(ctx, set, heads, logs, most, known)
		if err != nil || blocks == 0 {
			return logs, added, err
		}
		r.distrusted.Store(time.Now().Add(distrustFor).UnixNano()) // the next round, with what was found, looks at all blocks
		r.metrics.hidden.Add(float64(len(hidden)))
		r.metrics.nodeErrors.WithLabelValues(troubleHidden).Add(float64(blocks))
		r.log.WarnContext(ctx, "the node left out logs that the receipts of their blocks show", "first_block", hidden[0].block, "blocks", blocks, "logs", len(hidden))
		for range blocks {
			r.troubled(ctx, troubleHidden)
		}
		logs, added = append(logs, hidden...), added+len(hidden)
		sortLogs(logs)
		if known {
			return logs, added, nil
		}
	}
}

// distrustFor is how long all that a node sends is compared with receipts after it left out logs.
const distrustFor = 10 * time.Minute

func (r *Reader) distrusts() bool { return time.Now().UnixNano() < r.distrusted.Load() }

// lookBehind compares the logs of suspicious blocks, or of all that may hold some, with their receipts.
func (r *Reader) lookBehind(ctx context.Context, set *listenerSet, heads []blockHead, logs []chainLog, most int, distrust bool) (hidden []chainLog, blocks int, err error) {
	type suspect struct {
		head *blockHead
		logs []chainLog
	}
	var suspects []suspect
	at := 0
	for i := range heads {
		for at < len(logs) && logs[at].block < heads[i].number {
			at++
		}
		end := at
		for end < len(logs) && logs[end].block == heads[i].number {
			end++
		}
		if set.suspicious(&heads[i], logs[at:end], distrust) {
			suspects = append(suspects, suspect{&heads[i], logs[at:end]})
		}
		at = end
	}
	if len(suspects) > most {
		rand.Shuffle(len(suspects), func(i, k int) { suspects[i], suspects[k] = suspects[k], suspects[i] })
		suspects = suspects[:most]
	}
	for _, s := range suspects {
		found, err := r.hiddenLogs(ctx, set, s.head, s.logs)
		if err != nil {
			return nil, 0, err
		}
		if len(found) > 0 {
			blocks++
			hidden = append(hidden, found...)
		}
	}
	return hidden, blocks, nil
}
