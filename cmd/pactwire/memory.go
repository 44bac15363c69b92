package main

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

const (
	// smallHeap is the size around which the collector keeps the memory of Go while little lives in it. Twice what lives there, as by default, would be more
	// during short bursts of garbage such as a catch-up.
	smallHeap = 36 << 20
	// devGarbage is GOGC in dev, where the chain makes most of the garbage: blocks, receipts, states.
	devGarbage = 200
)

// keepSmall sets the soft limit of the memory until ctx ends: smallHeap, or twice what lives there when that is more, so that the collector never has to work without
// end. Whoever sets GOGC or GOMEMLIMIT has the last word.
func keepSmall(ctx context.Context) {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	go func() {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			metrics.Read(live)
			debug.SetMemoryLimit(max(smallHeap, 2*int64(live[0].Value.Uint64()))) //nolint:gosec // no heap has 2^62 bytes
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
}

// tolerateGarbage has the collector run less often in dev.
func tolerateGarbage() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(devGarbage)
	}
}
