package store_test

import (
	"context"
	"database/sql"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/store"
)

// heardEvents makes the events of a listener in some blocks, perBlock in each; what it makes for the same listener and block is always the same log.
func heardEvents(l store.Listener, from, to int64, perBlock int) []store.BlockchainEvent {
	var events []store.BlockchainEvent
	for n := from; n <= to; n++ {
		hash := blockHash(n)
		for i := range int64(perBlock) {
			events = append(events, store.BlockchainEvent{
				ID: store.NewID(), Listener: l.ID, Name: "E", ProtocolID: fmt.Sprintf("%012d/%06d/%06d", n, 0, i), TxHash: hash, BlockNumber: n,
				BlockHash: hash, LogIndex: i, Timestamp: time.Unix(1_700_000_000+n, 0), Body: bodyOf(n, i),
			})
		}
	}
	return events
}

func bodyOf(block, log int64) string {
	return fmt.Sprintf(`{"block":%d,"log":%d,"text":"\"ä\\,{NULL}'"}`, block, log)
}

func blockHash(n int64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 24), uint64(n))
}

func chainBlocks(from, to int64) []store.ChainBlock {
	var blocks []store.ChainBlock
	for n := from; n <= to; n++ {
		blocks = append(blocks, store.ChainBlock{Number: n, Hash: blockHash(n), Parent: blockHash(n - 1)})
	}
	return blocks
}

