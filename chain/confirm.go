package chain

import (
	"context"
	"sync"
	"time"

	pactwire "github.com/pactwire/pactwire"
)

// confirmLoop follows the chain's heads: how far the key's nonces are used up tells which of our transactions are mined, with one small question however many
// are in flight.
func (k *keySubmitter) confirmLoop(ctx context.Context) error {
	heads := k.client.SubscribeHeads(ctx)
	measured := time.Time{}
	for {
		if k.state.count() > 0 {
			again, err := k.confirm(ctx)
			switch {
			case ctx.Err() != nil:
				return nil
			case err != nil && pactwire.KindOf(err) == pactwire.KindUnavailable:
				k.log.WarnContext(ctx, "look for mined transactions", "error", err)
			case err != nil:
				return err
			case again:
				continue
			}
		}
		if now := time.Now(); now.Sub(measured) >= time.Second {
			measured = now
			k.measure(ctx, now)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-heads:
		case <-k.state.verify:
		case <-time.After(k.cfg.PollInterval):
		}
	}
}

// confirm finishes what is mined with enough confirmations. again says that there is more to do at once.
func (k *keySubmitter) confirm(ctx context.Context) (again bool, err error) {
	view, err := k.minedAt(ctx)
	if err != nil {
		return false, err
	}
	k.state.chainAt(view.latest)
	items := k.state.below(view.confirmed)
	k.blockReceipts(ctx, view.head, items, view.known)
	if len(items) == 0 {
		return false, nil
	}
	if most := 2 * k.cfg.BatchSize; len(items) > most && len(view.known) == 0 {
		items, again = items[:most], true
	}
	found, err := k.receipts(ctx, items, view.known)
	if err != nil {
		return false, err
	}
	var done, missing []*inflight
	var receipts []*receipt
	now := time.Now()
	for i, t := range items {
		switch r := found[i]; {
		case r.receipt != nil && uint64(r.receipt.BlockNumber) <= view.limit:
			done, receipts = append(done, t), append(receipts, r.receipt)
			k.state.found(t)
		case r.receipt != nil || r.unknown: // mined elsewhere since, or the node cannot tell yet
			k.state.found(t)
		case k.state.lost(t, now, k.cfg.ForeignAfter):
			missing = append(missing, t)
		}
	}
	if len(done) > 0 {
		k.blocks.learn(shareOf(receipts))
		outcomes, err := k.outcomes(ctx, done, receipts)
		if err != nil {
			return false, err
		}
		if err := k.finish(ctx, outcomes); err != nil {
			return false, err
		}
		k.state.drop(done...)
	}
	gone, err := k.foreigners(ctx, missing, now)
	if err != nil {
		return false, err
	}
	if err := k.giveBack(ctx, gone); err != nil {
		return false, err
	}
	return again && len(done) > 0, nil
}

// shareOf tells how many of the receipts are of the newest block among them, and how many transactions that block holds at least.
func shareOf(receipts []*receipt) (ours, all int) {
	newest := receipts[0].BlockNumber
	for _, r := range receipts {
		newest = max(newest, r.BlockNumber)
	}
	for _, r := range receipts {
		if r.BlockNumber == newest {
			ours, all = ours+1, max(all, int(r.TransactionIndex)+1) //nolint:gosec // no block has 2^63 transactions
		}
	}
	return ours, all
}

// each runs fn for 0 … n-1, at most width at a time, and waits for all.
func each(n, width int, fn func(int)) {
	if n == 1 {
		fn(0)
		return
	}
	var wait sync.WaitGroup
	slots := make(chan struct{}, width)
	for i := range n {
		slots <- struct{}{}
		wait.Go(func() {
			defer func() { <-slots }()
			fn(i)
		})
	}
	wait.Wait()
}
