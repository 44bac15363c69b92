package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/contract"
)

// Listener watches one contract event type. A listener that is not live reads the chain's past on its own, up to Checkpoint so far;
// a live one moves with its chain's NextBlock.
type Listener struct {
	ID         uuid.UUID  `db:"id"`
	Namespace  string     `db:"namespace"`
	Chain      string     `db:"chain"`
	Name       string     `db:"name"`
	ProtocolID string     `db:"protocol_id"`
	Interface  *uuid.UUID `db:"interface"`
	Address    []byte     `db:"address"`     // nil: every address
	Event      string     `db:"event"`       // the contract.Event as JSON
	Signature  string     `db:"signature"`   // such as Transfer(address,address,uint256)
	Topic0     []byte     `db:"topic0"`      // nil: an anonymous event
	Topic      string     `db:"topic"`       // of the events that it makes
	FirstEvent string     `db:"first_event"` // as asked for
	FirstBlock int64      `db:"first_block"` // what that means; no block before it is heard
	Checkpoint int64      `db:"checkpoint"`  // the first block that it has not read; counts only while it is not live
	Live       bool       `db:"live"`
	Events     int64      `db:"events"` // recorded so far
	Created    time.Time  `db:"created"`
}

// ContractEvent is the definition of the event that the listener watches.
func (l *Listener) ContractEvent() (contract.Event, error) {
	var e contract.Event
	if err := json.Unmarshal([]byte(l.Event), &e); err != nil {
		return e, fmt.Errorf("read the event of listener %s: %w", l.ID, err)
	}
	return e, nil
}

// Position is the first block that the listener has not read, given its chain's NextBlock.
func (l *Listener) Position(nextBlock int64) int64 {
	if l.Live {
		return max(nextBlock, l.FirstBlock)
	}
	return l.Checkpoint
}

const listenerColumns = `id, namespace, chain, name, protocol_id, interface, address, event, signature, topic0, topic, first_event, first_block,
	checkpoint, live, events, created`

// CreateListener stores the listener. Checkpoint and Live are the reader's: it starts at FirstBlock and is not live.
func (db *DB) CreateListener(ctx context.Context, l Listener) error {
	l.Checkpoint, l.Live, l.Events = l.FirstBlock, false, 0
	_, err := db.db.NamedExecContext(ctx, `
		INSERT INTO listeners (`+listenerColumns+`) VALUES (:id, :namespace, :chain, :name, :protocol_id, :interface, :address, :event, :signature,
			:topic0, :topic, :first_event, :first_block, :checkpoint, :live, :events, :created)`, l)
	if violates(err, "listeners_name") {
		return pactwire.Conflict("listener_name_taken", "There is a listener with the name %q already.", l.Name)
	}
	if err == nil {
		db.Notify(TopicListeners(l.Chain))
	}
	return wrap(err, "store listener "+l.Name)
}

// Listener returns a namespace's listener by its id or its name.
func (db *DB) Listener(ctx context.Context, namespace, nameOrID string) (Listener, error) {
	var l Listener
	query, arg := `SELECT `+listenerColumns+` FROM listeners WHERE namespace = $1 AND name = $2`, any(nameOrID)
	if id, err := uuid.Parse(nameOrID); err == nil { // no name parses as a UUID
		query, arg = `SELECT `+listenerColumns+` FROM listeners WHERE namespace = $1 AND id = $2`, id
	}
	err := db.db.GetContext(ctx, &l, query, namespace, arg)
	return l, missing(err, "listener", nameOrID, "read listener "+nameOrID)
}

// ListenersOfChain returns all listeners of a chain, of whatever namespace.
func (db *DB) ListenersOfChain(ctx context.Context, chain string) ([]Listener, error) {
	var list []Listener
	err := db.db.SelectContext(ctx, &list, `SELECT `+listenerColumns+` FROM listeners WHERE chain = $1 ORDER BY id`, chain)
	return list, wrap(err, "list the listeners of chain "+chain)
}

// DeleteListener removes a listener. Events that it has recorded stay; their blocks are not followed any longer.
func (db *DB) DeleteListener(ctx context.Context, namespace, nameOrID string) error {
	l, err := db.Listener(ctx, namespace, nameOrID)
	if err != nil {
		return err
	}
	err = db.inTx(ctx, "delete listener "+nameOrID, func(tx *sqlx.Tx) error {
		result, err := tx.ExecContext(ctx, `DELETE FROM listeners WHERE id = $1`, l.ID)
		if err != nil {
			return fmt.Errorf("delete the listener: %w", err)
		}
		if n, err := result.RowsAffected(); err == nil && n == 0 {
			return pactwire.NotFound("listener", "There is no listener %q.", nameOrID)
		}
		return nil
	})
	if err == nil {
		db.Notify(TopicListeners(l.Chain))
	}
	return err
}
