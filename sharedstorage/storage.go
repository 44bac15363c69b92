// Package sharedstorage is the way that the payloads of batches take from the member that broadcasts to all the others. There is one folder per way; all of
// them pass the same tests.
//
// What it guarantees: what Get returns for a Placement is what Put was given, or an error. What it does not: it does not vouch for the bytes.
// Whoever wrote them may lie, and the reader checks them against the hash that was pinned.
package sharedstorage

import (
	"context"
	"errors"
	"strings"

	"github.com/google/uuid"
)

// Placement says where a payload is, and carries the parts of it that travel on the chain.
type Placement struct {
	Location string   // in the words of the storage; goes into the pin
	Payload  []byte   // goes into the pin's own transaction
	Chunks   [][]byte // go, in this order, into transactions of their own before the pin
}

// Storage is one way for payloads.
type Storage interface {
	// Put makes the payload reachable for all members. Doing it again after a crash does no harm.
	Put(ctx context.Context, batch uuid.UUID, payload []byte) (Placement, error)
	// Get returns the payload of a placement that was found on the chain. ErrUnusable means that it never will; any other error that a later try may succeed.
	Get(ctx context.Context, batch uuid.UUID, placement Placement) ([]byte, error)
	// MaxPayload is the size of the largest payload that Put takes.
	MaxPayload() int
}

// Elsewhere tells whether a location is outside the chain: its payload may be out of reach for a while.
func Elsewhere(location string) bool {
	return location != "" && !strings.HasPrefix(location, "chunks:")
}

// ErrUnusable means that a placement holds no payload for good, whoever asks and whenever.
var ErrUnusable = errors.New("the payload's placement is unusable")

// ErrTooLarge means that a payload is larger than the storage takes.
var ErrTooLarge = errors.New("the payload is too large for the shared storage")
