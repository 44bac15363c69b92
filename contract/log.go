package contract

import (
	"encoding/json"
	"errors"

	"github.com/ethereum/go-ethereum/common"
)

// maxTopics is how many topics a log has at most.
const maxTopics = 4

// ErrMismatch says that a log is not of the event, although its first topic may be: another contract's event can have
// the same signature and index other arguments (ERC-20 and ERC-721 Transfer). A reader passes over such a log.
var ErrMismatch = errors.New("the log is not of this event")

// CompiledEvent decodes the logs of one event. It is immutable.
type CompiledEvent struct {
	Event      Event       // the definition it was made from
	Signature  string      // such as Transfer(address,address,uint256)
	Topic0     common.Hash // hash of the signature; zero for an anonymous event, whose logs do not carry it
	Anonymous  bool
	NumIndexed int // indexed arguments; the number of topics without the signature's
	params     *abiType
	indexed    []bool
}

// DecodeLog turns a log into an object with a member for each argument, in order, keyed by InputName. Indexed strings,
// bytes, arrays and tuples are not in the log: their value is the 32-byte hash that is, as 0x hex. It returns
// ErrMismatch for a log of another shape, and a KindBadUpstream error when the data does not fit the arguments.
func (e *CompiledEvent) DecodeLog(topics []common.Hash, data []byte) (json.RawMessage, error) {
	if !e.Anonymous {
		if len(topics) == 0 || topics[0] != e.Topic0 {
			return nil, ErrMismatch
		}
		topics = topics[1:]
	}
	if len(topics) != e.NumIndexed {
		return nil, ErrMismatch
	}
	d := newDecoder(data)
	d.out = append(d.out, '{')
	at, topic := 0, 0
	for i := range e.params.fields {
		f := &e.params.fields[i]
		if i > 0 {
			d.out = append(d.out, ',')
		}
		d.out = append(d.out, f.prefix...)
		var err error
		if e.indexed[i] {
			err = d.topic(f.typ, topics[topic])
			topic++
		} else {
			err = d.place(f.typ, 0, at)
			at += f.typ.head()
		}
		if err != nil {
			return nil, badData("bad_log_data", "a log of "+e.Event.Name+" does not fit its argument "+f.key, err)
		}
	}
	return append(d.out, '}'), nil
}

// topic decodes an indexed argument.
func (d *decoder) topic(t *abiType, topic common.Hash) error {
	switch t.kind {
	case kindBytes, kindString, kindArray, kindSlice, kindTuple:
		d.out = appendQuotedHex(d.out, topic[:])
		return nil
	}
	return d.scalar(t, topic[:])
}
