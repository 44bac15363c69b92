package chain

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

var (
	// errMissingBlock means that the node does not have a block that it should have: it lags, or several nodes stand behind one address.
	errMissingBlock = errors.New("the node does not have the block")
	// errForeignBlock means that the node's answers do not belong to one chain: a reorganisation happened in between, or the node is wrong.
	errForeignBlock = errors.New("the node's answers belong to different chains")
)

// headersPerMessage is how many headers one message asks for; many nodes refuse more calls in one.
const headersPerMessage = 100

// fetched is what a range of blocks held for a set of listeners.
type fetched struct {
	from, to int64
	logs     int         // all that the node sent
	heads    []blockHead // of the blocks that it relies on, in ascending order; the last one is that of to
	events   []store.BlockchainEvent
	pins     []store.Pin
}

// heads reads the headers of the given blocks.
func (r *Reader) heads(ctx context.Context, numbers []int64) ([]blockHead, error) {
	heads := make([]blockHead, len(numbers))
	for start := 0; start < len(numbers); start += headersPerMessage {
		end := min(start+headersPerMessage, len(numbers))
		if err := r.readHeads(ctx, numbers[start:end], heads[start:end]); err != nil {
			return nil, fmt.Errorf("read the headers of %d blocks: %w", len(numbers), err)
		}
	}
	for i := range heads {
		if err := checkHead(&heads[i], numbers[i]); err != nil {
			return nil, err
		}
	}
	return heads, nil
}

// withoutHeaders is how long whole blocks are asked for after a node said that it does not give headers alone.
const withoutHeaders = 10 * time.Minute

// readHeads reads some headers in one message. Many nodes give a header alone, which costs them a fraction of a block; the others say that they do not.
func (r *Reader) readHeads(ctx context.Context, numbers []int64, heads []blockHead) error {
	light := len(numbers) > 1 && time.Now().UnixNano() > r.headersTry.Load()
	batch := make([]rpc.BatchElem, 0, len(numbers))
	for i, number := range numbers {
		call := headRequest(number, &heads[i])
		if light {
			call.Method, call.Args = "eth_getHeaderByNumber", call.Args[:1]
		}
		batch = append(batch, call)
	}
	err := r.calls(ctx, batch)
	var refusal rpc.Error
	if light && errors.As(err, &refusal) && unknownMethod(refusal) {
		r.headersTry.Store(time.Now().Add(withoutHeaders).UnixNano())
		return r.readHeads(ctx, numbers, heads)
	}
	return err
}

func headRequest(number int64, head *blockHead) rpc.BatchElem {
	return rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{hexutil.Uint64(number), false}, Result: head} //nolint:gosec // not negative
}

func checkHead(head *blockHead, number int64) error {
	if !head.found {
		return fmt.Errorf("read block %d: %w", number, errMissingBlock)
	}
	if head.number != number {
		return fmt.Errorf("read block %d: the node answers with block %d: %w", number, head.number, errForeignBlock)
	}
	return nil
}

// singlesFor is how long calls are made one by one after a node took them only so.
const singlesFor = 5 * time.Minute

// calls makes several calls in one message, or one by one where the node takes no messages with several.
func (r *Reader) calls(ctx context.Context, batch []rpc.BatchElem) error {
	if len(batch) == 1 || time.Now().UnixNano() < r.singlesUntil.Load() {
		return r.singleCalls(ctx, batch)
	}
	err := r.client.BatchCall(ctx, batch)
	if err != nil {
		var refusal rpc.Error
		whole := errors.As(err, &refusal) || pactwire.KindOf(err) == pactwire.KindBadUpstream // it was the message that the node did not take
		if !whole || kindOfRefusal(err) != refusedOther {
			return err
		}
		if r.singleCalls(ctx, batch) != nil {
			return err
		}
		r.singlesUntil.Store(time.Now().Add(singlesFor).UnixNano())
		r.log.WarnContext(ctx, "the node takes no messages with several calls; they are made one by one for a while", "error", err)
		return nil
	}
	for i := range batch {
		if batch[i].Error != nil {
			return batch[i].Error
		}
	}
	return nil
}

