package multiparty

import (
	"errors"
	"fmt"

	"github.com/ethereum/go-ethereum/accounts/abi"
	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/store"
)

// pinABI is the pin contract's, parsed once by package contracts.
func pinABI() *abi.ABI {
	parsed := contracts.Pactwire().Parsed
	return &parsed
}

// The topics of the pin contract's logs.
func topicOf(event string) common.Hash { return pinABI().Events[event].ID }

// batchPin is a BatchPin log.
type batchPin struct {
	author   common.Address
	network  common.Hash
	id       uuid.UUID
	hash     [32]byte
	location string
	payload  []byte
}

var errLog = errors.New("unreadable log of the pin contract")

// readBatchPin decodes a BatchPin log. As much as could be read is returned with an error, for the report.
func readBatchPin(pin *store.Pin) (*batchPin, error) {
	if len(pin.Topics) != 3 {
		return &batchPin{}, fmt.Errorf("%w: %d topics", errLog, len(pin.Topics))
	}
	b := &batchPin{author: common.BytesToAddress(pin.Topics[1]), network: common.BytesToHash(pin.Topics[2])}
	var log struct {
		BatchId   [16]byte //nolint:revive // the name that package abi derives from the contract's
		BatchHash [32]byte
		Location  string
		Payload   []byte
	}
	if err := pinABI().UnpackIntoInterface(&log, "BatchPin", pin.Data); err != nil {
		return b, fmt.Errorf("%w: %w", errLog, err)
	}
	b.id, b.hash, b.location, b.payload = log.BatchId, log.BatchHash, log.Location, log.Payload
	return b, nil
}

// readChunks decodes the data of BatchChunk logs in their order. Their indices must count from 0.
func readChunks(logs [][]byte) ([][]byte, error) {
	chunks := make([][]byte, len(logs))
	for i, data := range logs {
		var log struct {
			BatchId [16]byte //nolint:revive // as above
			Index   uint32
			Data    []byte
		}
		if err := pinABI().UnpackIntoInterface(&log, "BatchChunk", data); err != nil {
			return nil, fmt.Errorf("%w: chunk %d: %w", errBatch, i, err)
		}
		if log.Index != uint32(i) { //nolint:gosec // bounded by the number of chunks that a batch may have
			return nil, fmt.Errorf("%w: chunk %d is in the place of chunk %d", errBatch, log.Index, i)
		}
		chunks[i] = log.Data
	}
	return chunks, nil
}
