package store

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// define puts the message's definition, if it has one, into force. It returns the event about it, or the reason why it is not.
func (p *PinnedMessage) define(ctx context.Context, tx *sqlx.Tx) (*Event, string, error) {
	var event Event
	var err error
	reason := p.Invalid
	switch {
	case reason != "":
	case p.Interface != nil:
		if reason, err = confirmInterface(ctx, tx, p.Interface); err == nil && reason == "" {
			event, err = p.Interface.event(&p.Message)
		}
	case p.API != nil:
		if reason, err = confirmAPI(ctx, tx, p.API); err == nil && reason == "" {
			event, err = p.API.event(&p.Message)
		}
	default:
		return nil, "", nil
	}
	if err != nil {
		return nil, "", err
	}
	if reason != "" {
		return nil, reason, rejectOptimistic(ctx, tx, &p.Message)
	}
	return &event, "", nil
}

// rejectOptimistic takes this member's own copy of a definition back that the network's order has rejected.
func rejectOptimistic(ctx context.Context, tx *sqlx.Tx, m *Message) error {
	for _, table := range []string{"interfaces", "apis"} {
		_, err := tx.ExecContext(ctx, `UPDATE `+table+` SET state = 'rejected' WHERE namespace = $1 AND message = $2 AND state = 'ready'`,
			m.Namespace, m.ID)
		if err != nil {
			return fmt.Errorf("reject the own copy: %w", err)
		}
	}
	return nil
}

// confirmInterface puts an interface into force unless its id, or its name and version, are taken in the network's order.
func confirmInterface(ctx context.Context, tx *sqlx.Tx, i *Interface) (string, error) {
	var taken []Interface
	err := tx.SelectContext(ctx, &taken, `
		SELECT `+interfaceColumns+` FROM interfaces
		WHERE namespace = $1 AND state = 'confirmed' AND (id = $2 OR (name = $3 AND version = $4))
		ORDER BY id = $2 FOR UPDATE`,
		i.Namespace, i.ID, i.Name, i.Version)
	if err != nil {
		return "", fmt.Errorf("look for the interface's name: %w", err)
	}
	if len(taken) > 0 {
		if other := &taken[0]; other.ID != i.ID {
			return fmt.Sprintf("version %q of interface %q was broadcast before, by %s", i.Version, i.Name, other.Author), nil
		}
		return fmt.Sprintf("the interface id %s is taken", i.ID), nil
	}
	// A copy of this member's own that was not confirmed in time has lost the name.
	_, err = tx.ExecContext(ctx, `
		UPDATE interfaces SET state = 'rejected' WHERE namespace = $1 AND name = $2 AND version = $3 AND state = 'ready' AND id <> $4`,
		i.Namespace, i.Name, i.Version, i.ID)
	if err != nil {
		return "", fmt.Errorf("reject the copy that came too late: %w", err)
	}
	i.State = StateConfirmed
	_, err = tx.NamedExecContext(ctx, `
		INSERT INTO interfaces (namespace, id, name, version, description, author, message, state, definition, created)
		VALUES (:namespace, :id, :name, :version, :description, :author, :message, :state, :definition, :created)
		ON CONFLICT (namespace, id) DO UPDATE SET name = excluded.name, version = excluded.version, description = excluded.description,
			author = excluded.author, message = excluded.message, state = excluded.state, definition = excluded.definition`, i)
	if err != nil {
		return "", fmt.Errorf("write the interface: %w", err)
	}
	return "", nil
}

// confirmAPI puts an API into force: a new one, a newer version of one of its author's, or one that replaces another of its author's under the same name.
func confirmAPI(ctx context.Context, tx *sqlx.Tx, a *API) (string, error) {
	var known []string
	err := tx.SelectContext(ctx, &known, `SELECT state FROM interfaces WHERE namespace = $1 AND id = $2 AND state = 'confirmed'`,
		a.Namespace, a.Interface)
	if err != nil {
		return "", fmt.Errorf("look for the API's interface: %w", err)
	}
	if len(known) == 0 {
		return fmt.Sprintf("interface %s is not confirmed", a.Interface), nil
	}
	var others []API
	err = tx.SelectContext(ctx, &others, `
		SELECT `+apiColumns+` FROM apis
		WHERE namespace = $1 AND ((id = $2 AND state IN ('confirmed', 'replaced')) OR (name = $3 AND state = 'confirmed')) FOR UPDATE`,
		a.Namespace, a.ID, a.Name)
	if err != nil {
		return "", fmt.Errorf("look for the API's name: %w", err)
	}
	for i := range others {
		other := &others[i]
		switch {
		case other.Author != a.Author && other.ID == a.ID:
			return fmt.Sprintf("API %s belongs to %s", a.ID, other.Author), nil
		case other.Author != a.Author:
			return fmt.Sprintf("the API name %q belongs to %s", a.Name, other.Author), nil
		case other.ID == a.ID && other.State == StateReplaced:
			return fmt.Sprintf("API %s was replaced by another one of the same name", a.ID), nil
		case other.ID == a.ID && (other.Name != a.Name || string(other.Location) != string(a.Location)):
			return fmt.Sprintf("API %s cannot change its name or its location", a.ID), nil
		case other.ID == a.ID:
			now := Now()
			a.Updated = &now
		}
	}
	_, err = tx.ExecContext(ctx, `
		UPDATE apis SET state = CASE state WHEN 'ready' THEN 'rejected' ELSE 'replaced' END
		WHERE namespace = $1 AND name = $2 AND id <> $3 AND (state = 'confirmed' OR (state = 'ready' AND author <> $4))`,
		a.Namespace, a.Name, a.ID, a.Author)
	if err != nil {
		return "", fmt.Errorf("replace the API: %w", err)
	}
	a.State = StateConfirmed
	_, err = tx.NamedExecContext(ctx, `
		INSERT INTO apis (namespace, id, name, interface, location, author, message, state, created, updated)
		VALUES (:namespace, :id, :name, :interface, NULLIF(CAST(:location AS bytea), ''), :author, :message, :state, :created, :updated)
		ON CONFLICT (namespace, id) DO UPDATE SET name = excluded.name, interface = excluded.interface, location = excluded.location,
			author = excluded.author, message = excluded.message, state = excluded.state, updated = excluded.updated`, a)
	if err != nil {
		return "", fmt.Errorf("write the API: %w", err)
	}
	// An API in use needs its interface, also where this member has deleted its copy of that.
	_, err = tx.ExecContext(ctx, `
		UPDATE interfaces SET deleted = NULL WHERE namespace = $1 AND id = $2 AND deleted IS NOT NULL
			AND EXISTS (SELECT 1 FROM apis WHERE namespace = $1 AND id = $3 AND deleted IS NULL)`, a.Namespace, a.Interface, a.ID)
	if err != nil {
		return "", fmt.Errorf("bring the API's interface back: %w", err)
	}
	return "", nil
}
