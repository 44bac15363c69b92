package chain

import (
	"context"
	"math/big"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/store"
)

// BenchmarkInvoke measures operations accepted from 64 callers and confirmed, with one key.
func BenchmarkInvoke(b *testing.B) {
	s := newSubmitBench(b, 0)
	a := contracts.SimpleStorage()
	to := s.chain.Deploy(b, a)
	s.submit(b, func(c *SubmitterConfig) { *c = SubmitterConfig{Chain: "dev", MaxInFlight: 1024} })
	call := s.call(b, a, to, "set", big.NewInt(7))
	call.Gas = 50_000
	b.ResetTimer()
	began := time.Now()
	var group errgroup.Group
	group.SetLimit(64)
	for range b.N {
		group.Go(func() error {
			_, _, err := s.running.Accept(context.Background(), call)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		b.Fatal(err)
	}
	accepted := time.Since(began)
	awaitHead(b, s.db, int64(b.N))
	b.ReportMetric(float64(b.N)/accepted.Seconds(), "accepted/s")
	b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "confirmed/s")
}

// BenchmarkInvokeAlone measures one caller who waits for each outcome.
func BenchmarkInvokeAlone(b *testing.B) {
	s := newSubmitBench(b, 0)
	a := contracts.SimpleStorage()
	to := s.chain.Deploy(b, a)
	s.submit(b, func(c *SubmitterConfig) { *c = SubmitterConfig{Chain: "dev", MaxInFlight: 1024} })
	call := s.call(b, a, to, "set", big.NewInt(7))
	b.ResetTimer()
	for i := range b.N {
		if _, _, err := s.running.Accept(context.Background(), call); err != nil {
			b.Fatal(err)
		}
		awaitHead(b, s.db, int64(i+1))
	}
}

// awaitHead waits until the history has so many events.
func awaitHead(b *testing.B, db *store.DB, head int64) {
	b.Helper()
	grown := db.Subscribe(store.TopicHistory("default"))
	defer grown.Close()
	deadline := time.After(5 * time.Minute)
	for {
		now, err := db.HeadSequence(context.Background(), "default")
		if err != nil {
			b.Fatal(err)
		}
		if now >= head {
			return
		}
		select {
		case <-grown.C:
		case <-deadline:
			b.Fatalf("%d of %d", now, head)
		}
	}
}
