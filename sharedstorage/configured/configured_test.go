package configured_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/sharedstorage/configured"
	"github.com/pactwire/pactwire/sharedstorage/storagetest"
)

func open(t *testing.T, addresses ...string) *configured.Storage {
	t.Helper()
	s, err := configured.Open(addresses)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEveryKindIsAStorage(t *testing.T) {
	storagetest.Run(t, open(t))
	storagetest.Run(t, open(t, "chain"))
	storagetest.Run(t, open(t, "dir://"+t.TempDir()))
}

func TestANetworkCanMoveToAnotherStorage(t *testing.T) {
	ctx, folder, payload := context.Background(), "dir://"+t.TempDir(), []byte("x")
	onChain, err := open(t).Put(ctx, uuid.New(), payload)
	if err != nil {
		t.Fatal(err)
	}
	inFolder, err := open(t, folder).Put(ctx, uuid.New(), payload)
	if err != nil {
		t.Fatal(err)
	}
	for name, s := range map[string]*configured.Storage{"there": open(t, folder), "back again": open(t, "chain", folder)} {
		for _, p := range []sharedstorage.Placement{onChain, inFolder} {
			if got, err := s.Get(ctx, uuid.New(), p); err != nil || string(got) != "x" {
				t.Errorf("%s: from %q: %q, %v", name, p.Location, got, err)
			}
		}
	}
	if _, err := open(t).Get(ctx, uuid.New(), inFolder); !errors.Is(err, sharedstorage.ErrUnusable) {
		t.Errorf("a kind that is not configured: %v", err)
	}
}

func TestAddressesThatAreNone(t *testing.T) {
	for _, address := range []string{"", "chains", "dir://relative", "dir:relative", "ipfs://", "ipfs:5001", "http://host", "dir:///x?y"} {
		if configured.Check(address) == nil {
			t.Errorf("%q was taken", address)
		}
	}
	for _, address := range []string{"chain", "dir:///a/b", "ipfs://127.0.0.1:5001", "ipfs+https://node.example/path"} {
		if err := configured.Check(address); err != nil {
			t.Errorf("%q: %v", address, err)
		}
	}
	if _, err := configured.Open([]string{"chain", "chain"}); err == nil {
		t.Error("two of a kind were taken")
	}
}
