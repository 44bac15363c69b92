package store_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"log/slog"
	"math/big"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// BenchmarkRecordBlocks records batches of 2,000 events. backend-µs/event is the processor time of the database's one process that does the work.
func BenchmarkRecordBlocks(b *testing.B) {
	ctx := context.Background()
	url := pgtest.New(b)
	db, err := store.Open(ctx, store.Config{URL: url, MaxConns: 1}, slog.New(slog.DiscardHandler))
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.EnsureChain(ctx, "dev", big.NewInt(31337), common.Hash{1}); err != nil {
		b.Fatal(err)
	}
	if err := db.EnsureNamespace(ctx, "default", "dev"); err != nil {
		b.Fatal(err)
	}
	raw, err := sql.Open("postgres", url)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	l := store.Listener{ID: store.NewID(), Namespace: "default", Chain: "dev", Name: "l", ProtocolID: "sb", Event: "{}", Signature: "E()", FirstEvent: "oldest", Created: store.Now()}
	if err := db.CreateListener(ctx, l); err != nil {
		b.Fatal(err)
	}
	lease := store.Lease{Name: "reader/dev", Epoch: 1}
	var pid int
	if err := raw.QueryRow(`SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`).Scan(&pid); err != nil {
		b.Fatal(err)
	}
	const perBlock, blocks = 200, 10
	body := `{"id":"` + strings.Repeat("x", 850) + `"}`
	next := int64(0)
	cpu := backendTime(pid)
	for b.Loop() {
		batch := store.BlockBatch{Chain: "dev", Lease: lease, From: next, To: next + blocks - 1, Keep: 256}
		for n := next; n < next+blocks; n++ {
			var hash common.Hash
			binary.BigEndian.PutUint64(hash[:], uint64(n))
			for i := range int64(perBlock) {
				batch.Events = append(batch.Events, store.BlockchainEvent{
					ID: store.NewID(), Listener: l.ID, Name: "Counted", ProtocolID: fmt.Sprintf("%012d/%06d/%06d", n, 0, i),
					TxHash: hash[:], BlockNumber: n, BlockHash: hash[:], LogIndex: i, Timestamp: time.Unix(1_700_000_000+n, 0), Body: body,
				})
			}
		}
		if err := db.RecordBlocks(ctx, batch); err != nil {
			b.Fatal(err)
		}
		next += blocks
	}
	events := float64(b.N * perBlock * blocks)
	b.ReportMetric(events/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64((backendTime(pid)-cpu).Microseconds())/events, "backend-µs/event")
}

func backendTime(pid int) time.Duration {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * 10 * time.Millisecond
}
