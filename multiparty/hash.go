package multiparty

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/pactwire/pactwire/store"
)

// All hashes are SHA-256 over canonical JSON (see Canonical), shown as 64 lower-case hex digits. With what the service answers, anybody can
// recompute them:
//
//	data[i].hash     SHA-256( canonical( the value ) )
//	header.datahash  SHA-256( canonical( [data[0].hash, data[1].hash, …] ) ), the hashes as strings
//	message hash     SHA-256( canonical( header ) ), the header exactly as GET messages/{id} shows it
//	batch hash       SHA-256( payload ), the payload being canonical JSON; the pin contract's log has it as batchHash
//
// The payload is {"author","id","messages":[{"data":[{"hash","id","value"}…],"hash","header"}…],"namespace","version":1}. It is compressed
// with gzip on its way.

// hashJSON is the SHA-256 over the canonical form of what v is as JSON. It returns that form too.
func hashJSON(v any) (hash, canonical []byte, err error) {
	text, err := json.Marshal(v)
	if err != nil {
		return nil, nil, fmt.Errorf("encode as JSON: %w", err)
	}
	if canonical, err = Canonical(text); err != nil {
		return nil, nil, err
	}
	return sum(canonical), canonical, nil
}

// DataHash is the hash of one value; the value need not be canonical.
func DataHash(value json.RawMessage) ([]byte, error) {
	canonical, err := Canonical(value)
	if err != nil {
		return nil, err
	}
	return sum(canonical), nil
}

// MessageDataHash is a header's datahash: the hash over the hashes of all values.
func MessageDataHash(hashes [][]byte) ([]byte, error) {
	list := make([]string, len(hashes))
	for i, hash := range hashes {
		list[i] = hex.EncodeToString(hash)
	}
	hash, _, err := hashJSON(list)
	return hash, err
}

// MessageHash is the hash of a message: that of its header.
func MessageHash(header store.MessageHeader) ([]byte, error) {
	hash, _, err := hashJSON(header)
	return hash, err
}

// NetworkHash is how a network-wide namespace name stands in the pin contract's logs.
func NetworkHash(name string) common.Hash { return crypto.Keccak256Hash([]byte(name)) }

func sum(b []byte) []byte {
	h := sha256.Sum256(b)
	return h[:]
}
