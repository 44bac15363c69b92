package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/pactwire/pactwire/store"
)

// ReaderConfig says how a chain's log is read. The zero value of all but Chain is good.
type ReaderConfig struct {
	Chain         string
	Confirmations uint64        // blocks on top of a block before its events are recorded
	PollInterval  time.Duration // how often to look when nothing wakes; 1 s when zero
	FirstRange    int64         // blocks of the first log fetches in a catch-up; 8 when zero
	LargestRange  int64         // blocks of the largest one; 5,000 when zero
	FetchAhead    int           // log fetches under way at once in catch-up; 3 when zero
	VerifyBlocks  *int64        // blocks before the live part of which catch-up verifies each one, and not only a sample; 2,000 when nil
	Registerer    prometheus.Registerer

	demoteLag int64         // tests need less
	headLook  time.Duration // the same
}

const (
	logsPerFetch   = 2000 // what a log fetch in catch-up aims at
	eventsPerTx    = 2000 // a transaction holds no more, unless one block does
	rememberBlocks = 256  // hashes of recorded blocks that are kept at least
	liveStep       = 128  // blocks that the live part reads at once
	demoteLag      = 1000 // blocks behind which the live part leaves reading to catch-up
	joinGap        = 64   // blocks before the live part that catch-up reads while the live part waits, to arrive at it
)

// Reader records the events of a chain for all its listeners, and the pins of its pin contract. Several readers of one chain, in whatever processes, share
// the work by a lease: one reads, the others wait.
//
// The live part follows the head at the distance of the confirmations; a new listener first reads the past by itself:
//
//	          checkpoint ──►          next_block ──►
//	──────────────┴──────────────────────┴───────────────────── blocks ──►
//	  catch-up: ranges, fetched ahead       live: block by block, parent hashes checked
//
// Records, history and position are one transaction: whatever dies at whatever moment, each log is recorded once per listener.
type Reader struct {
	cfg          ReaderConfig
	db           *store.DB
	client       *Client
	log          *slog.Logger
	metrics      *readerMetrics
	sizer        *rangeSizer
	singlesUntil atomic.Int64 // unix nanoseconds: the node takes no messages with several calls
	watch        nodeWatch
	headWatch    *headWatch
	receiptsTry  atomic.Int64 // unix nanoseconds: the node is not asked for the receipts of blocks before
	distrusted   atomic.Int64 // unix nanoseconds: until then all logs are compared with receipts
	headersTry   atomic.Int64 // unix nanoseconds: the node is not asked for headers without their blocks before
}

// NewReader makes the reader of a chain that the database knows. Run does the work.
func NewReader(cfg ReaderConfig, db *store.DB, client *Client, log *slog.Logger) *Reader {
	if cfg.PollInterval == 0 {
		cfg.PollInterval = time.Second
	}
	if cfg.LargestRange == 0 {
		cfg.LargestRange = 5000
	}
	if cfg.FirstRange == 0 {
		cfg.FirstRange = 8
	}
	if cfg.VerifyBlocks == nil {
		cfg.VerifyBlocks = new(int64(verifyBlocks))
	}
	if cfg.FetchAhead == 0 {
		cfg.FetchAhead = 3
	}
	if cfg.demoteLag == 0 {
		cfg.demoteLag = demoteLag
	}
	if cfg.headLook == 0 {
		cfg.headLook = headLook
	}
	watch := newHeadWatch(cfg.headLook, time.Now())
	return &Reader{
		cfg: cfg, db: db, client: client, log: log.With("chain", cfg.Chain), metrics: newReaderMetrics(cfg.Chain, watch, cfg.Registerer),
		sizer: newRangeSizer(cfg.FirstRange, cfg.LargestRange, logsPerFetch), headWatch: watch,
	}
}

