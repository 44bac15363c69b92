package chain

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/pactwire/pactwire/contract"
	"github.com/pactwire/pactwire/store"
)

// maxTime is the last second that a timestamp can show. A chain may claim any time.
const maxTime = 253402300799 // 9999-12-31T23:59:59Z

// source is the kind of chain in the records.
const source = "ethereum"

// prepareJSON encodes what is the same in all records of the listener.
func (h *heard) prepareJSON() error {
	l := &h.listener
	head, err := json.Marshal(struct {
		Source    string `json:"source"`
		Namespace string `json:"namespace"`
		Name      string `json:"name"`
		Listener  string `json:"listener"`
	}{source, l.Namespace, h.event.Event.Name, l.ID.String()})
	if err != nil {
		return fmt.Errorf("encode listener %s: %w", l.ID, err)
	}
	signature, err := json.Marshal(l.Signature)
	if err != nil {
		return fmt.Errorf("encode listener %s: %w", l.ID, err)
	}
	subID, err := json.Marshal(l.ProtocolID)
	if err != nil {
		return fmt.Errorf("encode listener %s: %w", l.ID, err)
	}
	h.names = head[1 : len(head)-1]
	h.infoStart = []byte(`,"info":{"address":"0x`)
	h.infoEnd = fmt.Appendf(nil, `,"signature":%s,"subId":%s`, signature, subID)
	return nil
}

// recorder makes records of logs. It belongs to one goroutine.
type recorder struct{ buf []byte }

// record makes the record of a log for a listener. It returns nil when the log is not of the listener's event. A log of the event whose data does not
// decode is recorded without values, and decodeErr says why: nothing on a chain can stop a listener.
func (r *recorder) record(h *heard, l *chainLog, blockTime int64) (record *store.BlockchainEvent, decodeErr error) {
	output, err := h.event.DecodeLog(l.topics, l.data)
	if errors.Is(err, contract.ErrMismatch) || err != nil && h.event.Anonymous {
		// Another event's log. A log of an anonymous event carries no name: whatever fits its shape is taken for it, and what does not fit is not.
		return nil, nil //nolint:nilnil // nothing to record, and no error
	}
	if err != nil {
		output = json.RawMessage(`{}`)
	}
	blockTime = min(max(blockTime, 0), maxTime)
	at := time.Unix(blockTime, 0).UTC()
	id := store.NewID()
	protocolID := appendProtocolID(make([]byte, 0, 28), l)

	b := append(r.buf[:0], `{"id":"`...)
	b = append(b, id.String()...)
	b = append(b, `",`...)
	b = append(b, h.names...)
	b = append(b, `,"protocolId":"`...)
	b = append(b, protocolID...)
	b = append(b, `","output":`...)
	b = append(b, output...)
	b = append(b, h.infoStart...)
	b = appendHexDigits(b, l.address[:])
	b = append(b, `","blockHash":"0x`...)
	b = appendHexDigits(b, l.blockHash[:])
	b = append(b, `","blockNumber":"`...)
	b = strconv.AppendInt(b, l.block, 10)
	b = append(b, '"')
	if err != nil {
		if text, jsonErr := json.Marshal(err.Error()); jsonErr == nil {
			b = append(b, `,"error":`...)
			b = append(b, text...)
		}
	}
	b = append(b, `,"logIndex":"`...)
	b = strconv.AppendInt(b, l.index, 10)
	b = append(b, '"')
	b = append(b, h.infoEnd...)
	b = append(b, `,"timestamp":"`...)
	b = strconv.AppendInt(b, blockTime, 10)
	b = append(b, `","transactionHash":"0x`...)
	b = appendHexDigits(b, l.txHash[:])
	b = append(b, `","transactionIndex":"`...)
	b = strconv.AppendInt(b, l.txIndex, 10)
	b = append(b, `"},"timestamp":"`...)
	b = at.AppendFormat(b, time.RFC3339)
	b = append(b, `","tx":{"type":"","blockchainId":"0x`...)
	b = appendHexDigits(b, l.txHash[:])
	b = append(b, `"}}`...)
	r.buf = b

	return &store.BlockchainEvent{
		ID: id, Listener: h.listener.ID, Name: h.event.Event.Name, ProtocolID: string(protocolID),
		TxHash: l.txHash[:], BlockNumber: l.block, BlockHash: l.blockHash[:], LogIndex: l.index, Timestamp: at, Body: validText(b),
	}, err
}

// validText is what PostgreSQL takes as text. The values are clean already; names come from whoever defined the event.
func validText(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return string([]rune(string(b))) // each wrong byte becomes U+FFFD
}

// appendProtocolID appends block/transaction/log: twelve, six and six digits, more where the number needs them.
func appendProtocolID(b []byte, l *chainLog) []byte {
	b = appendPadded(b, l.block, 12)
	b = append(b, '/')
	b = appendPadded(b, l.txIndex, 6)
	b = append(b, '/')
	return appendPadded(b, l.index, 6)
}

func appendPadded(b []byte, n int64, width int) []byte {
	var digits [20]byte
	text := strconv.AppendInt(digits[:0], n, 10)
	for range width - len(text) {
		b = append(b, '0')
	}
	return append(b, text...)
}

func appendHexDigits(b, value []byte) []byte {
	const digits = "0123456789abcdef"
	for _, c := range value {
		b = append(b, digits[c>>4], digits[c&15])
	}
	return b
}
