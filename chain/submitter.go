package chain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/store"
)

// SubmitterConfig says how one chain's transactions are submitted. Zero values mean the defaults.
type SubmitterConfig struct {
	Chain            string        // the chain's name in the store
	MaxInFlight      int           // transactions of one key that may be unmined at once; 64. Public nodes keep few per account
	BatchSize        int           // operations that get their nonces at once; 200
	MessageSize      int           // transactions, or questions about them, in one JSON-RPC message; 100
	PollInterval     time.Duration // how often to look when nothing wakes; 1 s
	RebroadcastAfter time.Duration // send again, byte for byte, what is unmined for so long; 30 s
	BumpAfter        time.Duration // raise the fee of what is unmined for so long; 2 min
	ForeignAfter     time.Duration // how long a nonce must be used up without a trace of our transaction before it gets a new one; 3 s
	MaxFeePerGas     *big.Int      // the most that is offered on our own account, in wei; nil for no limit
	OrphanInterval   time.Duration // how often to look for operations whose key no signer holds; 10 s
	OrphanTurn       time.Duration // how long to look after each such key then; 4 s
	OrphanReport     time.Duration // how often to report it; 1 min
	Registerer       prometheus.Registerer
}

func (c *SubmitterConfig) setDefaults() {
	orInt := func(v *int, def int) {
		if *v <= 0 {
			*v = def
		}
	}
	orTime := func(v *time.Duration, def time.Duration) {
		if *v <= 0 {
			*v = def
		}
	}
	orInt(&c.MaxInFlight, 64)
	orInt(&c.BatchSize, 200)
	orInt(&c.MessageSize, 100)
	orTime(&c.PollInterval, time.Second)
	orTime(&c.RebroadcastAfter, 30*time.Second)
	orTime(&c.BumpAfter, 2*time.Minute)
	orTime(&c.ForeignAfter, 3*time.Second)
	orTime(&c.OrphanInterval, orphanInterval)
	orTime(&c.OrphanTurn, orphanTurn)
	orTime(&c.OrphanReport, orphanReport)
}

// Submitter carries a chain's operations from the outbox to their outcome: for each of the signer's keys, one owner across all replicas (a lease) gives
// the nonces, signs, sends and follows the receipts.
//
//   - The nonce and the signed bytes are durable before anything is sent, in one statement per batch. After a crash the same bytes are sent again: nothing is
//     mined twice.
//   - An operation gets another nonce only when no node has taken its transaction, or when a foreign transaction has used its nonce up.
//   - A refused operation fails, and its nonce goes to the next one, or to a transfer of nothing to oneself when there is none: it holds up nobody.
//   - What is unmined for long is sent again, and its fee raised within the limit.
type Submitter struct {
	cfg     SubmitterConfig
	db      *store.DB
	client  *Client
	signer  Signer
	log     *slog.Logger
	market  *feeMarket
	metrics *submitterMetrics

	mu     sync.Mutex
	owners map[common.Address]*keySubmitter // of the keys that this process owns now
}

// NewSubmitter makes the submitter of one chain.
func NewSubmitter(cfg SubmitterConfig, db *store.DB, client *Client, signer Signer, log *slog.Logger) *Submitter {
	cfg.setDefaults()
	return &Submitter{
		cfg: cfg, db: db, client: client, signer: signer, log: log.With("chain", cfg.Chain),
		market: &feeMarket{client: client, limit: cfg.MaxFeePerGas}, metrics: newSubmitterMetrics(cfg.Chain, cfg.Registerer),
		owners: map[common.Address]*keySubmitter{},
	}
}

// Run submits for all keys of the signer until ctx ends.
func (s *Submitter) Run(ctx context.Context) error {
	var group errgroup.Group
	group.Go(func() error { return s.orphanLoop(ctx) })
	for _, key := range s.signer.Addresses() {
		group.Go(func() error {
			s.runKey(ctx, key)
			return nil
		})
	}
	return group.Wait() //nolint:wrapcheck // it is always nil
}

