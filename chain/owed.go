package chain

import (
	"context"
	"time"

	"github.com/pactwire/pactwire/store"
)

// Blocks that hold nothing for anybody are written down a little later, several together, or with the next block that holds something: a transaction for each would be half
// of what the database does under a load of invokes whose events nobody hears. After a crash they are read again, and hold nothing again.

const (
	owedAtMost = 64 // blocks
	owedFor    = 50 * time.Millisecond
)

// owe puts off writing down blocks that follow those that are owed already.
func (s *session) owe(heads []blockHead) {
	if len(s.owed) == 0 {
		s.owedDue = time.After(owedFor)
	}
	s.owed = append(s.owed, heads...)
}

// written is the first block that the database does not have.
func (s *session) written() int64 { return s.next - int64(len(s.owed)) }

// writeOwed writes down what is owed. Whoever relies on the position in the database calls it first.
func (s *session) writeOwed(ctx context.Context) error {
	if len(s.owed) == 0 {
		return nil
	}
	if err := s.record(ctx, store.BlockBatch{From: s.written(), To: s.next - 1, Blocks: chainBlocks(s.owed), Keep: s.blocks.size}); err != nil {
		return err
	}
	s.owed, s.owedDue = nil, nil
	return nil
}

// leave writes down what is owed when the session ends, so that a successor does not read it again. It does not matter if that fails.
func (s *session) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	if err := s.writeOwed(ctx); err != nil {
		s.log.DebugContext(ctx, "the last blocks were not written down", "error", err)
	}
}