func (r *Reader) singleCalls(ctx context.Context, batch []rpc.BatchElem) error {
	for _, call := range batch {
		if err := r.client.CallContext(ctx, call.Result, call.Method, call.Args...); err != nil {
			return err
		}
	}
	return nil
}

// fetchRange reads the logs of a range of blocks. The header of the last block is read before and after the logs: when it is the same, the logs
// are those of the one chain that ends with it. Of the blocks from exact on, all headers are read: the block hash of every log is checked, and the bloom filters tell
// where logs may be missing. Of the blocks before, a sample is.
func (r *Reader) fetchRange(ctx context.Context, set *listenerSet, from, to, exact int64) (*fetched, error) {
	var before, after blockHead
	pages := make([]logPage, len(set.filters))
	batch := make([]rpc.BatchElem, 0, len(pages)+2)
	batch = append(batch, headRequest(to, &before))
	for i, filter := range set.filters {
		batch = append(batch, rpc.BatchElem{Method: "eth_getLogs", Args: []any{filter.query(from, to, nil)}, Result: &pages[i]})
	}
	batch = append(batch, headRequest(to, &after))
	if err := r.calls(ctx, batch); err != nil {
		return nil, fmt.Errorf("read the logs of blocks %d to %d: %w", from, to, err)
	}
	for _, head := range [...]*blockHead{&before, &after} {
		if err := checkHead(head, to); err != nil {
			return nil, err
		}
	}
	if before.hash != after.hash {
		return nil, fmt.Errorf("read the logs of blocks %d to %d: the last block changed meanwhile: %w", from, to, errForeignBlock)
	}
	total, logs, err := mergePages(set, pages, from, to)
	if err != nil {
		return nil, err
	}
	if r.distrusts() {
		exact = from
	}
	heads, err := r.heads(ctx, toVerify(logs, from, to-1, exact, len(set.marks) > 0))
	if err != nil {
		return nil, err
	}
	f := &fetched{from: from, to: to, logs: total, heads: append(heads, after)}
	if err := linked(f.heads); err != nil {
		return nil, err
	}
	logs, added, err := r.complete(ctx, set, f.heads, logs, receiptsPerRange)
	if err != nil {
		return nil, err
	}
	if added > 0 && from < exact { // a sample is not enough for this node
		return r.fetchRange(ctx, set, from, to, from)
	}
	return f, r.fill(ctx, f, set, logs)
}

// fetchBlocks reads the logs of consecutive blocks, whose headers f has.
func (r *Reader) fetchBlocks(ctx context.Context, f *fetched, set *listenerSet) error {
	if set.empty() {
		return nil
	}
	heads, first, last := f.heads, &f.heads[0], &f.heads[len(f.heads)-1]
	var before, after blockHead
	var pages []logPage
	var batch []rpc.BatchElem
	ask := func(from, to int64, hash *common.Hash) {
		for _, filter := range set.filters {
			pages = append(pages, logPage{})
			batch = append(batch, rpc.BatchElem{Method: "eth_getLogs", Args: []any{filter.query(from, to, hash)}})
		}
	}
	// Asked for by its hash, a block's logs are certain: a node without that very block refuses, where it would answer a range with nothing.
	const byHash = 2
	if len(heads) <= byHash {
		for i := range heads {
			ask(0, 0, &heads[i].hash)
		}
	} else {
		batch = append(batch, headRequest(last.number, &before))
		ask(first.number, last.number, nil)
		batch = append(batch, headRequest(last.number, &after))
	}
	page := 0
	for i := range batch {
		if batch[i].Result == nil {
			batch[i].Result = &pages[page]
			page++
		}
	}
	if err := r.calls(ctx, batch); err != nil {
		return fmt.Errorf("read the logs of blocks %d to %d: %w", f.from, f.to, err)
	}
	if len(heads) > byHash {
		for _, head := range [...]*blockHead{&before, &after} {
			if err := checkHead(head, last.number); err != nil {
				return err
			}
			if head.hash != last.hash {
				return fmt.Errorf("read the logs of blocks %d to %d: the last block changed meanwhile: %w", f.from, f.to, errForeignBlock)
			}
		}
	}
	return r.use(ctx, f, set, pages)
}

