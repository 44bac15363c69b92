package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"

	pactwire "github.com/pactwire/pactwire"
)

// API is a named HTTP API for a contract interface, optionally bound to a contract on the chain.
type API struct {
	Namespace string     `db:"namespace"`
	ID        uuid.UUID  `db:"id"`
	Name      string     `db:"name"`
	Interface uuid.UUID  `db:"interface"`
	Location  []byte     `db:"location"` // contract address; nil when each request brings its own
	Author    string     `db:"author"`   // the account of the member that made it
	Message   uuid.UUID  `db:"message"`
	State     string     `db:"state"` // StateReady, StateConfirmed, StateRejected, StateReplaced
	Created   time.Time  `db:"created"`
	Updated   *time.Time `db:"updated"`
	Deleted   *time.Time `db:"deleted"` // this member's copy was deleted
}

const apiColumns = `namespace, id, name, interface, location, author, message, state, created, updated, deleted`

// API returns one API by its name or its id. A rejected one is found by its id only.
func (db *DB) API(ctx context.Context, namespace, nameOrID string) (API, error) {
	var a API
	var err error
	if id, bad := uuid.Parse(nameOrID); bad == nil {
		err = db.db.GetContext(ctx, &a, `
			SELECT `+apiColumns+` FROM apis WHERE namespace = $1 AND id = $2 AND state <> 'replaced' AND deleted IS NULL`, namespace, id)
	} else {
		err = db.db.GetContext(ctx, &a, `
			SELECT `+apiColumns+` FROM apis WHERE namespace = $1 AND name = $2 AND state IN ('ready', 'confirmed') AND deleted IS NULL
			ORDER BY state LIMIT 1`, namespace, nameOrID)
	}
	return a, missing(err, "api", nameOrID, "read API "+nameOrID)
}

// APIByMessage returns the API that a message broadcast, or changed last.
func (db *DB) APIByMessage(ctx context.Context, namespace string, message uuid.UUID) (API, error) {
	var a API
	err := db.db.GetContext(ctx, &a, `SELECT `+apiColumns+` FROM apis WHERE namespace = $1 AND message = $2`, namespace, message)
	return a, missing(err, "api", message.String(), "read the API of message "+message.String())
}

// DeleteAPI removes this member's copy. Its author may broadcast another API of the same name afterwards; to everybody else the name
// stays taken.
func (db *DB) DeleteAPI(ctx context.Context, namespace, nameOrID string) error {
	a, err := db.API(ctx, namespace, nameOrID)
	if err != nil {
		return err
	}
	_, err = db.db.ExecContext(ctx, `UPDATE apis SET deleted = $3 WHERE namespace = $1 AND id = $2 AND deleted IS NULL`, namespace, a.ID, Now())
	if err == nil {
		db.Notify(TopicAPIs(namespace))
	}
	return wrap(err, "delete API "+nameOrID)
}

func insertAPI(ctx context.Context, tx *sqlx.Tx, a *API) error {
	if err := lockLiveInterface(ctx, tx, a.Namespace, a.Interface); err != nil {
		return err
	}
	var owners []API
	err := tx.SelectContext(ctx, &owners, `
		SELECT `+apiColumns+` FROM apis WHERE namespace = $1 AND name = $2 AND state = 'confirmed'`, a.Namespace, a.Name)
	if err != nil {
		return fmt.Errorf("look for the name: %w", err)
	}
	for _, owner := range owners {
		if owner.Deleted == nil {
			return pactwire.Conflict("api_exists", "There is already an API %q.", a.Name)
		}
		if owner.Author != a.Author {
			return pactwire.Conflict("api_exists", "The name %q belongs to an API of another member.", a.Name)
		}
	}
	_, err = tx.NamedExecContext(ctx, `
		INSERT INTO apis (namespace, id, name, interface, location, author, message, state, created)
		VALUES (:namespace, :id, :name, :interface, NULLIF(CAST(:location AS bytea), ''), :author, :message, :state, :created)`, a)
	if err != nil {
		return fmt.Errorf("insert the API: %w", taken(err, "apis_ready", "api_exists", "There is already an API %q.", a.Name))
	}
	return nil
}

// event makes the history's entry about the confirmed API.
func (a *API) event(m *Message) (Event, error) {
	type reference struct {
		ID uuid.UUID `json:"id"`
	}
	type location struct {
		Address string `json:"address"`
	}
	body := struct {
		ID        uuid.UUID `json:"id"`
		Namespace string    `json:"namespace"`
		Name      string    `json:"name"`
		Interface reference `json:"interface"`
		Location  *location `json:"location,omitempty"`
		Message   uuid.UUID `json:"message"`
	}{ID: a.ID, Namespace: a.Namespace, Name: a.Name, Interface: reference{a.Interface}, Message: a.Message}
	if a.Location != nil {
		body.Location = &location{Account(a.Location)}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return Event{}, fmt.Errorf("encode API %s: %w", a.ID, err)
	}
	return definitionEvent(m, EventAPIConfirmed, a.ID, BodyAPI, string(text)), nil
}
