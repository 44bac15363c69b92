package multiparty

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// The hashes were made outside of this program:
//
//	printf '%s' '{"a":1.50,"é":[true,null,"x/y<z>"]}' | sha256sum
//	printf '%s' '["<the hash above>"]' | sha256sum
//	printf '%s' '{"author":"0x70997970c51812dc3a010c7d01b50e0d17dc79c8","created":"2026-11-21T12:00:00.12Z","datahash":"<the hash above>",…}' | sha256sum
const (
	wantDataHash        = "f730fec4718535fed3e167443c46cfea7d66b652d58a38d7ca6a7206b53183a4"
	wantMessageDataHash = "d4d474f0f72947f841bdc44a0a62a93bb13e5094322f766c9e2fdf753f0459ed"
	wantMessageHash     = "056f63c089ccee0491bd7291182eeb0c0da223442c588678f67d0eb592880658"
)

func TestHashesAsAThirdPartyComputesThem(t *testing.T) {
	t.Parallel()
	data, err := DataHash(json.RawMessage("{ \"\\u00e9\": [true, null, \"x\\/y\\u003cz>\"],\n \"a\": 1.50 }"))
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(data); got != wantDataHash {
		t.Errorf("data hash %s", got)
	}
	datahash, err := MessageDataHash([][]byte{data})
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(datahash); got != wantMessageDataHash {
		t.Errorf("datahash %s", got)
	}
	author := "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"
	m := store.Message{
		ID: uuid.MustParse("019aa000-0000-7000-8000-000000000001"), Type: "broadcast", TxType: "batch_pin", Author: author, Key: author,
		Created: time.Date(2026, 11, 21, 12, 0, 0, 120_000_000, time.UTC), Network: "default", Topics: []string{"t1", "t2"}, Tag: "greeting", DataHash: datahash,
	}
	hash, err := MessageHash(m.Header())
	if err != nil {
		t.Fatal(err)
	}
	if got := hex.EncodeToString(hash); got != wantMessageHash {
		t.Errorf("message hash %s", got)
	}
}

// sample is a valid batch of one member, made without the publisher, that a test can bend.
type sample struct {
	author   common.Address
	network  string
	batch    uuid.UUID
	messages []store.Message
	data     map[uuid.UUID][]store.Data
}

func newSample(t testing.TB, author common.Address, network string, values ...any) *sample {
	t.Helper()
	s := &sample{author: author, network: network, batch: store.NewID(), data: map[uuid.UUID][]store.Data{}}
	for _, value := range values {
		s.add(t, "", value)
	}
	return s
}

func (s *sample) add(t testing.TB, tag string, value any) *store.Message {
	t.Helper()
	return s.addAs(t, store.NewID(), tag, value)
}

func (s *sample) addAs(t testing.TB, id uuid.UUID, tag string, value any) *store.Message {
	t.Helper()
	n := &Network{cfg: Config{Namespace: "theirs", NetworkName: s.network}, author: store.Account(s.author.Bytes())}
	b, err := n.message(id, tag, []string{"topic"}, value)
	if err != nil {
		t.Fatal(err)
	}
	s.messages = append(s.messages, b.Message)
	s.data[b.Message.ID] = b.Data
	return &s.messages[len(s.messages)-1]
}

// rehash makes the hashes of a message right again after its header was changed.
func (s *sample) rehash(t testing.TB, m *store.Message) {
	t.Helper()
	var err error
	if m.Hash, err = MessageHash(m.Header()); err != nil {
		t.Fatal(err)
	}
}

func (s *sample) encode(t testing.TB) (packed []byte, hash [32]byte) {
	t.Helper()
	packed, sum, err := encodePayload(s.batch, s.network, store.Account(s.author.Bytes()), s.messages, s.data)
	if err != nil {
		t.Fatal(err)
	}
	return packed, [32]byte(sum)
}

func (s *sample) pin(hash [32]byte) *batchPin {
	return &batchPin{author: s.author, network: NetworkHash(s.network), id: s.batch, hash: hash}
}