// use turns what the node sent into records, with what it left out of the blocks whose headers f has.
func (r *Reader) use(ctx context.Context, f *fetched, set *listenerSet, pages []logPage) error {
	total, logs, err := mergePages(set, pages, f.from, f.to)
	if err != nil {
		return err
	}
	f.logs = total
	if logs, _, err = r.complete(ctx, set, f.heads, logs, len(f.heads)); err != nil {
		return err
	}
	return r.fill(ctx, f, set, logs)
}

// mergePages brings the wanted logs of all answers into chain order, each one once.
func mergePages(set *listenerSet, pages []logPage, from, to int64) (total int, logs []chainLog, err error) {
	for _, page := range pages {
		total += len(page.logs)
		for i := range page.logs {
			l := &page.logs[i]
			if l.block < from || l.block > to || l.removed {
				return 0, nil, fmt.Errorf("read the logs of blocks %d to %d: the node sends one of block %d: %w", from, to, l.block, errForeignBlock)
			}
			if set.wants(l) {
				logs = append(logs, *l)
			}
		}
	}
	sortLogs(logs)
	kept := logs[:0]
	for i := range logs {
		if n := len(kept); n > 0 && kept[n-1].block == logs[i].block && kept[n-1].index == logs[i].index {
			if kept[n-1].blockHash != logs[i].blockHash || kept[n-1].txHash != logs[i].txHash {
				return 0, nil, fmt.Errorf("read block %d: the node sends two logs with index %d: %w", logs[i].block, logs[i].index, errForeignBlock)
			}
			continue
		}
		kept = append(kept, logs[i])
	}
	return total, kept, nil
}

// sortLogs brings logs into chain order.
func sortLogs(logs []chainLog) {
	before := func(a, b int) bool {
		return logs[a].block < logs[b].block || logs[a].block == logs[b].block && logs[a].index < logs[b].index
	}
	if !sort.SliceIsSorted(logs, before) {
		sort.SliceStable(logs, before)
	}
}

// fill turns the logs into records. f.heads holds the headers of their blocks, except of those whose logs tell enough by themselves.
func (r *Reader) fill(ctx context.Context, f *fetched, set *listenerSet, logs []chainLog) error {
	if len(logs) == 0 {
		return nil
	}
	f.events = make([]store.BlockchainEvent, 0, len(logs))
	var rec recorder
	at := 0
	for i := range logs {
		l := &logs[i]
		for at < len(f.heads) && f.heads[at].number < l.block {
			at++
		}
		mined := l.time
		switch {
		case at < len(f.heads) && f.heads[at].number == l.block:
			if f.heads[at].hash != l.blockHash {
				return fmt.Errorf("a log of block %d says that the block is %s: %w", l.block, l.blockHash, errForeignBlock)
			}
			mined = f.heads[at].time
		case mined == 0, i > 0 && logs[i-1].block == l.block && (logs[i-1].blockHash != l.blockHash || logs[i-1].time != mined):
			return fmt.Errorf("the logs of block %d do not agree about it: %w", l.block, errForeignBlock)
		}
		if set.isPin(l) {
			f.pins = append(f.pins, pinOf(r.cfg.Chain, l))
		}
		set.match(l, func(h *heard) {
			record, err := rec.record(h, l, mined)
			if err != nil {
				r.metrics.undecoded.Inc()
				r.log.WarnContext(ctx, "a log does not decode", "listener", h.listener.ID, "block", l.block, "log", l.index, "error", err)
			}
			if record != nil {
				f.events = append(f.events, *record)
			}
		})
	}
	return nil
}

func pinOf(chain string, l *chainLog) store.Pin {
	p := store.Pin{
		Chain: chain, BlockNumber: l.block, TxIndex: l.txIndex, LogIndex: l.index, BlockHash: l.blockHash[:], TxHash: l.txHash[:],
		Topics: make([][]byte, 0, len(l.topics)), Data: l.data,
	}
	if p.Data == nil {
		p.Data = []byte{}
	}
	for i := range l.topics {
		p.Topics = append(p.Topics, l.topics[i][:])
	}
	return p
}
