package dir_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/sharedstorage/dir"
	"github.com/pactwire/pactwire/sharedstorage/storagetest"
)

func TestStorage(t *testing.T) {
	s, err := dir.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	storagetest.Run(t, s)
}

func TestAFolderThatIsNotThereIsRefused(t *testing.T) {
	if _, err := dir.New(filepath.Join(t.TempDir(), "missing")); err == nil {
		t.Error("it was taken")
	}
}

func TestAFileThatIsMissingOrBrokenMayBePutRight(t *testing.T) {
	folder := t.TempDir()
	s, err := dir.New(folder)
	if err != nil {
		t.Fatal(err)
	}
	ctx, payload := context.Background(), []byte("a payload")
	placement, err := s.Put(ctx, uuid.New(), payload)
	if err != nil {
		t.Fatal(err)
	}
	hash := strings.TrimPrefix(placement.Location, dir.Kind)
	path := filepath.Join(folder, hash[:2], hash)
	get := func() error {
		got, err := s.Get(ctx, uuid.New(), placement)
		if err == nil && !bytes.Equal(got, payload) {
			t.Errorf("got %q", got)
		}
		return err
	}
	for what, change := range map[string]func() error{
		"missing": func() error { return os.Remove(path) },
		"cut":     func() error { return os.WriteFile(path, payload[:3], 0o600) },
		"empty":   func() error { return os.WriteFile(path, nil, 0o600) },
		"other":   func() error { return os.WriteFile(path, []byte("b payload"), 0o600) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		if err := get(); err == nil || errors.Is(err, sharedstorage.ErrUnusable) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := s.Put(ctx, uuid.New(), payload); err != nil {
			t.Fatal(err)
		}
		if err := get(); err != nil {
			t.Errorf("%s, then put again: %v", what, err)
		}
	}
}

func TestLocationsCannotLeaveTheFolder(t *testing.T) {
	s, err := dir.New(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, location := range []string{"dir:", "dir:../../etc/passwd", "dir:" + strings.Repeat("AB", 32), "dir:" + strings.Repeat("a", 63)} {
		if _, err := s.Get(context.Background(), uuid.New(), sharedstorage.Placement{Location: location}); !errors.Is(err, sharedstorage.ErrUnusable) {
			t.Errorf("%s: %v", location, err)
		}
	}
}

func TestTheSamePayloadFromManyAtOnce(t *testing.T) {
	folder := t.TempDir()
	payload := bytes.Repeat([]byte("x"), 100_000)
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			s, err := dir.New(folder)
			if err != nil {
				t.Error(err)
				return
			}
			p, err := s.Put(context.Background(), uuid.New(), payload)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := s.Get(context.Background(), uuid.New(), p); err != nil || !bytes.Equal(got, payload) {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		})
	}
	group.Wait()
	files, err := filepath.Glob(filepath.Join(folder, "*", "*"))
	if err != nil || len(files) != 1 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
}
