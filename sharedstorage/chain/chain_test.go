package chain_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/sharedstorage/chain"
	"github.com/pactwire/pactwire/sharedstorage/storagetest"
)

func TestStorage(t *testing.T) { storagetest.Run(t, chain.Storage{}) }

func TestPlacementsThatDoNotFitAreUnusable(t *testing.T) {
	for name, p := range map[string]sharedstorage.Placement{
		"a chunk is missing":            {Location: "chunks:2", Chunks: [][]byte{{1}}},
		"a chunk too many":              {Location: "chunks:2", Chunks: [][]byte{{1}, {2}, {3}}},
		"a payload beside chunks":       {Location: "chunks:1", Chunks: [][]byte{{1}}, Payload: []byte{1}},
		"a number that is not plain":    {Location: "chunks:+1", Chunks: [][]byte{{1}}},
		"more chunks than there may be": {Location: "chunks:65", Chunks: make([][]byte, 65)},
	} {
		if _, err := (chain.Storage{}).Get(context.Background(), uuid.New(), p); !errors.Is(err, sharedstorage.ErrUnusable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
