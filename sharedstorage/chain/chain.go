// Package chain is the embedded default of the shared storage: the payload travels in the pin transaction itself, so that a new member can rebuild everything from the
// chain alone. A payload that one transaction cannot carry goes ahead of its pin in chunks.
//
// Locations: empty when the payload is in the pin, "chunks:N" when it is in N chunks.
package chain

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/sharedstorage"
)

const (
	// ChunkSize is what one transaction carries. Nodes refuse transactions of more than 128 KiB.
	ChunkSize = 96 << 10
	// MaxChunks bounds what one batch may put on the chain.
	MaxChunks = 64

	prefix = "chunks:"
)

// Storage keeps payloads on the chain.
type Storage struct{}

// Put splits the payload into what fits into transactions.
func (Storage) Put(_ context.Context, _ uuid.UUID, payload []byte) (sharedstorage.Placement, error) {
	if len(payload) <= ChunkSize {
		return sharedstorage.Placement{Payload: payload}, nil
	}
	if len(payload) > ChunkSize*MaxChunks {
		return sharedstorage.Placement{}, fmt.Errorf("%w: %d bytes, at most %d", sharedstorage.ErrTooLarge, len(payload), ChunkSize*MaxChunks)
	}
	var p sharedstorage.Placement
	for len(payload) > 0 {
		n := min(len(payload), ChunkSize)
		p.Chunks = append(p.Chunks, payload[:n])
		payload = payload[n:]
	}
	p.Location = prefix + strconv.Itoa(len(p.Chunks))
	return p, nil
}

// Get puts the payload together again.
func (Storage) Get(_ context.Context, _ uuid.UUID, p sharedstorage.Placement) ([]byte, error) {
	if p.Location == "" {
		return p.Payload, nil
	}
	count, found := strings.CutPrefix(p.Location, prefix)
	n, err := strconv.Atoi(count)
	if !found || err != nil || n < 1 || n > MaxChunks || strconv.Itoa(n) != count {
		return nil, fmt.Errorf("%w: the location %.80q names no chunks", sharedstorage.ErrUnusable, p.Location)
	}
	if len(p.Payload) != 0 {
		return nil, fmt.Errorf("%w: there is a payload in the pin beside %d chunks", sharedstorage.ErrUnusable, n)
	}
	if len(p.Chunks) != n {
		return nil, fmt.Errorf("%w: %d chunks of %d came before the pin", sharedstorage.ErrUnusable, len(p.Chunks), n)
	}
	return bytes.Join(p.Chunks, nil), nil
}

// MaxPayload implements sharedstorage.Storage.
func (Storage) MaxPayload() int { return ChunkSize * MaxChunks }