// Run reads while this process holds the chain's lease, and watches its node, until ctx ends. No error of the node or the database ends it.
func (r *Reader) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { r.watchHead(ctx) })
	defer watching.Wait()
	defer stop()
	return r.db.WithLease(ctx, "reader/"+r.cfg.Chain, func(ctx context.Context, lease store.Lease) error {
		wait := backOff{}
		for ctx.Err() == nil {
			err := r.follow(ctx, lease, &wait)
			if ctx.Err() != nil {
				return nil
			}
			if errors.Is(err, store.ErrFenced) {
				return err
			}
			r.log.WarnContext(ctx, "read the chain: start again from what is recorded", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(wait.next()):
			}
		}
		return nil
	})
}

// session is the reader's state while it holds the lease. The database has it all; a failed write means reading it anew.
type session struct {
	*Reader
	lease   store.Lease
	next    int64        // the first block that the live part has not recorded
	blocks  *blockWindow // the blocks before next
	seen    common.Hash  // the head at the last look
	aheadAt time.Time    // logs are not asked for together with the head before
	members map[uuid.UUID]*member
	pin     pinPosition
	live    *listenerSet // who is live; nil when it has to be made anew
	past    *pipeline    // the catch-up under way; nil when there is none
	pending *pastPart    // what past has delivered and is not recorded yet
	ended   bool         // past has delivered everything
	stale   bool         // members have joined who are not in past
	near    int64        // blocks at most that catch-up reads at once while the live part waits
	behind  behindHead
	owed    []blockHead      // the blocks before next that are not written down yet
	owedDue <-chan time.Time // when they must be
	wait    *backOff
}

// member is a listener with its position.
type member struct {
	*heard
	checkpoint int64
	live       bool
}

// pinPosition is that of the pin contract, which is read like a listener.
type pinPosition struct {
	contract *common.Address
	first    int64
	next     int64 // counts while not live
	live     bool
}

