package multiparty

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/sharedstorage"
	"github.com/pactwire/pactwire/store"
)

// The limits of what goes out, which are also those of what is accepted.
const (
	maxMessages   = 1000    // per batch
	maxValues     = 256     // per message
	maxTopics     = 64      // per message
	maxMessage    = 4 << 20 // canonical bytes of one message's values together
	maxPayload    = 6 << 20 // a batch, unpacked
	payloadFormat = 1
)

// errBatch is the class of everything that is wrong with a batch itself. It is the same for every member that looks.
var errBatch = errors.New("bad batch")

type payload struct {
	Version   int               `json:"version"`
	ID        uuid.UUID         `json:"id"`
	Namespace string            `json:"namespace"`
	Author    string            `json:"author"`
	Messages  []json.RawMessage `json:"messages"`
}

type payloadMessage struct {
	Header store.MessageHeader `json:"header"`
	Hash   string              `json:"hash"`
	Data   []json.RawMessage   `json:"data"`
}

type payloadValue struct {
	ID    uuid.UUID       `json:"id"`
	Hash  string          `json:"hash"`
	Value json.RawMessage `json:"value"`
}

// encodePayload makes a batch's payload, ready for the shared storage, and the batch's hash.
func encodePayload(id uuid.UUID, network, author string, messages []store.Message, data map[uuid.UUID][]store.Data) (packed, hash []byte, err error) {
	p := payload{Version: payloadFormat, ID: id, Namespace: network, Author: author, Messages: make([]json.RawMessage, len(messages))}
	for i := range messages {
		m := &messages[i]
		out := payloadMessage{Header: m.Header(), Hash: hex.EncodeToString(m.Hash), Data: []json.RawMessage{}}
		for _, d := range data[m.ID] {
			value, err := json.Marshal(payloadValue{ID: d.ID, Hash: hex.EncodeToString(d.Hash), Value: json.RawMessage(d.Value)})
			if err != nil {
				return nil, nil, fmt.Errorf("encode data %s: %w", d.ID, err)
			}
			out.Data = append(out.Data, value)
		}
		if p.Messages[i], err = json.Marshal(out); err != nil {
			return nil, nil, fmt.Errorf("encode message %s: %w", m.ID, err)
		}
	}
	hash, canonical, err := hashJSON(p)
	if err != nil {
		return nil, nil, fmt.Errorf("encode batch %s: %w", id, err)
	}
	if len(canonical) > maxPayload {
		return nil, nil, fmt.Errorf("%w: %d bytes, at most %d", sharedstorage.ErrTooLarge, len(canonical), maxPayload)
	}
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(canonical); err != nil {
		return nil, nil, fmt.Errorf("compress batch %s: %w", id, err)
	}
	if err := w.Close(); err != nil {
		return nil, nil, fmt.Errorf("compress batch %s: %w", id, err)
	}
	return b.Bytes(), hash, nil
}

// unpack decompresses a payload, and never to more than maxPayload bytes, whatever it claims.
func unpack(packed []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, fmt.Errorf("%w: the payload is not compressed with gzip", errBatch)
	}
	text, err := io.ReadAll(io.LimitReader(r, maxPayload+1))
	if err != nil {
		return nil, fmt.Errorf("%w: the payload cannot be decompressed", errBatch)
	}
	if len(text) > maxPayload {
		return nil, fmt.Errorf("%w: the payload has more than %d bytes", errBatch, maxPayload)
	}
	return text, nil
}

// verifyPayload reads a payload and checks everything that can be checked without knowing what else was pinned: hashes, author, network, ids, limits, names.
// The error is an errBatch.
func verifyPayload(text []byte, pin *batchPin, namespace, network string) (*store.PinnedBatch, error) {
	if !bytes.Equal(sum(text), pin.hash[:]) {
		return nil, fmt.Errorf("%w: the payload does not have the hash that was pinned", errBatch)
	}
	if canonical, err := Canonical(text); err != nil || !bytes.Equal(canonical, text) {
		return nil, fmt.Errorf("%w: the payload is not canonical JSON", errBatch)
	}
	var p payload
	if err := decodeStrictly(text, &p); err != nil {
		return nil, fmt.Errorf("%w: the payload is not a batch: %w", errBatch, err)
	}
	author := store.Account(pin.author.Bytes())
	switch {
	case p.Version != payloadFormat:
		return nil, fmt.Errorf("%w: payload version %d is not known", errBatch, p.Version)
	case p.ID != pin.id:
		return nil, fmt.Errorf("%w: the payload is that of batch %s", errBatch, p.ID)
	case p.Namespace != network:
		return nil, fmt.Errorf("%w: the payload is for another network", errBatch)
	case p.Author != author:
		return nil, fmt.Errorf("%w: the payload's author is not the one who pinned it", errBatch)
	case len(p.Messages) == 0 || len(p.Messages) > maxMessages:
		return nil, fmt.Errorf("%w: %d messages, must be 1 to %d", errBatch, len(p.Messages), maxMessages)
	}
	b := &store.PinnedBatch{
		Batch:    store.Batch{Namespace: namespace, ID: p.ID, Author: author, Hash: pin.hash[:], Location: pin.location},
		Account:  pin.author.Bytes(),
		Messages: make([]store.PinnedMessage, len(p.Messages)),
	}
	seen := make(map[uuid.UUID]bool, len(p.Messages))
	for i, text := range p.Messages {
		m, err := verifyMessage(text, author, namespace, network)
		if err != nil {
			return nil, fmt.Errorf("%w: message %d: %w", errBatch, i, err)
		}
		if seen[m.Message.ID] {
			return nil, fmt.Errorf("%w: message %s is in it twice", errBatch, m.Message.ID)
		}
		seen[m.Message.ID] = true
		b.Messages[i] = m
	}
	return b, nil
}

