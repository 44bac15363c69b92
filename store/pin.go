package store

import "github.com/lib/pq"

// The states of a pin.
const (
	PinWaiting = "waiting" // the aggregator has not applied it yet
	PinApplied = "applied"
	PinRefused = "refused"
)

// Pin is one log of a chain's pin contract, as the reader recorded it.
type Pin struct {
	Chain       string        `db:"chain"`
	BlockNumber int64         `db:"block_number"`
	TxIndex     int64         `db:"tx_index"`
	LogIndex    int64         `db:"log_index"`
	BlockHash   []byte        `db:"block_hash"`
	TxHash      []byte        `db:"tx_hash"`
	Topics      pq.ByteaArray `db:"topics"`
	Data        []byte        `db:"data"`
	State       string        `db:"state"`
	Reason      string        `db:"reason"` // why it was refused
	Attempts    int           `db:"attempts"`
}
