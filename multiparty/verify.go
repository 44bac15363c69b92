package multiparty

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

// Check is one line of a verdict on a message.
type Check struct {
	What string // what was checked
	OK   bool
	Note string // the hash that was found, or what is wrong
}

// Claim is a message as a service answers it, whose every word is to be checked.
type Claim struct {
	Header json.RawMessage `json:"header"`
	Hash   string          `json:"hash"`
	Batch  *uuid.UUID      `json:"batchID"`
	State  string          `json:"state"`
	Data   []struct {
		ID    uuid.UUID       `json:"id"`
		Hash  string          `json:"hash"`
		Value json.RawMessage `json:"value"`
	} `json:"data"`
	Pin *struct {
		Contract        string `json:"contract"`
		TransactionHash string `json:"transactionHash"`
		BatchHash       string `json:"batchHash"`
		Location        string `json:"location"`
	} `json:"pin"`

	header struct {
		Author, Namespace, DataHash string
	}
}

// ReadClaim reads the answer to GET messages/{id}?data=true.
func ReadClaim(answer []byte) (*Claim, error) {
	var c Claim
	if err := json.Unmarshal(answer, &c); err != nil {
		return nil, fmt.Errorf("read the message: %w", err)
	}
	if err := json.Unmarshal(c.Header, &c.header); err != nil {
		return nil, fmt.Errorf("read the message's header: %w", err)
	}
	return &c, nil
}

// check makes a line from two hashes that must be the same.
func check(what string, computed []byte, claimed string) Check {
	if text := hex.EncodeToString(computed); text != claimed {
		return Check{what, false, "it is " + text + ", not " + printable(claimed, 100)}
	}
	return Check{what, true, claimed}
}

// Hashes recomputes the hashes of the values, of all of them together, and of the header.
func (c *Claim) Hashes() ([]Check, error) {
	var checks []Check
	hashes := make([][]byte, len(c.Data))
	for i, d := range c.Data {
		if d.Value == nil {
			return nil, fmt.Errorf("the answer has no value for data %s; ask with data=true", d.ID)
		}
		hash, err := DataHash(d.Value)
		if err != nil {
			return nil, fmt.Errorf("data %s: %w", d.ID, err)
		}
		hashes[i] = hash
		checks = append(checks, check(fmt.Sprintf("hash of value %d", i), hash, d.Hash))
	}
	datahash, err := MessageDataHash(hashes)
	if err != nil {
		return nil, err
	}
	canonical, err := Canonical(c.Header)
	if err != nil {
		return nil, fmt.Errorf("the header: %w", err)
	}
	return append(checks, check("hash of all values, in the header", datahash, c.header.DataHash), check("hash of the header", sum(canonical), c.Hash)), nil
}

// PinLog is a log of the pin contract as the chain's node tells it.
type PinLog struct {
	Topics []common.Hash
	Data   []byte
}

func (l PinLog) pin() *store.Pin {
	p := &store.Pin{Data: l.Data}
	for _, topic := range l.Topics {
		p.Topics = append(p.Topics, topic.Bytes())
	}
	return p
}

// OnChain is what a pin says of a batch.
type OnChain struct {
	Hash     string
	Location string
	Payload  []byte // in the pin itself
}

// FindPin looks for the message's batch among the logs of its pin's transaction.
func (c *Claim) FindPin(logs []PinLog) (*OnChain, []Check, error) {
	if c.Batch == nil || c.Pin == nil {
		return nil, nil, errors.New("the message has no pin: the network's order has not decided it yet")
	}
	for _, log := range logs {
		if len(log.Topics) == 0 || log.Topics[0] != topicOf("BatchPin") {
			continue
		}
		pin, err := readBatchPin(log.pin())
		if err != nil || pin.id != *c.Batch {
			continue
		}
		author := Check{"the pin's sender is the author", store.Account(pin.author.Bytes()) == c.header.Author, store.Account(pin.author.Bytes())}
		network := Check{"the pin is for the message's network", pin.network == NetworkHash(c.header.Namespace), c.header.Namespace}
		return &OnChain{Hash: hex.EncodeToString(pin.hash[:]), Location: pin.location, Payload: pin.payload},
			[]Check{author, network, check("batch hash, on the chain", pin.hash[:], c.Pin.BatchHash)}, nil
	}
	return nil, nil, fmt.Errorf("transaction %s has no pin of batch %s", printable(c.Pin.TransactionHash, 66), c.Batch)
}

// ChunkQuery is the topics of the logs that hold the message's batch in chunks.
func (c *Claim) ChunkQuery() []common.Hash {
	return []common.Hash{topicOf("BatchChunk"), common.BytesToHash(common.HexToAddress(c.header.Author).Bytes()), NetworkHash(c.header.Namespace)}
}

// JoinChunks takes the message's batch out of chunk logs, in chain order.
func (c *Claim) JoinChunks(logs []PinLog) ([][]byte, error) {
	var own [][]byte
	for _, log := range logs {
		if len(log.Data) >= 16 && bytes.Equal(log.Data[:16], c.Batch[:]) {
			own = append(own, log.Data)
		}
	}
	return readChunks(own)
}

// Payload checks that the packed payload is the pinned batch and that the message is in it, word for word.
func (c *Claim) Payload(packed []byte, on *OnChain) ([]Check, error) {
	text, err := unpack(packed)
	if err != nil {
		return nil, err
	}
	checks := []Check{check("hash of the payload", sum(text), on.Hash)}
	var batch struct {
		Messages []struct {
			Header json.RawMessage
			Hash   string
			Data   []struct {
				ID   uuid.UUID
				Hash string
			}
		}
	}
	if err := json.Unmarshal(text, &batch); err != nil {
		return checks, fmt.Errorf("read the payload: %w", err)
	}
	header, err := Canonical(c.Header)
	if err != nil {
		return checks, fmt.Errorf("the header: %w", err)
	}
	for _, m := range batch.Messages {
		if m.Hash != c.Hash || !bytes.Equal(m.Header, header) {
			continue
		}
		same := len(m.Data) == len(c.Data)
		for i := 0; same && i < len(m.Data); i++ {
			same = m.Data[i].ID == c.Data[i].ID && m.Data[i].Hash == c.Data[i].Hash
		}
		return append(checks, Check{"the message is in the payload, word for word", same, fmt.Sprintf("one of %d", len(batch.Messages))}), nil
	}
	return append(checks, Check{"the message is in the payload, word for word", false, "it is not there"}), nil
}

// InChunks tells whether a location says that the payload is in chunks before the pin.
func InChunks(location string) bool { return strings.HasPrefix(location, "chunks:") }