func verifyMessage(text []byte, author, namespace, network string) (store.PinnedMessage, error) {
	var p payloadMessage
	if err := decodeStrictly(text, &p); err != nil {
		return store.PinnedMessage{}, err
	}
	var shown struct {
		Header json.RawMessage `json:"header"`
	}
	if err := json.Unmarshal(text, &shown); err != nil {
		return store.PinnedMessage{}, fmt.Errorf("read the header: %w", err)
	}
	h := p.Header
	m := store.Message{
		Namespace: namespace, ID: h.ID, Network: h.Namespace, Type: h.Type, TxType: h.TxType, Author: h.Author, Key: h.Key, Created: h.Created.UTC(),
		Topics: h.Topics, Tag: h.Tag, Group: h.Group, Data: store.DataRefs{},
	}
	var err error
	if m.DataHash, err = readHash(h.DataHash); err != nil {
		return store.PinnedMessage{}, fmt.Errorf("datahash: %w", err)
	}
	if err := verifyHeader(&m, author, network); err != nil {
		return store.PinnedMessage{}, err
	}
	// The header is kept in columns. It must come out of them as it was hashed.
	hash, canonical, err := hashJSON(m.Header())
	if err != nil || !bytes.Equal(canonical, shown.Header) {
		return store.PinnedMessage{}, errors.New("the header is not in its normal form")
	}
	if m.Hash = hash; p.Hash != hex.EncodeToString(hash) {
		return store.PinnedMessage{}, errors.New("the hash is not that of the header")
	}
	out := store.PinnedMessage{Message: m}
	if err := verifyValues(&out, p.Data); err != nil {
		return store.PinnedMessage{}, err
	}
	readDefinition(&out)
	return out, nil
}

func verifyHeader(m *store.Message, author, network string) error {
	switch {
	case m.ID == uuid.Nil:
		return errors.New("it has no id")
	case m.Type != store.MessageBroadcast || m.TxType != store.TxBatchPin:
		return errors.New("it is not a broadcast that is pinned")
	case m.Author != author || m.Key != author:
		return errors.New("its author is not the one who pinned the batch")
	case m.Network != network:
		return errors.New("it is for another network")
	case m.Tag != "" && !contract.ValidName(m.Tag):
		return errors.New("its tag is not a name")
	case m.Group != "":
		return errors.New("a broadcast has no group")
	case len(m.Topics) == 0 || len(m.Topics) > maxTopics:
		return fmt.Errorf("%d topics, must be 1 to %d", len(m.Topics), maxTopics)
	case m.Created.Year() < 1970 || m.Created.Year() > 9999 || !m.Created.Equal(m.Created.Truncate(time.Microsecond)):
		return errors.New("its time of creation is out of range or too precise")
	}
	for _, topic := range m.Topics {
		if !contract.ValidName(topic) {
			return errors.New("one of its topics is not a name")
		}
	}
	return nil
}

func verifyValues(m *store.PinnedMessage, values []json.RawMessage) error {
	if len(values) > maxValues {
		return fmt.Errorf("%d values, at most %d", len(values), maxValues)
	}
	hashes := make([][]byte, len(values))
	seen := make(map[uuid.UUID]bool, len(values))
	for i, text := range values {
		var v payloadValue
		if err := decodeStrictly(text, &v); err != nil {
			return fmt.Errorf("value %d: %w", i, err)
		}
		hashes[i] = sum(v.Value) // a part of a canonical text is canonical
		switch {
		case v.Value == nil || v.ID == uuid.Nil || seen[v.ID]:
			return fmt.Errorf("value %d is missing, or its id is missing or repeated", i)
		case v.Hash != hex.EncodeToString(hashes[i]):
			return fmt.Errorf("value %d does not have the hash that it claims", i)
		}
		seen[v.ID] = true
		m.Message.Data = append(m.Message.Data, store.DataRef{ID: v.ID, Hash: v.Hash})
		m.Data = append(m.Data, store.Data{
			Namespace: m.Message.Namespace, Message: m.Message.ID, Position: i, ID: v.ID, Hash: hashes[i], Value: string(v.Value),
			Created: m.Message.Created,
		})
	}
	datahash, err := MessageDataHash(hashes)
	if err != nil || !bytes.Equal(datahash, m.Message.DataHash) {
		return errors.New("the datahash is not that of the values")
	}
	return nil
}

// decodeStrictly reads JSON that has no fields beyond those of v.
func decodeStrictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("read JSON: %w", err)
	}
	return nil
}

func readHash(text string) ([]byte, error) {
	hash, err := hex.DecodeString(text)
	if err != nil || len(hash) != 32 {
		return nil, errors.New("not 64 hex digits")
	}
	return hash, nil
}