// runKey owns one key whenever its lease allows. After any failure it begins anew from what is stored.
func (s *Submitter) runKey(ctx context.Context, key common.Address) {
	pause := 100 * time.Millisecond
	for ctx.Err() == nil {
		began := time.Now()
		err := s.db.WithLease(ctx, s.leaseName(key), func(ctx context.Context, lease store.Lease) error {
			return s.newOwner(key, lease).run(ctx)
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil && !errors.Is(err, store.ErrFenced) {
			s.log.WarnContext(ctx, "submitting for a key was interrupted", "key", key.Hex(), "error", err)
		}
		if time.Since(began) > time.Minute {
			pause = 100 * time.Millisecond
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, 5*time.Second)
	}
}

// keySubmitter is the owner of one key, from the moment it got the lease until it loses it.
//
//	outbox, Accept ──► prepare: nonce, fees, signature, one durable statement ──► send ──► node
//	   ▲           ▲                                                      │
//	   └─ foreign ─┴── refused, unmined for long ◄────────────────────────┤
//	                                           confirm: mined? ──► outcome, event
type keySubmitter struct {
	*Submitter
	key     common.Address
	lease   store.Lease
	orphan  bool // no signer holds the key: nothing new can be signed
	log     *slog.Logger
	state   *sendState
	sending *sendQueue
	moving  sync.Mutex // held while something loses its nonce
	blocks  blockFollower

	accepting *acceptQueue
	backlog   bool // operations may wait in the outbox; the preparer's alone
}

func (s *Submitter) newOwner(key common.Address, lease store.Lease) *keySubmitter {
	return &keySubmitter{
		Submitter: s, key: key, lease: lease, log: s.log.With("key", key.Hex(), "epoch", lease.Epoch),
		sending: newSendQueue(), accepting: newAcceptQueue(), backlog: true,
	}
}

func (k *keySubmitter) run(ctx context.Context) error {
	if err := k.restore(ctx); err != nil {
		return err
	}
	defer k.metrics.forget(k.key)
	if !k.orphan && k.signer.Local(k.key) {
		defer k.own(k)()
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return k.prepareLoop(ctx) })
	group.Go(func() error { return k.sendLoop(ctx) })
	group.Go(func() error { return k.confirmLoop(ctx) })
	err := group.Wait()
	if isContextEnd(err) {
		return nil
	}
	return err //nolint:wrapcheck // the loops add the context
}

// restore rebuilds the state from what is stored, and compares it with the chain's view. What is unmined is planned to be sent again, byte for byte.
func (k *keySubmitter) restore(ctx context.Context) error {
	next, err := k.db.ClaimSigner(ctx, k.lease, k.cfg.Chain, k.key)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	rows, err := k.db.SignedOutbox(ctx, k.cfg.Chain, k.key)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	mined, pending, err := k.chainNonces(ctx)
	if err != nil {
		return fmt.Errorf("restore: %w", err)
	}
	k.state = newSendState(next)
	k.state.chainAt(mined)
	now := time.Now()
	ours := map[uint64]bool{}
	for i := range rows {
		t, err := restored(&rows[i], now)
		if err != nil {
			return err
		}
		k.state.add(t)
		ours[t.nonce] = true
	}
	// What waits in the pool below the chain's pending nonce and is not ours will use its nonce up.
	for n := mined; n < pending && n < mined+100_000; n++ {
		if !ours[n] {
			k.state.foreign(n)
		}
	}
	k.log.InfoContext(ctx, "submitting for a key", "next_nonce", next, "mined", mined, "pending", pending, "in_flight", len(rows))
	return nil
}

// restored is a stored transaction that is to be sent again at once.
func restored(row *store.OutboxSigned, now time.Time) (*inflight, error) {
	tx, err := decodeTx(row.Raw)
	if err != nil {
		return nil, fmt.Errorf("restore operation %s: %w", row.Operation, err)
	}
	t := &inflight{
		operation: row.Operation, filler: row.Filler, nonce: row.Nonce, hashes: row.Hashes,
		version: version{hash: row.Hash, fees: feesOf(tx), explicit: row.Explicit}, assigned: row.Assigned, possible: true, again: now, bumped: now,
		cancelAt: cancelAt(row.CancelAt),
	}
	for i := range row.Attempts {
		switch a := &row.Attempts[i]; {
		case a.Hash == row.Hash:
			t.wished = a.Reason == store.AttemptSpeedUp || a.Reason == store.AttemptCancel
		case a.Nonce == row.Nonce && a.Refused == "":
			t.earlier = append(t.earlier, version{
				hash: a.Hash, fees: fees{price: a.GasPrice, max: a.MaxFeePerGas, tip: a.MaxPriorityFeePerGas}, explicit: a.Asked,
			})
		}
	}
	return t, nil
}

func cancelAt(stored *int) int {
	if stored == nil {
		return never
	}
	return *stored
}
