// Package storagetest holds the tests that every way of shared storage passes.
package storagetest

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
)

// Run tests one storage.
func Run(t *testing.T, s sharedstorage.Storage) {
	t.Helper()
	ctx := context.Background()
	random := rand.NewChaCha8([32]byte{1})
	for _, size := range []int{0, 1, 1000, 96<<10 - 1, 96 << 10, 96<<10 + 1, 1 << 20, s.MaxPayload()} {
		payload := make([]byte, size)
		_, _ = random.Read(payload)
		batch := uuid.New()
		placement, err := s.Put(ctx, batch, payload)
		if err != nil {
			t.Fatalf("put %d bytes: %v", size, err)
		}
		again, err := s.Put(ctx, batch, payload)
		if err != nil || again.Location != placement.Location {
			t.Errorf("the second put of %d bytes: location %q after %q, error %v", size, again.Location, placement.Location, err)
		}
		got, err := s.Get(ctx, batch, placement)
		if err != nil || !bytes.Equal(got, payload) {
			t.Errorf("get of %d bytes gave %d bytes, error %v", size, len(got), err)
		}
	}
	if _, err := s.Put(ctx, uuid.New(), make([]byte, s.MaxPayload()+1)); !errors.Is(err, sharedstorage.ErrTooLarge) {
		t.Errorf("put of more than the maximum: %v", err)
	}
	for _, location := range []string{"nonsense", "chunks:0", "chunks:-1", "chunks:99999999999999999999", "\x00\xff"} {
		if _, err := s.Get(ctx, uuid.New(), sharedstorage.Placement{Location: location}); !errors.Is(err, sharedstorage.ErrUnusable) {
			t.Errorf("get from %q: %v", location, err)
		}
	}
}
