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

// Interface is a contract interface that was broadcast.
type Interface struct {
	Namespace   string     `db:"namespace"`
	ID          uuid.UUID  `db:"id"`
	Name        string     `db:"name"`
	Version     string     `db:"version"`
	Description string     `db:"description"`
	Author      string     `db:"author"` // the account of the member that made it
	Message     uuid.UUID  `db:"message"`
	State       string     `db:"state"`      // StateReady, StateConfirmed, StateRejected
	Definition  string     `db:"definition"` // the whole contract.Interface as JSON
	Created     time.Time  `db:"created"`
	Deleted     *time.Time `db:"deleted"` // this member's copy was deleted; the name stays taken
}

// Contract returns the definition, with methods, events and errors.
func (i *Interface) Contract() (contract.Interface, error) {
	var c contract.Interface
	if err := json.Unmarshal([]byte(i.Definition), &c); err != nil {
		return contract.Interface{}, fmt.Errorf("read the definition of interface %s: %w", i.ID, err)
	}
	return c, nil
}

const interfaceColumns = `namespace, id, name, version, description, author, message, state, definition, created, deleted`

// Interface returns one interface by its id.
func (db *DB) Interface(ctx context.Context, namespace string, id uuid.UUID) (Interface, error) {
	var i Interface
	err := db.db.GetContext(ctx, &i, `SELECT `+interfaceColumns+` FROM interfaces WHERE namespace = $1 AND id = $2 AND deleted IS NULL`,
		namespace, id)
	return i, missing(err, "interface", id.String(), "read interface "+id.String())
}

// InterfaceByMessage returns the interface that a message broadcast.
func (db *DB) InterfaceByMessage(ctx context.Context, namespace string, message uuid.UUID) (Interface, error) {
	var i Interface
	err := db.db.GetContext(ctx, &i, `SELECT `+interfaceColumns+` FROM interfaces WHERE namespace = $1 AND message = $2 AND deleted IS NULL`,
		namespace, message)
	return i, missing(err, "interface", message.String(), "read the interface of message "+message.String())
}

// InterfaceByName returns one interface by its name and version; a rejected one has neither.
func (db *DB) InterfaceByName(ctx context.Context, namespace, name, version string) (Interface, error) {
	var i Interface
	err := db.db.GetContext(ctx, &i, `
		SELECT `+interfaceColumns+` FROM interfaces
		WHERE namespace = $1 AND name = $2 AND version = $3 AND state <> 'rejected' AND deleted IS NULL`, namespace, name, version)
	return i, missing(err, "interface", name+"/"+version, "read interface "+name)
}

// DeleteInterface removes this member's copy, unless an API uses it. The network goes on knowing it: its name and version stay taken.
func (db *DB) DeleteInterface(ctx context.Context, namespace string, id uuid.UUID) error {
	return db.inTx(ctx, "delete interface "+id.String(), func(tx *sqlx.Tx) error {
		var i Interface
		err := tx.GetContext(ctx, &i, `
			SELECT `+interfaceColumns+` FROM interfaces WHERE namespace = $1 AND id = $2 AND deleted IS NULL FOR UPDATE`, namespace, id)
		if err != nil {
			return missing(err, "interface", id.String(), "read the interface")
		}
		var users []string
		err = tx.SelectContext(ctx, &users, `
			SELECT name FROM apis WHERE namespace = $1 AND interface = $2 AND deleted IS NULL AND state IN ('ready', 'confirmed')
			ORDER BY name LIMIT 1`, namespace, id)
		if err != nil {
			return fmt.Errorf("look for its APIs: %w", err)
		}
		if len(users) > 0 {
			return pactwire.Conflict("interface_in_use", "The API %q uses interface %s; delete the API first.", users[0], id)
		}
		if _, err := tx.ExecContext(ctx, `UPDATE interfaces SET deleted = $3 WHERE namespace = $1 AND id = $2`, namespace, id, Now()); err != nil {
			return fmt.Errorf("mark it: %w", err)
		}
		return nil
	})
}

func insertInterface(ctx context.Context, tx *sqlx.Tx, i *Interface) error {
	_, err := tx.NamedExecContext(ctx, `
		INSERT INTO interfaces (namespace, id, name, version, description, author, message, state, definition, created)
		VALUES (:namespace, :id, :name, :version, :description, :author, :message, :state, :definition, :created)`, i)
	if err != nil {
		err = taken(err, "interfaces_name", "interface_exists",
			"Version %q of interface %q was already broadcast; it cannot change. Use another version.", i.Version, i.Name)
		return fmt.Errorf("insert the interface: %w", err)
	}
	return nil
}

// lockLiveInterface makes sure that the interface is there and is not deleted until the transaction ends.
func lockLiveInterface(ctx context.Context, tx *sqlx.Tx, namespace string, id uuid.UUID) error {
	var state string
	err := tx.GetContext(ctx, &state, `SELECT state FROM interfaces WHERE namespace = $1 AND id = $2 AND deleted IS NULL FOR SHARE`, namespace, id)
	if err != nil {
		return missing(err, "interface", id.String(), "read interface "+id.String())
	}
	if state == StateRejected {
		return pactwire.Conflict("interface_rejected", "The network has rejected interface %s.", id)
	}
	return nil
}

// event makes the history's entry about the confirmed interface: the interface without its methods, events and errors.
func (i *Interface) event(m *Message) (Event, error) {
	body, err := json.Marshal(struct {
		ID          uuid.UUID `json:"id"`
		Message     uuid.UUID `json:"message"`
		Namespace   string    `json:"namespace"`
		Name        string    `json:"name"`
		Description string    `json:"description"`
		Version     string    `json:"version"`
	}{i.ID, i.Message, i.Namespace, i.Name, i.Description, i.Version})
	if err != nil {
		return Event{}, fmt.Errorf("encode interface %s: %w", i.ID, err)
	}
	return definitionEvent(m, EventInterfaceConfirmed, i.ID, BodyInterface, string(body)), nil
}

// definitionEvent makes the history's entry about a confirmed definition.
func definitionEvent(m *Message, kind string, reference uuid.UUID, key, body string) Event {
	topic := ""
	if len(m.Topics) > 0 {
		topic = m.Topics[0]
	}
	return Event{
		Namespace: m.Namespace, ID: NewID(), Type: kind, Reference: reference, Transaction: m.Transaction, Topic: topic, Created: Now(),
		TxType: optionalText(m.TxType), BodyKey: key, Body: body,
	}
}
