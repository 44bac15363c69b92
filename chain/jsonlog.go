package chain

import (
	"errors"

	"github.com/ethereum/go-ethereum/common"
)

// chainLog is one log as eth_getLogs gives it. Reading logs is what ingestion spends most of its time with: they are taken straight from the
// text, which the JSON decoder has found well-formed before.
type chainLog struct {
	address   common.Address
	topics    []common.Hash
	data      []byte
	block     int64
	blockHash common.Hash
	txHash    common.Hash
	txIndex   int64
	index     int64
	time      int64 // of its block, in seconds; 0 where the node does not tell it with the log
	removed   bool
}

// logPage is an answer of eth_getLogs.
type logPage struct{ logs []chainLog }

var (
	errNoLogs = errors.New("json: the answer to eth_getLogs is no list of logs")
	errBadLog = errors.New("json: a log has a member that is missing or not what it must be")
)

const (
	hasAddress = 1 << iota
	hasTopics
	hasData
	hasBlock
	hasBlockHash
	hasTxHash
	hasTxIndex
	hasIndex
	hasAll = 1<<iota - 1
)

// UnmarshalJSON implements json.Unmarshaler.
func (p *logPage) UnmarshalJSON(b []byte) error {
	i := skipBlank(b, 0)
	if i >= len(b) || b[i] != '[' {
		return errNoLogs
	}
	p.logs = make([]chainLog, 0, len(b)/700+1)
	for i = skipBlank(b, i+1); i < len(b) && b[i] != ']'; {
		var l chainLog
		seen := 0
		end, err := scanObject(b, i, func(key string, value []byte) bool {
			bit, ok := l.set(key, value)
			seen |= bit
			return ok
		})
		if err != nil {
			return err
		}
		if seen != hasAll {
			return errBadLog
		}
		p.logs = append(p.logs, l)
		if i = skipBlank(b, end); i < len(b) && b[i] == ',' {
			i = skipBlank(b, i+1)
		}
	}
	return nil
}

// set takes one member. It returns which one that was, and whether its value is as it must be.
func (l *chainLog) set(key string, value []byte) (bit int, ok bool) {
	switch key {
	case "address":
		return hasAddress, hexInto(l.address[:], value)
	case "topics":
		l.topics, ok = hexHashes(value)
		return hasTopics, ok
	case "data":
		l.data, ok = hexBytes(value)
		return hasData, ok
	case "blockNumber":
		l.block, ok = hexNumber(value)
		return hasBlock, ok
	case "blockHash":
		return hasBlockHash, hexInto(l.blockHash[:], value)
	case "transactionHash":
		return hasTxHash, hexInto(l.txHash[:], value)
	case "transactionIndex":
		l.txIndex, ok = hexNumber(value)
		return hasTxIndex, ok
	case "logIndex":
		l.index, ok = hexNumber(value)
		return hasIndex, ok
	case "blockTimestamp":
		l.time, _ = hexNumber(value) // a member that not every node has; what makes no sense is as good as none
	case "removed":
		l.removed = string(value) == "true"
	}
	return 0, true
}

// blockHead is what the reader needs of a block. A block that the node does not have is not found.
type blockHead struct {
	found  bool
	number int64
	time   int64
	hash   common.Hash
	parent common.Hash
	bloom  bloom
}

// UnmarshalJSON implements json.Unmarshaler.
func (h *blockHead) UnmarshalJSON(b []byte) error {
	*h = blockHead{}
	if string(b) == "null" {
		return nil
	}
	seen := 0
	_, err := scanObject(b, skipBlank(b, 0), func(key string, value []byte) (ok bool) {
		switch key {
		case "number":
			seen |= hasBlock
			h.number, ok = hexNumber(value)
			return ok
		case "hash":
			seen |= hasBlockHash
			return hexInto(h.hash[:], value)
		case "parentHash":
			return hexInto(h.parent[:], value)
		case "timestamp":
			h.time, ok = hexNumber(value)
			return ok
		case "logsBloom":
			var filter [256]byte
			if hexInto(filter[:], value) { // some chains have none
				h.bloom = &filter
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	if seen != hasBlock|hasBlockHash {
		return errBadBlock
	}
	h.found = true
	return nil
}

var errBadBlock = errors.New("json: a block has a member that is missing or not what it must be")
