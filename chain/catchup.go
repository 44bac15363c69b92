package chain

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// pipeline reads a stretch of the past for those who are not live: ranges are fetched ahead in parallel and delivered in order. What is in memory is
// bounded by the number of fetches under way.
type pipeline struct {
	set      *listenerSet
	members  []uuid.UUID
	pins     *common.Address // nil when the pin contract is live or there is none
	from, to int64
	recorded int // parts that were recorded
	out      chan *pastPart
	cancel   context.CancelFunc
	running  sync.WaitGroup
}

// pastPart is what one range held, or a piece of it if the node took the range only in pieces.
type pastPart struct {
	fetched *fetched
	err     error // nothing follows
}

// results is where parts arrive, in order; it is closed at the end. A nil pipeline delivers nothing.
func (p *pipeline) results() <-chan *pastPart {
	if p == nil {
		return nil
	}
	return p.out
}

// patience is how many parts a catch-up records at least before it starts anew for those who joined, so that it moves on however many join.
const patience = 4

// readPast does the next piece of the catch-up. more tells that there is work left that can be done at once.
func (s *session) readPast(ctx context.Context) (more bool, err error) {
	if s.past != nil && s.pending == nil && !s.ended {
		select {
		case part, open := <-s.past.results():
			s.pending, s.ended = part, !open
		default:
		}
	}
	switch {
	case s.pending != nil:
		part := s.pending
		s.pending = nil
		if part.err == nil {
			s.past.recorded++
			err = s.recordPiece(ctx, part.fetched, s.past.members, s.past.pins)
		} else {
			err = part.err
		}
		if err != nil {
			s.stopCatchUp()
			return false, err
		}
		if s.stale && s.past.recorded >= patience {
			s.stopCatchUp()
		}
		return s.past == nil, nil
	case s.ended:
		s.stopCatchUp()
	case s.past != nil:
		return false, nil
	}
	return s.startCatchUp(ctx)
}

// recordPiece writes what a range of the past held for the given members.
func (s *session) recordPiece(ctx context.Context, f *fetched, ids []uuid.UUID, pins *common.Address) error {
	if err := s.writeOwed(ctx); err != nil {
		return err
	}
	for i := range f.heads { // near the head the live part knows which blocks are the chain's
		if known, ok := s.blocks.hash(f.heads[i].number); ok && known != f.heads[i].hash {
			return fmt.Errorf("block %d is not the one that was recorded: %w", f.heads[i].number, errForeignBlock)
		}
	}
	for _, piece := range f.split(eventsPerTx) {
		moved := make([]uuid.UUID, 0, len(ids))
		for _, id := range ids {
			if m := s.members[id]; m != nil && !m.live && m.checkpoint <= piece.to+1 {
				moved = append(moved, id)
			}
		}
		catchUp := &store.CatchUp{Listeners: moved}
		if pins != nil {
			catchUp.Pins = pins[:]
		}
		if err := s.record(ctx, store.BlockBatch{From: piece.from, To: piece.to, Events: piece.events, Pins: piece.pins, CatchUp: catchUp}); err != nil {
			return err
		}
		s.advance(moved, pins, piece.to+1)
	}
	return nil
}

// advance repeats in memory what the database did with the checkpoints.
func (s *session) advance(ids []uuid.UUID, pins *common.Address, checkpoint int64) {
	for _, id := range ids {
		m := s.members[id]
		m.checkpoint = max(m.checkpoint, checkpoint)
		if m.checkpoint >= s.next {
			m.live, s.live = true, nil
		}
	}
	if pins != nil && s.pin.contract != nil && *pins == *s.pin.contract && !s.pin.live {
		s.pin.next = max(s.pin.next, checkpoint)
		if s.pin.next >= s.next {
			s.pin.live, s.live = true, nil
		}
	}
}

// startCatchUp looks who is not live, and reads on for them: at once what is near the live part, and in the background what is far from it.
func (s *session) startCatchUp(ctx context.Context) (more bool, err error) {
	s.stale = false
	list, ids, pins, from := s.behindLive()
	if len(ids) == 0 && pins == nil {
		return false, nil
	}
	if from >= s.next { // nothing to read
		return false, s.recordPiece(ctx, &fetched{from: s.next, to: s.next - 1}, ids, pins)
	}
	set := newListenerSet(list, pins, s.pin.next)
	if s.next-from > joinGap {
		s.past = s.startPipeline(ctx, set, ids, pins, from, s.next-1)
		return false, nil
	}
	to := min(s.next-1, from+min(s.near, s.sizer.next())-1)
	f, err := s.fetchRange(ctx, set, from, to, s.exact())
	if err != nil {
		if kind := kindOfRefusal(err); kind == refusedTooMuch || kind == refusedOther {
			s.near = max((to-from+1)/2, 1)
		}
		return false, err
	}
	s.near = min(2*s.near, joinGap)
	return true, s.recordPiece(ctx, f, ids, pins)
}

