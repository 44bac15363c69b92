package chain

import (
	"bytes"
	"context"
	"fmt"
	"sort"
	"time"

	"github.com/ethereum/go-ethereum/rpc"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// readLive reads the next blocks after the last recorded one, as far as they have their confirmations.
func (s *session) readLive(ctx context.Context) (more bool, err error) {
	head, ahead, err := s.look(ctx)
	if err != nil {
		return false, err
	}
	if head.hash == s.seen && head.number-s.confirmations() < s.next && s.behind.since.IsZero() {
		return false, nil
	}
	safe := head.number - s.confirmations()
	if safe < s.next {
		return false, s.checkPosition(ctx, head)
	}
	s.behind = behindHead{}
	switch set := s.liveSet(); {
	case set.empty(), safe-s.next >= s.cfg.demoteLag:
		err = s.jump(ctx, safe, !set.empty())
	default:
		err = s.readBlocks(ctx, set, head, ahead, min(safe, s.next+liveStep-1))
	}
	if err != nil {
		return false, err
	}
	s.metrics.nextBlock.Set(float64(s.next))
	if s.next <= safe {
		return true, nil
	}
	s.seen = head.hash
	return false, nil
}

const (
	// aheadPatience is how long an answer to several calls may take before they are made one by one: some nodes never answer what they do not take.
	aheadPatience = 2 * time.Second
	// withoutAhead is how long logs are not asked for together with the head after the node did not answer that.
	withoutAhead = 10 * time.Minute
)

// look asks for the head. When the node has just announced the next block, its logs are asked for in the same message, which saves a round trip: ahead holds
// them if that block truly is the head. Where confirmations are waited for, a round trip does not matter.
func (s *session) look(ctx context.Context) (head blockHead, ahead []logPage, err error) {
	set := s.liveSet()
	number, hash := s.client.announced()
	likely := number == s.next && s.cfg.Confirmations == 0 && !set.empty()
	if now := time.Now(); !likely || now.Before(s.aheadAt) || now.UnixNano() < s.singlesUntil.Load() {
		head, err = s.head(ctx)
		return head, nil, err
	}
	ahead = make([]logPage, len(set.filters))
	batch := make([]rpc.BatchElem, 0, len(ahead)+1)
	batch = append(batch, rpc.BatchElem{Method: "eth_getBlockByNumber", Args: []any{"latest", false}, Result: &head})
	for i, filter := range set.filters {
		batch = append(batch, rpc.BatchElem{Method: "eth_getLogs", Args: []any{filter.query(0, 0, &hash)}, Result: &ahead[i]})
	}
	limited, stop := context.WithTimeout(ctx, aheadPatience)
	defer stop()
	if err := s.client.BatchCall(limited, batch); err != nil || batch[0].Error != nil || !head.found { // the call alone tells what it is about
		if err != nil && pactwire.KindOf(err) != pactwire.KindUnavailable {
			s.aheadAt = time.Now().Add(withoutAhead)
		}
		head, err = s.head(ctx)
		return head, nil, err
	}
	for _, call := range batch[1:] {
		if call.Error != nil || head.hash != hash {
			return head, nil, nil
		}
	}
	return head, ahead, nil
}

func (s *session) confirmations() int64 { return int64(s.cfg.Confirmations) } //nolint:gosec // no chain needs 2^63 confirmations

func (r *Reader) head(ctx context.Context) (blockHead, error) {
	var head blockHead
	if err := r.client.CallContext(ctx, &head, "eth_getBlockByNumber", "latest", false); err != nil {
		return head, fmt.Errorf("read the chain's head: %w", err)
	}
	if !head.found {
		return head, fmt.Errorf("read the chain's head: %w", errMissingBlock)
	}
	return head, nil
}

// readBlocks records the blocks from the position to the given one, which all follow each other and the last recorded one.
func (s *session) readBlocks(ctx context.Context, set *listenerSet, head blockHead, ahead []logPage, to int64) error {
	var heads []blockHead
	if s.next == to && head.number == to {
		heads = []blockHead{head}
	} else {
		numbers := make([]int64, 0, to-s.next+1)
		for n := s.next; n <= to; n++ {
			numbers = append(numbers, n)
		}
		var err error
		if heads, err = s.heads(ctx, numbers); err != nil {
			return err
		}
	}
	if err := linked(heads); err != nil {
		return err
	}
	if !s.blocks.precedes(&heads[0]) {
		return s.rewind(ctx, head)
	}
	f := &fetched{from: s.next, to: to, heads: heads}
	var err error
	if ahead != nil && to == head.number && len(heads) == 1 {
		err = s.use(ctx, f, set, ahead)
	} else {
		err = s.fetchBlocks(ctx, f, set)
	}
	if err != nil {
		return err
	}
	for _, part := range f.split(eventsPerTx) {
		if len(part.events) == 0 && len(part.pins) == 0 && len(s.owed)+len(part.heads) <= owedAtMost {
			s.owe(part.heads)
		} else {
			err := s.record(ctx, store.BlockBatch{
				From: s.written(), To: part.to, Blocks: chainBlocks(append(s.owed, part.heads...)), Keep: s.blocks.size, Events: part.events, Pins: part.pins,
			})
			if err != nil {
				return err
			}
			s.owed, s.owedDue = nil, nil
		}
		s.blocks.add(part.heads)
		s.next = part.to + 1
	}
	return nil
}

// jump moves the live part to a block without reading what is in between. Whoever was live is set back and has to catch up. With few blocks to go this is the
// way of a chain that nobody listens to: only headers are read.
func (s *session) jump(ctx context.Context, to int64, demote bool) error {
	if s.next > 0 {
		if last, ok := s.blocks.hash(s.next - 1); ok { // what was recorded last must still be there, or the blocks in between are other ones
			heads, err := s.heads(ctx, []int64{s.next - 1})
			if err != nil {
				return err
			}
			if heads[0].hash != last {
				return s.rewind(ctx, heads[0])
			}
		}
	}
	first := max(s.next, to-s.blocks.size+1)
	numbers := make([]int64, 0, to-first+1)
	for n := first; n <= to; n++ {
		numbers = append(numbers, n)
	}
	heads, err := s.heads(ctx, numbers)
	if err != nil {
		return err
	}
	if err := linked(heads); err != nil {
		return err
	}
	if first == s.next && !s.blocks.precedes(&heads[0]) {
		return fmt.Errorf("block %d does not follow the one before it: %w", first, errForeignBlock) // it did a moment ago
	}
	if !demote && first == s.next && len(s.owed)+len(heads) <= owedAtMost {
		s.owe(heads)
		s.blocks.add(heads)
		s.next = to + 1
		return nil
	}
	if err := s.writeOwed(ctx); err != nil {
		return err
	}
	if demote {
		s.log.InfoContext(ctx, "the live part is far behind: its listeners catch up", "next_block", s.next, "safe_block", to)
	}
	err = s.record(ctx, store.BlockBatch{From: s.next, To: to, Blocks: chainBlocks(heads), Keep: s.blocks.size, Demote: demote})
	if err != nil {
		return err
	}
	if first > s.next {
		s.blocks.clear()
	}
	s.blocks.add(heads)
	s.next = to + 1
	if demote {
		return wrapDatabase(s.refresh(ctx))
	}
	return nil
}

func wrapDatabase(err error) error {
	if err == nil {
		return nil
	}
	return databaseError{err}
}

// linked makes sure that each header is the parent of the next one, if that is of the next block.
func linked(heads []blockHead) error {
	for i := 1; i < len(heads); i++ {
		if heads[i].number == heads[i-1].number+1 && heads[i].parent != heads[i-1].hash {
			return fmt.Errorf("block %d is not the parent of block %d: %w", heads[i-1].number, heads[i].number, errForeignBlock)
		}
	}
	return nil
}

func chainBlocks(heads []blockHead) []store.ChainBlock {
	blocks := make([]store.ChainBlock, len(heads))
	for i := range heads {
		blocks[i] = store.ChainBlock{Number: heads[i].number, Hash: heads[i].hash[:], Parent: heads[i].parent[:]}
	}
	return blocks
}

// split cuts what was fetched between blocks, so that no part has more than limit events unless one block alone has.
func (f *fetched) split(limit int) []*fetched {
	var parts []*fetched
	rest := *f
	for len(rest.events) > limit {
		cut := limit
		for cut > 0 && rest.events[cut].BlockNumber == rest.events[cut-1].BlockNumber {
			cut--
		}
		if cut == 0 { // one block: all of it
			block := rest.events[0].BlockNumber
			cut = sort.Search(len(rest.events), func(i int) bool { return rest.events[i].BlockNumber > block })
			if cut == len(rest.events) {
				break
			}
		}
		to := rest.events[cut].BlockNumber - 1
		heads := sort.Search(len(rest.heads), func(i int) bool { return rest.heads[i].number > to })
		pins := sort.Search(len(rest.pins), func(i int) bool { return rest.pins[i].BlockNumber > to })
		parts = append(parts, &fetched{from: rest.from, to: to, heads: rest.heads[:heads], events: rest.events[:cut], pins: rest.pins[:pins]})
		rest.from, rest.heads, rest.events, rest.pins = to+1, rest.heads[heads:], rest.events[cut:], rest.pins[pins:]
	}
	return append(parts, &rest)
}

func sortListening(list []listening) {
	sort.Slice(list, func(a, b int) bool { return bytes.Compare(list[a].listener.ID[:], list[b].listener.ID[:]) < 0 })
}
