// Package dir is shared storage in a folder that all members can reach: a network file system, or one machine.
//
// Locations: "dir:" and the payload's SHA-256 in hex. The file lies under the folder as two digits, a slash, and the whole hash; it is complete or not there.
package dir

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
)

// Kind begins the locations of this storage.
const Kind = "dir:"

// maxPayload is more than any batch takes.
const maxPayload = 8 << 20

// Storage is a shared folder.
type Storage struct{ folder string }

// New uses a folder that is there already: a file system that is not mounted must not be taken for an empty one.
func New(folder string) (*Storage, error) {
	info, err := os.Stat(folder)
	if err != nil {
		return nil, fmt.Errorf("open the shared folder: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("open the shared folder: %s is no folder", folder)
	}
	return &Storage{folder}, nil
}

func (s *Storage) path(hash string) string { return filepath.Join(s.folder, hash[:2], hash) }

// Put writes the payload's file, and returns when it will survive a power cut.
func (s *Storage) Put(_ context.Context, _ uuid.UUID, payload []byte) (sharedstorage.Placement, error) {
	if len(payload) > maxPayload {
		return sharedstorage.Placement{}, fmt.Errorf("%w: %d bytes, at most %d", sharedstorage.ErrTooLarge, len(payload), maxPayload)
	}
	digest := sha256.Sum256(payload)
	hash := hex.EncodeToString(digest[:])
	placement := sharedstorage.Placement{Location: Kind + hash}
	if _, err := s.read(hash); err == nil {
		return placement, nil
	}
	folder := filepath.Dir(s.path(hash))
	if err := os.MkdirAll(folder, 0o775); err != nil { //nolint:gosec // the other members read it
		return placement, fmt.Errorf("make a folder in the shared folder: %w", err)
	}
	if err := write(folder, s.path(hash), payload); err != nil {
		return placement, fmt.Errorf("write to the shared folder: %w", err)
	}
	// The names too must be on the disk.
	for _, f := range []string{folder, s.folder} {
		if err := syncFolder(f); err != nil {
			return placement, fmt.Errorf("write to the shared folder: %w", err)
		}
	}
	return placement, nil
}

// write gives the file its name when it is complete.
func write(folder, path string, payload []byte) (err error) {
	file, err := os.CreateTemp(folder, "new-*")
	if err != nil {
		return err //nolint:wrapcheck // the caller says what was done
	}
	defer func() {
		if err != nil {
			_ = file.Close()
			_ = os.Remove(file.Name())
		}
	}()
	if _, err = file.Write(payload); err != nil {
		return err //nolint:wrapcheck // as above
	}
	if err = file.Chmod(0o644); err != nil {
		return err //nolint:wrapcheck // as above
	}
	if err = file.Sync(); err != nil {
		return err //nolint:wrapcheck // as above
	}
	if err = file.Close(); err != nil {
		return err //nolint:wrapcheck // as above
	}
	return os.Rename(file.Name(), path) //nolint:wrapcheck // as above
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what was done
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// Get reads the payload's file. One that is not there, or is not what its name says, may be put right later.
func (s *Storage) Get(_ context.Context, _ uuid.UUID, p sharedstorage.Placement) ([]byte, error) {
	hash, found := strings.CutPrefix(p.Location, Kind)
	digest, err := hex.DecodeString(hash)
	if !found || err != nil || len(digest) != sha256.Size || hash != strings.ToLower(hash) {
		return nil, fmt.Errorf("%w: the location %.80q names no file", sharedstorage.ErrUnusable, p.Location)
	}
	return s.read(hash)
}

func (s *Storage) read(hash string) ([]byte, error) {
	file, err := os.Open(s.path(hash))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the shared folder has no file %s", hash)
	}
	if err != nil {
		return nil, fmt.Errorf("read from the shared folder: %w", err)
	}
	defer file.Close()
	payload, err := io.ReadAll(io.LimitReader(file, maxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("read from the shared folder: %w", err)
	}
	if digest := sha256.Sum256(payload); hex.EncodeToString(digest[:]) != hash {
		return nil, fmt.Errorf("the file %s in the shared folder does not have the hash that is its name", hash)
	}
	return payload, nil
}

// MaxPayload implements sharedstorage.Storage.
func (s *Storage) MaxPayload() int { return maxPayload }
