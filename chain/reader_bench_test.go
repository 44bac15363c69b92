//go:build unix

package chain

import (
	"context"
	"math/big"
	"sort"
	"syscall"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/store"
)

// emit makes the given number of blocks, each with one transaction that emits perBlock events.
func (r *rig) emit(address common.Address, blocks, perBlock int) {
	r.t.Helper()
	data, err := contracts.Zoo().Parsed.Pack("emitMany", big.NewInt(int64(perBlock)))
	if err != nil {
		r.t.Fatal(err)
	}
	nonce, err := r.chain.Client().PendingNonceAt(context.Background(), r.chain.Accounts[2].Address)
	if err != nil {
		r.t.Fatal(err)
	}
	for i := range blocks {
		r.chain.SendRaw(r.t, 2, &types.DynamicFeeTx{
			ChainID: big.NewInt(devnet.ChainID), Nonce: nonce + uint64(i), To: &address, Data: data,
			Gas: uint64(100_000 + 3000*perBlock), GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1_000_000_000),
		})
		r.mineAfter(nonce + uint64(i))
	}
}

// mineAfter makes a block as soon as the transaction with that nonce can go into it: the pool takes it up some time after it was sent.
func (r *rig) mineAfter(nonce uint64) {
	r.t.Helper()
	for {
		next, err := r.chain.Client().PendingNonceAt(context.Background(), r.chain.Accounts[2].Address)
		if err != nil {
			r.t.Fatal(err)
		}
		if next > nonce {
			r.chain.Mine(1)
			return
		}
	}
}

func benchmarkCatchUp(b *testing.B, blocks, perBlock, listeners int) {
	r := newRig(b, 0, chaintest.Manual())
	zoo := contracts.Zoo()
	address := r.chain.Deploy(b, zoo, "bench")
	r.emit(address, blocks, perBlock)
	for n := range listeners - 1 { // of contracts that emit nothing
		other := common.BytesToAddress([]byte{1, byte(n >> 8), byte(n)})
		r.listen(zoo, "Counted(uint256,uint256)", &other, "oldest")
	}
	events := blocks * perBlock
	total := 0
	r.cfg.PollInterval = time.Second
	b.ReportAllocs()
	var cpu time.Duration // of this process: the node is in it, PostgreSQL is not
	for b.Loop() {
		before := cpuTime(b)
		l := r.listen(zoo, "Counted(uint256,uint256)", &address, "oldest")
		total += events
		r.start()
		for !l.Live {
			time.Sleep(2 * time.Millisecond) // polls a condition
			var err error
			if l, err = r.db.Listener(context.Background(), "default", l.Name); err != nil {
				b.Fatal(err)
			}
		}
		b.StopTimer()
		cpu += cpuTime(b) - before
		page, err := r.db.EventsAfter(context.Background(), store.EventQuery{Namespace: "default", After: int64(total - 1), Limit: 10, Bytes: 1 << 20})
		if err != nil || len(page.Events) != 1 {
			b.Fatalf("%d events beyond %d (%v)", len(page.Events), total-1, err)
		}
		r.stop()
		if err := r.db.DeleteListener(context.Background(), "default", l.Name); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(total), "cpu-µs/event")
}

// cpuTime is what this process has used of all processors.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func BenchmarkCatchUpDense(b *testing.B)  { benchmarkCatchUp(b, 200, 200, 1) }
func BenchmarkCatchUpMedium(b *testing.B) { benchmarkCatchUp(b, 2000, 10, 1) }
func BenchmarkCatchUpSparse(b *testing.B) { benchmarkCatchUp(b, 20000, 1, 1) }

func BenchmarkCatchUpAThousandListeners(b *testing.B) { benchmarkCatchUp(b, 200, 200, 1000) }

// BenchmarkLive measures from the block's making to the wake-up after the commit.
func BenchmarkLive(b *testing.B) {
	r := newRig(b, 0, chaintest.Manual())
	r.cfg.PollInterval = time.Second
	zoo := contracts.Zoo()
	address := r.chain.Deploy(b, zoo, "bench")
	r.listen(zoo, "Counted(uint256,uint256)", &address, "oldest")
	r.start()
	r.reached(r.chain.Head())
	wake := r.db.Subscribe(store.TopicHistory("default"))
	defer wake.Close()
	var took []time.Duration
	for b.Loop() {
		r.mineAfter(r.emitPending(address))
		mined := time.Now()
		<-wake.C
		took = append(took, time.Since(mined))
	}
	sort.Slice(took, func(i, k int) bool { return took[i] < took[k] })
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}

// emitPending sends one transaction that waits for the next block, and returns its nonce.
func (r *rig) emitPending(address common.Address) uint64 {
	r.t.Helper()
	data, err := contracts.Zoo().Parsed.Pack("emitMany", big.NewInt(1))
	if err != nil {
		r.t.Fatal(err)
	}
	return r.chain.Send(r.t, 2, &address, nil, data).Nonce()
}
