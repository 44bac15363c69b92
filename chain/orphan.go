package chain

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/store"
)

// The rhythm of looking after keys that no signer holds: the lease is held for a short time only, so that a process which has the key does not wait for it.
const (
	orphanInterval = 10 * time.Second
	orphanTurn     = 4 * time.Second
	orphanReport   = time.Minute
)

// orphanLoop looks after operations whose key no process holds any more, since the configuration has changed: what is signed is still sent and followed to its
// end; what is not waits, and may be cancelled. Both are reported.
func (s *Submitter) orphanLoop(ctx context.Context) error {
	reported := map[common.Address]time.Time{}
	known := map[common.Address]bool{}
	for {
		keys, err := s.db.OutboxKeys(ctx, s.cfg.Chain)
		if err != nil && ctx.Err() == nil {
			s.log.WarnContext(ctx, "look for keys that no signer holds", "error", err)
		}
		found := map[common.Address]bool{}
		held := s.signer.Addresses()
		for i := range keys {
			key := &keys[i]
			if slices.Contains(held, key.Key) {
				continue
			}
			alone, err := s.turn(ctx, key.Key)
			if err != nil && ctx.Err() == nil {
				s.log.WarnContext(ctx, "look after a key that no signer holds", "key", key.Key.Hex(), "error", err)
			}
			if !alone {
				continue
			}
			found[key.Key], known[key.Key] = true, true
			s.metrics.orphan(key, time.Now())
			if time.Since(reported[key.Key]) >= s.cfg.OrphanReport {
				reported[key.Key] = time.Now()
				s.log.ErrorContext(ctx, "operations wait for a key that no signer holds: configure its signer, or cancel them", "key", key.Key.Hex(),
					"unsent", key.Unsent, "unmined", key.Unmined)
			}
		}
		for key := range known {
			if !found[key] && err == nil {
				s.metrics.notOrphan(key)
				delete(known, key)
				delete(reported, key)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(s.cfg.OrphanInterval):
		}
	}
}

// turn follows what is signed with the key for a short time. alone is false when another process has the key's lease all the time.
func (s *Submitter) turn(ctx context.Context, key common.Address) (alone bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.OrphanTurn)
	defer cancel()
	err = s.db.WithLease(ctx, s.leaseName(key), func(ctx context.Context, lease store.Lease) error {
		alone = true
		k := s.newOwner(key, lease)
		k.orphan = true
		return k.run(ctx)
	})
	return alone, err //nolint:wrapcheck // the caller says what it was for
}

func (s *Submitter) leaseName(key common.Address) string {
	return fmt.Sprintf("submitter/%s/%s", s.cfg.Chain, key.Hex())
}