// behindLive returns who is not live, and the first block that one of them has not read.
func (s *session) behindLive() (list []listening, ids []uuid.UUID, pins *common.Address, from int64) {
	from = s.next
	for id, m := range s.members {
		if !m.live {
			list, ids = append(list, listening{m.heard, m.checkpoint}), append(ids, id)
			from = min(from, m.checkpoint)
		}
	}
	if s.pin.contract != nil && !s.pin.live {
		pins, from = s.pin.contract, min(from, s.pin.next)
	}
	sortListening(list)
	return list, ids, pins, from
}

// exact is the first block that is near enough to the live part for each one to be verified.
func (s *session) exact() int64 { return s.next - *s.cfg.VerifyBlocks }

func (s *session) startPipeline(ctx context.Context, set *listenerSet, ids []uuid.UUID, pins *common.Address, from, to int64) *pipeline {
	s.sizer.begin()
	ctx, cancel := context.WithCancel(ctx)
	p := &pipeline{set: set, members: ids, pins: pins, from: from, to: to, out: make(chan *pastPart), cancel: cancel}
	queue := make(chan chan *pastPart, s.cfg.FetchAhead-1)
	exact := s.exact()
	p.running.Go(func() {
		defer close(queue)
		for lo := from; lo <= to && ctx.Err() == nil; {
			hi := min(to, lo+s.sizer.next()-1)
			parts := make(chan *pastPart, 1)
			select {
			case queue <- parts:
			case <-ctx.Done():
				return
			}
			start := lo
			p.running.Go(func() { s.fetchParts(ctx, set, start, hi, exact, parts) })
			lo = hi + 1
		}
	})
	p.running.Go(func() {
		defer close(p.out)
		for parts := range queue {
			for part := range parts {
				select {
				case p.out <- part:
				case <-ctx.Done():
					return
				}
			}
		}
	})
	return p
}

// stopCatchUp ends the catch-up under way. What it has not recorded is read again.
func (s *session) stopCatchUp() {
	if s.past != nil {
		s.past.cancel()
		s.past.running.Wait()
	}
	s.past, s.pending, s.ended = nil, nil, false
}

// foreignTries is how often answers are asked for again that do not belong to one chain, before the live part looks what has happened.
const foreignTries = 3

// fetchParts reads a range, in smaller pieces where the node refuses it, and however long the node refuses. It closes out at the end.
func (r *Reader) fetchParts(ctx context.Context, set *listenerSet, from, to, exact int64, out chan<- *pastPart) {
	defer close(out)
	wait := backOff{}
	foreign, failed := 0, 0
	refused := int64(0) // the piece before the present one, if that one was too large and nothing else was wrong since
	for size := to - from + 1; from <= to; {
		hi := min(to, from+size-1)
		f, err := r.fetchRange(ctx, set, from, hi, exact)
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			if refused > 0 {
				r.sizer.tooMany(refused, hi-from+1)
			}
			r.sizer.answered(hi-from+1, f.logs)
			r.metrics.rangeSize.Set(float64(hi - from + 1))
			select {
			case out <- &pastPart{fetched: f}:
			case <-ctx.Done():
				return
			}
			from, foreign, failed, refused = hi+1, 0, 0, 0
			size = r.sizer.next() // one refusal says little about the rest of a long range
			wait.reset()
			r.wellServed()
			continue
		}
		r.noteNodeError(ctx, err)
		kind := kindOfRefusal(err)
		asked := hi - from + 1
		refused = 0
		switch failed++; {
		case errors.Is(err, errForeignBlock):
			if foreign++; foreign >= foreignTries {
				select {
				case out <- &pastPart{err: err}:
				case <-ctx.Done():
				}
				return
			}
		case asked > 1 && (kind == refusedTooMuch || kind == refusedOther && failed > 1): // a node that breaks off on a large answer does not say why
			refused, size = asked, asked/2
			if kind == refusedTooMuch {
				continue
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait.next()):
		}
	}
}
