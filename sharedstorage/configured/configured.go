// Package configured makes the shared storage of a namespace from its configuration: a list of addresses. Payloads are put into the first, and got from whichever
// of them the location on the chain names. What is on the chain itself can always be read.
//
// All members of a network must be able to read what any of them puts: they configure the same kinds.
package configured

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/sharedstorage/chain"
	"github.com/pactwire/pactwire/sharedstorage/dir"
	"github.com/pactwire/pactwire/sharedstorage/ipfs"
)

// Check tells what is wrong with an address: "chain", "dir:///path", "ipfs://host:port", or "ipfs+https://host:port".
func Check(address string) error {
	_, _, err := parse(address)
	return err
}

// parse returns the kind of storage, and its folder or its URL.
func parse(address string) (kind, where string, err error) {
	if address == "chain" {
		return "", "", nil
	}
	u, err := url.Parse(address)
	if err != nil {
		return "", "", errors.New("must be chain, dir:///path or ipfs://host:port")
	}
	switch {
	case u.Scheme == "dir" && u.Host == "" && filepath.IsAbs(u.Path) && u.RawQuery == "":
		return dir.Kind, filepath.Clean(u.Path), nil
	case u.Scheme == "dir":
		return "", "", errors.New("a shared folder must be like dir:///path, with an absolute path")
	case (u.Scheme == "ipfs" || u.Scheme == "ipfs+https") && u.Host != "" && u.RawQuery == "":
		web := url.URL{Scheme: "http", User: u.User, Host: u.Host, Path: u.Path}
		if u.Scheme == "ipfs+https" {
			web.Scheme = "https"
		}
		return ipfs.Kind, web.String(), nil
	}
	return "", "", fmt.Errorf("%q is none of chain, dir:///path and ipfs://host:port", u.Redacted())
}

// Storage is what a configuration names.
type Storage struct {
	first  sharedstorage.Storage
	byKind map[string]sharedstorage.Storage
}

// Open makes the storage; without addresses it is the chain.
func Open(addresses []string) (*Storage, error) {
	s := &Storage{first: chain.Storage{}, byKind: map[string]sharedstorage.Storage{}}
	for i, address := range addresses {
		kind, where, err := parse(address)
		if err != nil {
			return nil, fmt.Errorf("shared storage: %w", err)
		}
		var one sharedstorage.Storage
		switch kind {
		case dir.Kind:
			if one, err = dir.New(where); err != nil {
				return nil, fmt.Errorf("shared storage: %w", err)
			}
		case ipfs.Kind:
			one = ipfs.New(where)
		default:
			one = chain.Storage{}
		}
		if i == 0 {
			s.first = one
		}
		if _, twice := s.byKind[kind]; twice {
			return nil, fmt.Errorf("shared storage: there are two of the kind of %q", address)
		}
		s.byKind[kind] = one
	}
	return s, nil
}

// Put implements sharedstorage.Storage.
func (s *Storage) Put(ctx context.Context, batch uuid.UUID, payload []byte) (sharedstorage.Placement, error) {
	return s.first.Put(ctx, batch, payload) //nolint:wrapcheck // it says what it did
}

// Get implements sharedstorage.Storage.
func (s *Storage) Get(ctx context.Context, batch uuid.UUID, p sharedstorage.Placement) ([]byte, error) {
	if !sharedstorage.Elsewhere(p.Location) {
		return chain.Storage{}.Get(ctx, batch, p) //nolint:wrapcheck // it says what it did
	}
	kind, _, _ := strings.Cut(p.Location, ":")
	one := s.byKind[kind+":"]
	if one == nil {
		return nil, fmt.Errorf("%w: the location %.80q is of a kind that is not configured", sharedstorage.ErrUnusable, p.Location)
	}
	return one.Get(ctx, batch, p) //nolint:wrapcheck // it says what it did
}

// MaxPayload implements sharedstorage.Storage.
func (s *Storage) MaxPayload() int { return s.first.MaxPayload() }