func pack(t testing.TB, text []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

var alice = common.HexToAddress("0x70997970C51812dc3A010C7d01b50e0d17dc79C8")

func TestAValidPayloadComesBackAsItWas(t *testing.T) {
	t.Parallel()
	s := newSample(t, alice, "net", map[string]any{"x": 1, "html": "<&>"}, json.RawMessage(`12345678901234567890.000`), nil)
	s.add(t, "greeting", "hello")
	packed, hash := s.encode(t)
	text, err := unpack(packed)
	if err != nil {
		t.Fatal(err)
	}
	b, err := verifyPayload(text, s.pin(hash), "ours", "net")
	if err != nil {
		t.Fatal(err)
	}
	if b.Batch.Namespace != "ours" || b.Batch.ID != s.batch || len(b.Messages) != 4 {
		t.Fatalf("got %+v", b.Batch)
	}
	for i := range b.Messages {
		got, want := b.Messages[i].Message, s.messages[i]
		if got.ID != want.ID || !bytes.Equal(got.Hash, want.Hash) || got.Tag != want.Tag || !got.Created.Equal(want.Created) {
			t.Errorf("message %d: got %+v, want %+v", i, got, want)
		}
		if b.Messages[i].Data[0].Value != s.data[want.ID][0].Value {
			t.Errorf("value %d: %s", i, b.Messages[i].Data[0].Value)
		}
	}
}

// Each case changes one thing about a valid batch, and makes all hashes right again that the change does not aim at.
func TestBatchesThatLieAreRefused(t *testing.T) {
	t.Parallel()
	mallory := common.HexToAddress("0x1111111111111111111111111111111111111111")
	first := func(s *sample) *store.Message { return &s.messages[0] }
	for name, c := range map[string]struct {
		bend func(*testing.T, *sample)           // before it is encoded
		text func(string, *sample) string        // after that; the pin has the hash of the result
		pin  func(*batchPin)                     // what the chain says
		raw  func(t *testing.T, b []byte) []byte // the packed bytes
		want string
	}{
		"another hash":           {pin: func(p *batchPin) { p.hash[0]++ }, want: "hash that was pinned"},
		"another batch id":       {pin: func(p *batchPin) { p.id[0]++ }, want: "is that of batch"},
		"another pinner":         {pin: func(p *batchPin) { p.author = mallory }, want: "author is not the one"},
		"no gzip":                {raw: func(*testing.T, []byte) []byte { return []byte("hello") }, want: "gzip"},
		"nothing":                {raw: func(*testing.T, []byte) []byte { return nil }, want: "gzip"},
		"cut off":                {raw: func(_ *testing.T, b []byte) []byte { return b[:len(b)/2] }, want: "decompressed"},
		"a bomb":                 {raw: func(t *testing.T, _ []byte) []byte { return pack(t, make([]byte, 64<<20)) }, want: "more than"},
		"no JSON":                {text: func(string, *sample) string { return "hello" }, want: "canonical"},
		"white space":            {text: func(s string, _ *sample) string { return s + " " }, want: "canonical"},
		"another order":          {text: func(s string, _ *sample) string { return strings.Replace(s, `"version":1}`, `"version":1,"a":1}`, 1) }, want: "canonical"},
		"an unknown field":       {text: func(s string, _ *sample) string { return strings.Replace(s, `"version":1}`, `"version":1,"x":1}`, 1) }, want: "not a batch"},
		"an unknown version":     {text: func(s string, _ *sample) string { return strings.Replace(s, `"version":1}`, `"version":2}`, 1) }, want: "version 2"},
		"no messages":            {bend: func(_ *testing.T, s *sample) { s.messages = nil }, want: "0 messages"},
		"a message twice":        {bend: func(_ *testing.T, s *sample) { s.messages = append(s.messages, s.messages[0]) }, want: "twice"},
		"a message of another":   {bend: func(t *testing.T, s *sample) { first(s).Author = store.Account(mallory.Bytes()); s.rehash(t, first(s)) }, want: "author"},
		"a key of another":       {bend: func(t *testing.T, s *sample) { first(s).Key = store.Account(mallory.Bytes()); s.rehash(t, first(s)) }, want: "author"},
		"another network inside": {bend: func(t *testing.T, s *sample) { first(s).Network = "other"; s.rehash(t, first(s)) }, want: "another network"},
		"another message hash":   {bend: func(_ *testing.T, s *sample) { first(s).Hash = sum([]byte("x")) }, want: "hash is not that"},
		"another datahash":       {bend: func(t *testing.T, s *sample) { first(s).DataHash = sum([]byte("x")); s.rehash(t, first(s)) }, want: "datahash"},
		"another value":          {bend: func(_ *testing.T, s *sample) { s.data[first(s).ID][0].Value = `"other"` }, want: "hash that it claims"},
		"another value hash": {bend: func(_ *testing.T, s *sample) {
			d := &s.data[first(s).ID][0]
			d.Value, d.Hash = `"other"`, sum([]byte(`"other"`))
		}, want: "datahash"},
		"a value left out": {bend: func(_ *testing.T, s *sample) { s.data[first(s).ID] = nil }, want: "datahash"},
		"a bad topic":      {bend: func(t *testing.T, s *sample) { first(s).Topics = []string{"no name!"}; s.rehash(t, first(s)) }, want: "topics"},
		"no topic":         {bend: func(t *testing.T, s *sample) { first(s).Topics = nil; s.rehash(t, first(s)) }, want: "topics"},
		"a bad tag":        {bend: func(t *testing.T, s *sample) { first(s).Tag = "\x00"; s.rehash(t, first(s)) }, want: "tag"},
		"a private one":    {bend: func(t *testing.T, s *sample) { first(s).Type = "private"; s.rehash(t, first(s)) }, want: "broadcast"},
		"no id":            {bend: func(t *testing.T, s *sample) { first(s).ID = uuid.Nil; s.rehash(t, first(s)) }, want: "no id"},
		"the year 0": {bend: func(t *testing.T, s *sample) {
			first(s).Created = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC)
			s.rehash(t, first(s))
		}, want: "time"},
		"nanoseconds": {bend: func(t *testing.T, s *sample) {
			first(s).Created = first(s).Created.Truncate(time.Second).Add(1)
			s.rehash(t, first(s))
		}, want: "time"},
		"another writing of the time": {text: func(s string, b *sample) string {
			created, _ := b.messages[0].Created.MarshalText()
			return strings.Replace(s, string(created), strings.TrimSuffix(string(created), "Z")+"+00:00", 1)
		}, want: "normal form"},
		"topic and topics differ": {text: func(s string, _ *sample) string {
			return strings.Replace(s, `"topic":["topic"]`, `"topic":["other"]`, 1)
		}, want: "normal form"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSample(t, alice, "net", "hello")
			if c.bend != nil {
				c.bend(t, s)
			}
			packed, hash := s.encode(t)
			if c.text != nil {
				text, err := unpack(packed)
				if err != nil {
					t.Fatal(err)
				}
				bent := c.text(string(text), s)
				if bent == string(text) {
					t.Fatal("the case changes nothing")
				}
				packed, hash = pack(t, []byte(bent)), [32]byte(sum([]byte(bent)))
			}
			pin := s.pin(hash)
			if c.pin != nil {
				c.pin(pin)
			}
			if c.raw != nil {
				packed = c.raw(t, packed)
			}
			text, err := unpack(packed)
			if err == nil {
				_, err = verifyPayload(text, pin, "ours", "net")
			}
			if !errors.Is(err, errBatch) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want an error with %q", err, c.want)
			}
		})
	}
}