// follow reads until the database refuses something or ctx ends.
func (r *Reader) follow(ctx context.Context, lease store.Lease, wait *backOff) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	changed := r.db.Subscribe(store.TopicListeners(r.cfg.Chain))
	defer changed.Close()
	heads := r.client.SubscribeHeads(ctx)
	chain, blocks, err := r.db.ClaimChain(ctx, r.cfg.Chain, lease)
	if err != nil {
		return err
	}
	s := &session{Reader: r, lease: lease, next: chain.NextBlock, members: map[uuid.UUID]*member{}, near: joinGap, wait: wait}
	s.blocks = newBlockWindow(max(rememberBlocks, 2*int64(r.cfg.Confirmations)), blocks) //nolint:gosec // no chain needs 2^62 confirmations
	defer func() {
		s.stopCatchUp()
		s.leave(ctx)
	}()
	if err := s.reload(ctx, chain); err != nil {
		return err
	}
	poll := time.NewTicker(r.cfg.PollInterval)
	defer poll.Stop()
	for ctx.Err() == nil {
		more, err := s.step(ctx)
		if err != nil {
			if ctx.Err() != nil || !s.nodeError(ctx, err) {
				return err
			}
			if err := s.writeOwed(ctx); err != nil { // the node may be away for long
				return err
			}
			select { // catch-up goes on meanwhile
			case <-ctx.Done():
				return nil
			case <-time.After(wait.next()):
			}
			continue
		}
		wait.reset()
		s.wellServed()
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-heads:
		case part, open := <-s.past.results():
			s.pending, s.ended = part, !open
		case <-s.owedDue:
			err = s.writeOwed(ctx)
		case <-changed.C:
			err = s.refresh(ctx)
		case <-poll.C:
			err = s.refresh(ctx)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// step does one piece of the live part and one of catch-up. more tells that there is work left that can be done at once.
func (s *session) step(ctx context.Context) (more bool, err error) {
	more, err = s.readLive(ctx)
	if err != nil {
		return false, err
	}
	again, err := s.readPast(ctx)
	return more || again, err
}

// databaseError marks an error after which the state must be read anew.
type databaseError struct{ error }

// Unwrap returns the cause.
func (e databaseError) Unwrap() error { return e.error }

// nodeError reports an error of the node. It returns false for any other.
func (s *session) nodeError(ctx context.Context, err error) bool {
	var db databaseError
	if errors.As(err, &db) {
		return false
	}
	s.noteNodeError(ctx, err)
	return true
}

func (r *Reader) noteNodeError(ctx context.Context, err error) {
	kind := kindOfTrouble(err)
	r.metrics.nodeErrors.WithLabelValues(kind).Inc()
	r.log.WarnContext(ctx, "the node did not give what was asked for", "kind", kind, "error", err)
	r.troubled(ctx, kind)
}

// refresh reads which listeners and which pin contract there are now.
func (s *session) refresh(ctx context.Context) error {
	chain, err := s.db.Chain(ctx, s.cfg.Chain)
	if err != nil {
		return err
	}
	return s.reload(ctx, chain)
}

// reload takes over the listeners and the pin contract as the database has them. Only this reader moves them.
func (s *session) reload(ctx context.Context, chain store.Chain) error {
	list, err := s.db.ListenersOfChain(ctx, s.cfg.Chain)
	if err != nil {
		return err
	}
	pin := pinPosition{first: chain.PinBlock, next: chain.PinNext, live: chain.PinLive}
	if chain.PinContract != nil {
		address := common.BytesToAddress(chain.PinContract)
		pin.contract = &address
	}
	if before := s.pin.contract; (before == nil) != (pin.contract == nil) || before != nil && *before != *pin.contract || s.pin.live != pin.live {
		s.live, s.stale = nil, true
	}
	s.pin = pin
	members := make(map[uuid.UUID]*member, len(list))
	for _, l := range list {
		m := s.members[l.ID]
		if m == nil {
			h, err := newHeard(l)
			if err != nil { // what is stored was valid once; a listener that is not must not stop the others
				s.log.ErrorContext(ctx, "a listener cannot be served", "listener", l.ID, "error", err)
				continue
			}
			m = &member{heard: h, checkpoint: l.Checkpoint, live: l.Live}
			if m.live {
				s.live = nil
			} else {
				s.stale = true
			}
		} else if m.live != l.Live {
			s.live, s.stale = nil, true
		}
		m.checkpoint, m.live = l.Checkpoint, l.Live
		members[l.ID] = m
	}
	for id, m := range s.members {
		if members[id] == nil && m.live {
			s.live = nil
		}
	}
	s.members = members
	s.metrics.listeners.Set(float64(len(members)))
	return nil
}

// liveSet is everybody who moves with the live part.
func (s *session) liveSet() *listenerSet {
	if s.live == nil {
		list := make([]listening, 0, len(s.members))
		for _, m := range s.members {
			if m.live {
				list = append(list, listening{m.heard, m.listener.FirstBlock})
			}
		}
		sortListening(list)
		var pins *common.Address
		if s.pin.live {
			pins = s.pin.contract
		}
		s.live = newListenerSet(list, pins, s.pin.first)
	}
	return s.live
}

// record writes one batch.
func (s *session) record(ctx context.Context, b store.BlockBatch) error {
	b.Chain, b.Lease = s.cfg.Chain, s.lease
	if err := s.db.RecordBlocks(ctx, b); err != nil {
		return databaseError{fmt.Errorf("record blocks: %w", err)}
	}
	s.metrics.events.Add(float64(len(b.Events)))
	return nil
}

// backOff lengthens a wait from 20 ms to 5 s while errors follow each other: by half each time, since with a node that answers only every third call, waits that
// double would be spent mostly in the few longest ones.
type backOff struct{ last time.Duration }

func (b *backOff) next() time.Duration {
	b.last = min(max(b.last+b.last/2, 20*time.Millisecond), 5*time.Second)
	return b.last
}

func (b *backOff) reset() { b.last = 0 }
