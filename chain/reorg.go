package chain

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/store"
)

// blockWindow holds the hashes of the last recorded blocks, without gaps.
type blockWindow struct {
	size   int64
	first  int64
	hashes []common.Hash
}

func newBlockWindow(size int64, blocks []store.ChainBlock) *blockWindow {
	w := &blockWindow{size: size}
	for _, b := range blocks {
		if n := w.first + int64(len(w.hashes)); n != b.Number { // what lies before a gap proves nothing
			w.first, w.hashes = b.Number, nil
		}
		w.hashes = append(w.hashes, common.BytesToHash(b.Hash))
	}
	return w
}

func (w *blockWindow) clear() { w.hashes = nil }

func (w *blockWindow) add(heads []blockHead) {
	for i := range heads {
		if len(w.hashes) == 0 {
			w.first = heads[i].number
		}
		w.hashes = append(w.hashes, heads[i].hash)
	}
	if extra := int64(len(w.hashes)) - w.size; extra > 0 {
		w.hashes = append(w.hashes[:0], w.hashes[extra:]...)
		w.first += extra
	}
}

// cut forgets the blocks after last.
func (w *blockWindow) cut(last int64) {
	w.hashes = w.hashes[:max(0, min(last-w.first+1, int64(len(w.hashes))))]
}

func (w *blockWindow) hash(number int64) (common.Hash, bool) {
	if i := number - w.first; i >= 0 && i < int64(len(w.hashes)) {
		return w.hashes[i], true
	}
	return common.Hash{}, false
}

// precedes tells whether the block follows the recorded one before it, as far as that is known.
func (w *blockWindow) precedes(head *blockHead) bool {
	before, known := w.hash(head.number - 1)
	return !known || before == head.parent
}

// behindHead is what is known of a head that does not go beyond what is recorded.
type behindHead struct {
	since   time.Time // of the first look; zero when the head is where it should be
	warned  bool
	differs time.Time // since when its chain is another one
}

const (
	// shorterPatience is how long another, shorter chain must stand before it is believed. Where several nodes stand behind one
	// address, one that lags on a fork that the others have left looks the same for a moment.
	shorterPatience = 3 * time.Second
	// behindPatience is how long a node may lag before it is reported.
	behindPatience = 30 * time.Second
)

// errBadNode means that the node contradicts what was final. Nothing is taken back on its word.
var errBadNode = errors.New("the node contradicts what was final")

// checkPosition is called when the head does not go beyond what is recorded, its confirmations deducted. It finds out whether that is still part of the chain.
func (s *session) checkPosition(ctx context.Context, head blockHead) error {
	last := min(s.next-1, head.number)
	known, ok := s.blocks.hash(last)
	if s.next > 0 && !ok {
		return fmt.Errorf("the head is block %d, far behind block %d, which was final: %w", head.number, s.next-1, errBadNode)
	}
	now := head
	if ok && last != head.number {
		heads, err := s.heads(ctx, []int64{last})
		if err != nil {
			return err
		}
		now = heads[0]
	}
	if !ok || now.hash == known {
		s.seen = head.hash
		if head.number < s.next-1 {
			s.lagging(ctx, head)
		} else {
			s.behind = behindHead{}
		}
		return nil
	}
	if head.number >= s.next-1 {
		return s.rewind(ctx, head)
	}
	// A chain that is shorter than what was recorded: true, or a node that lags on a fork.
	if s.behind.differs.IsZero() {
		s.behind.differs = time.Now()
	}
	if time.Since(s.behind.differs) < shorterPatience {
		return nil // looked at again by the next head or poll
	}
	return s.rewind(ctx, head)
}

// lagging reports a head that stays behind what is recorded. There is nothing to do but wait.
func (s *session) lagging(ctx context.Context, head blockHead) {
	if s.behind.since.IsZero() {
		s.behind.since = time.Now()
	}
	s.behind.differs = time.Time{}
	if time.Since(s.behind.since) > missingPatience {
		s.troubled(ctx, troubleBehind)
	}
	if !s.behind.warned && time.Since(s.behind.since) > behindPatience {
		s.behind.warned = true
		s.log.WarnContext(ctx, "the node stays behind what it had before", "head", head.number, "recorded", s.next-1)
	}
}

// ancestorStep is how many blocks are compared at once while looking for the last common one.
const ancestorStep = 32

// rewind finds the last recorded block that is still part of the chain, and takes back what came after it. The node's chain must reach it.
func (s *session) rewind(ctx context.Context, head blockHead) error {
	if err := s.writeOwed(ctx); err != nil {
		return err
	}
	ancestor, err := s.commonAncestor(ctx, min(s.next-1, head.number))
	if err != nil {
		return err
	}
	s.stopCatchUp()
	removed, err := s.db.RewindChain(ctx, s.cfg.Chain, s.lease, ancestor)
	if err != nil {
		return databaseError{err}
	}
	s.metrics.reorgs.Inc()
	s.metrics.removed.Add(float64(removed))
	s.log.WarnContext(ctx, "the chain was reorganised", "ancestor", ancestor, "blocks", s.next-1-ancestor, "events_removed", removed)
	s.blocks.cut(ancestor)
	s.next, s.seen, s.behind = ancestor+1, common.Hash{}, behindHead{}
	return wrapDatabase(s.refresh(ctx))
}

func (s *session) commonAncestor(ctx context.Context, from int64) (int64, error) {
	for top := from; top >= s.blocks.first && len(s.blocks.hashes) > 0; top -= ancestorStep {
		numbers := make([]int64, 0, ancestorStep)
		for n := max(top-ancestorStep+1, s.blocks.first); n <= top; n++ {
			numbers = append(numbers, n)
		}
		heads, err := s.heads(ctx, numbers)
		if err != nil {
			return 0, err
		}
		if err := linked(heads); err != nil {
			return 0, err
		}
		for i := len(heads) - 1; i >= 0; i-- {
			if known, ok := s.blocks.hash(heads[i].number); ok && known == heads[i].hash {
				return heads[i].number, nil
			}
		}
	}
	return 0, fmt.Errorf("none of the last %d recorded blocks is part of the node's chain: %w", len(s.blocks.hashes), errBadNode)
}