func TestBadDefinitionsRejectTheirMessageOnly(t *testing.T) {
	t.Parallel()
	id, message, owner := store.NewID(), store.NewID(), store.NewID()
	good := func() contract.Interface {
		method := store.NewID()
		i := contract.Interface{
			ID: &id, Message: &message, Namespace: "net", Name: "simple", Version: "1",
			Methods: []contract.Method{{ID: &method, Contract: &id, Namespace: "net", Name: "get", Pathname: "get"}},
		}
		if err := i.Validate(); err != nil {
			t.Fatal(err)
		}
		return i
	}
	for name, c := range map[string]struct {
		tag   string
		value func() any
		want  string
	}{
		"right":           {store.TagDefineInterface, func() any { return good() }, ""},
		"no object":       {store.TagDefineInterface, func() any { return 1 }, "read the interface"},
		"no id":           {store.TagDefineInterface, func() any { i := good(); i.ID = nil; return i }, "no id"},
		"other message":   {store.TagDefineInterface, func() any { i := good(); i.Message = &owner; return i }, "another message"},
		"other network":   {store.TagDefineInterface, func() any { i := good(); i.Namespace = "x"; return i }, "another network"},
		"no name":         {store.TagDefineInterface, func() any { i := good(); i.Name = ""; return i }, "name"},
		"no version":      {store.TagDefineInterface, func() any { i := good(); i.Version = "\x00"; return i }, "version"},
		"other owner":     {store.TagDefineInterface, func() any { i := good(); i.Methods[0].Contract = &owner; return i }, "another interface"},
		"method id twice": {store.TagDefineInterface, func() any { i := good(); i.Methods[0].ID = &id; return i }, "no id of its own"},
		"other pathname":  {store.TagDefineInterface, func() any { i := good(); i.Methods[0].Pathname = "../x"; return i }, "pathname"},
		"no API id":       {store.TagDefineAPI, func() any { return apiDefinition{Namespace: "net", Name: "a", Interface: reference{id}} }, "no id"},
		"API name":        {store.TagDefineAPI, func() any { return apiDefinition{ID: id, Namespace: "net", Name: "a b", Interface: reference{id}} }, "name"},
		"API name as id": {store.TagDefineAPI, func() any {
			return apiDefinition{ID: id, Namespace: "net", Name: id.String(), Interface: reference{id}}
		}, "look like an id"},
		"API location": {store.TagDefineAPI, func() any {
			return apiDefinition{ID: id, Namespace: "net", Name: "a", Interface: reference{id}, Location: &addressLocation{"0x12"}}
		}, "location"},
		"API network": {store.TagDefineAPI, func() any { return apiDefinition{ID: id, Namespace: "x", Name: "a", Interface: reference{id}} }, "another network"},
		"right API":   {store.TagDefineAPI, func() any { return apiDefinition{ID: id, Namespace: "net", Name: "a", Interface: reference{id}} }, ""},
	} {
		s := newSample(t, alice, "net")
		s.addAs(t, message, c.tag, c.value())
		packed, hash := s.encode(t)
		text, err := unpack(packed)
		if err != nil {
			t.Fatal(err)
		}
		b, err := verifyPayload(text, s.pin(hash), "ours", "net")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := b.Messages[0].Invalid; (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