func createListener(t *testing.T, db *store.DB, namespace string, firstBlock int64) store.Listener {
	t.Helper()
	id := store.NewID()
	l := store.Listener{
		ID: id, Namespace: namespace, Chain: "dev", Name: id.String(), ProtocolID: "sb-" + id.String(), Event: "{}", Signature: "E()", Topic: "topic of " + namespace,
		FirstEvent: "oldest", FirstBlock: firstBlock, Created: store.Now(),
	}
	if err := db.CreateListener(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	return l
}

func listenerNow(t *testing.T, db *store.DB, l store.Listener) store.Listener {
	t.Helper()
	now, err := db.Listener(t.Context(), l.Namespace, l.ID.String())
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// recordedLogs returns the history of a namespace as listener/block/log, and makes sure that it has no gaps and that the records say the same.
func recordedLogs(t *testing.T, db *store.DB, namespace string) []string {
	t.Helper()
	page, err := db.EventsAfter(t.Context(), store.EventQuery{Namespace: namespace, Limit: 100_000, Bytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	var logs []string
	for i, e := range page.Events {
		record, err := db.BlockchainEvent(t.Context(), namespace, e.Reference)
		if err != nil {
			t.Fatal(err)
		}
		if e.Sequence != int64(i+1) || record.Sequence != e.Sequence || e.Type != store.EventBlockchainReceived || e.BodyKey != store.BodyBlockchainEvent ||
			e.Topic != "topic of "+namespace || *e.Name != "E" || record.Name != "E" || *e.Listener != record.Listener || e.Body != bodyOf(record.BlockNumber, record.LogIndex) || e.Body != record.Body ||
			string(record.BlockHash) != string(blockHash(record.BlockNumber)) || record.Timestamp.Unix() != 1_700_000_000+record.BlockNumber {
			t.Fatalf("entry %d is %+v, its record %+v", i+1, e, record)
		}
		logs = append(logs, fmt.Sprintf("%s/%d/%d", record.Listener, record.BlockNumber, record.LogIndex))
	}
	return logs
}

func logsOf(events []store.BlockchainEvent) []string {
	var logs []string
	for _, e := range events {
		logs = append(logs, fmt.Sprintf("%s/%d/%d", e.Listener, e.BlockNumber, e.LogIndex))
	}
	return logs
}

func TestEachLogIsRecordedOnce(t *testing.T) {
	t.Parallel()
	db := openHistory(t)
	lease := store.Lease{Name: "reader/dev", Epoch: 1}
	one, other, gone := createListener(t, db, "default", 0), createListener(t, db, "other", 0), createListener(t, db, "default", 0)
	if err := db.RecordBlocks(t.Context(), store.BlockBatch{Chain: "dev", Lease: lease, From: 0, To: 999, Keep: 10, Blocks: chainBlocks(995, 999)}); err != nil {
		t.Fatal(err)
	}
	if err := db.DeleteListener(t.Context(), "default", gone.Name); err != nil {
		t.Fatal(err)
	}
	everybody := &store.CatchUp{Listeners: []uuid.UUID{one.ID, other.ID, gone.ID}}
	record := func(from, to int64, events []store.BlockchainEvent) {
		t.Helper()
		slices.SortStableFunc(events, func(a, b store.BlockchainEvent) int { return int(a.BlockNumber - b.BlockNumber) })
		if err := db.RecordBlocks(t.Context(), store.BlockBatch{Chain: "dev", Lease: lease, From: from, To: to, Events: events, CatchUp: everybody}); err != nil {
			t.Fatal(err)
		}
	}
	both := func(from, to int64, perBlock int) []store.BlockchainEvent {
		return slices.Concat(heardEvents(one, from, to, perBlock), heardEvents(other, from, to, perBlock), heardEvents(gone, from, to, perBlock))
	}
	record(0, 9, both(0, 9, 3))
	record(0, 9, both(0, 9, 3))
	record(5, 14, both(5, 14, 3))
	record(15, 20, nil)
	record(21, 21, both(21, 21, 2100)) // more than one statement takes
	want := slices.Concat(heardEvents(one, 0, 14, 3), heardEvents(one, 21, 21, 2100))
	if got := recordedLogs(t, db, "default"); !slices.Equal(got, logsOf(want)) {
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
	if got := recordedLogs(t, db, "other"); len(got) != len(want) {
		t.Errorf("%d entries in the other namespace, want %d", len(got), len(want))
	}
	for _, l := range []store.Listener{one, other} {
		if now := listenerNow(t, db, l); now.Events != int64(len(want)) || now.Checkpoint != 22 || now.Live {
			t.Errorf("listener %+v", now)
		}
	}
	record(22, 999, nil)
	if now := listenerNow(t, db, one); !now.Live || now.Checkpoint != 1000 {
		t.Errorf("listener %+v", now)
	}
	live := store.BlockBatch{Chain: "dev", Lease: lease, From: 1000, To: 1000, Keep: 3, Blocks: chainBlocks(1000, 1000), Events: heardEvents(one, 1000, 1000, 2)}
	if err := db.RecordBlocks(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if now := listenerNow(t, db, one); now.Events != int64(len(want)+2) {
		t.Errorf("listener %+v", now)
	}
	_, blocks, err := db.ClaimChain(t.Context(), "dev", lease)
	if err != nil || len(blocks) != 3 || blocks[0].Number != 998 || string(blocks[2].Parent) != string(blockHash(999)) {
		t.Errorf("the blocks %+v are remembered (%v)", blocks, err)
	}
}

func TestThePositionMovesOnlyFromWhereItIs(t *testing.T) {
	t.Parallel()
	db := openHistory(t)
	l := createListener(t, db, "default", 0)
	batch := func(epoch, from, to int64, catchUp *store.CatchUp) error {
		return db.RecordBlocks(t.Context(), store.BlockBatch{
			Chain: "dev", Lease: store.Lease{Epoch: epoch}, From: from, To: to, Keep: 10, CatchUp: catchUp, Blocks: chainBlocks(from, to), Events: heardEvents(l, from, to, 1),
		})
	}
	if err := batch(5, 0, 9, nil); err != nil {
		t.Fatal(err)
	}
	catchUp := &store.CatchUp{Listeners: []uuid.UUID{l.ID}}
	for name, c := range map[string]struct{ err, want error }{
		"again":           {batch(5, 0, 9, nil), store.ErrMoved},
		"too far":         {batch(5, 11, 12, nil), store.ErrMoved},
		"old":             {batch(4, 10, 12, nil), store.ErrFenced},
		"old catch-up":    {batch(4, 0, 1, catchUp), store.ErrFenced},
		"beyond the live": {batch(5, 5, 10, catchUp), store.ErrMoved},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: %v, want %v", name, c.err, c.want)
		}
	}
	if got := recordedLogs(t, db, "default"); len(got) != 10 {
		t.Errorf("%d entries, want 10", len(got))
	}
	chain, blocks, err := db.ClaimChain(t.Context(), "dev", store.Lease{Epoch: 5})
	if err != nil || chain.NextBlock != 10 || len(blocks) != 10 {
		t.Errorf("chain %+v with %d blocks (%v)", chain, len(blocks), err)
	}
}

// TestReadersAtTheSameTime has several readers record the same and overlapping ranges at once, while others append to the same histories.
func TestReadersAtTheSameTime(t *testing.T) {
	t.Parallel()
	const blocks, perBlock, readers = 60, 4, 4
	db := openHistory(t)
	lease := store.Lease{Epoch: 1}
	one, other := createListener(t, db, "default", 0), createListener(t, db, "other", 0)
	if err := db.RecordBlocks(t.Context(), store.BlockBatch{Chain: "dev", Lease: lease, From: 0, To: blocks, Keep: 1}); err != nil {
		t.Fatal(err)
	}
	group, ctx := errgroup.WithContext(t.Context())
	for reader := range readers {
		group.Go(func() error {
			random := rand.New(rand.NewPCG(uint64(reader), 1))
			for from := int64(0); from < blocks; {
				to := min(from+random.Int64N(8), blocks-1)
				start := max(0, from-random.Int64N(4))
				events := slices.Concat(heardEvents(one, start, to, perBlock), heardEvents(other, start, to, perBlock))
				if reader%2 == 0 {
					events = slices.Concat(heardEvents(other, start, to, perBlock), heardEvents(one, start, to, perBlock))
				}
				err := db.RecordBlocks(ctx, store.BlockBatch{
					Chain: "dev", Lease: lease, From: start, To: to, Events: events, CatchUp: &store.CatchUp{Listeners: []uuid.UUID{one.ID, other.ID}},
				})
				if err != nil {
					return err
				}
				from = to + 1
			}
			return nil
		})
	}
	reading, stop := context.WithCancel(ctx)
	defer stop()
	appended := 0
	group.Go(func() error {
		for ; reading.Err() == nil && appended < 100; appended++ {
			e := store.Event{Namespace: "other", Type: store.EventMessageConfirmed, Reference: store.NewID()}
			also := e
			also.Namespace, also.ID = "default", store.NewID()
			if err := db.AppendEvents(ctx, []store.Event{e, also}); err != nil {
				return err
			}
		}
		return nil
	})
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for _, l := range []store.Listener{one, other} {
		page, err := db.EventsAfter(t.Context(), store.EventQuery{Namespace: l.Namespace, Limit: 100_000, Bytes: 1 << 30})
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for i, e := range page.Events {
			if e.Sequence != int64(i+1) {
				t.Fatalf("entry %d has the sequence %d", i+1, e.Sequence)
			}
			if e.Type != store.EventBlockchainReceived {
				continue
			}
			if at, _, _ := strings.Cut(e.Body, `,"text"`); seen[at] {
				t.Errorf("%s is recorded twice", at)
			} else {
				seen[at] = true
			}
		}
		if len(seen) != blocks*perBlock || len(page.Events) != len(seen)+appended {
			t.Errorf("%d logs and %d entries, want %d and %d more", len(seen), len(page.Events), blocks*perBlock, appended)
		}
		if now := listenerNow(t, db, l); now.Events != blocks*perBlock {
			t.Errorf("%d events are counted", now.Events)
		}
	}
}

// TestWhatWasRecordedMeanwhileIsSeen has another transaction record a log while the reader waits for it: the statement that waits has not seen that log.
func TestWhatWasRecordedMeanwhileIsSeen(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	db := openHistoryAt(t, store.Config{URL: url})
	l := createListener(t, db, "default", 0)
	raw, err := sql.Open("postgres", url)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	other, err := raw.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		`UPDATE chains SET epoch = 1`,
		`INSERT INTO blockchain_events (id, namespace, sequence, listener, name, protocol_id, tx_hash, block_number, block_hash, log_index, timestamp)
			SELECT gen_random_uuid(), 'default', 0, id, 'E', '', '', 0, decode(repeat('00', 32), 'hex'), 0, now() FROM listeners`,
	} {
		if _, err := other.ExecContext(t.Context(), query); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan error)
	go func() {
		done <- db.RecordBlocks(t.Context(), store.BlockBatch{
			Chain: "dev", Lease: store.Lease{Epoch: 1}, From: 0, To: 0, Keep: 1, Blocks: chainBlocks(0, 0), Events: heardEvents(l, 0, 0, 3),
		})
	}()
	for waits := 0; waits == 0; {
		if err := raw.QueryRowContext(t.Context(), `SELECT count(*) FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'`).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	if err := other.Commit(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if logs := recordedLogs(t, db, "default"); len(logs) != 2 {
		t.Errorf("%v were recorded", logs)
	}
	if now := listenerNow(t, db, l); now.Events != 2 {
		t.Errorf("%d events are counted", now.Events)
	}
}
