package store

import "context"

// The collections of the API, with the fields that they can be filtered and sorted by.

var (
	textColumn = func(sql string) column { return column{sql, "text"} }
	idColumn   = func(sql string) column { return column{sql, "uuid"} }
	timeColumn = func(sql string) column { return column{sql, "timestamptz"} }
)

var interfaceListing = listing{
	resource: "interface", columns: interfaceColumns, from: "interfaces", where: "namespace = $1 AND deleted IS NULL", key: idColumn("id"),
	fields: map[string]column{
		"id": idColumn("id"), "name": textColumn("name"), "version": textColumn("version"), "message": idColumn("message"),
		"state": textColumn("state"), "created": timeColumn("created"),
	},
}

// ListInterfaces returns a page of the namespace's interfaces.
func (db *DB) ListInterfaces(ctx context.Context, namespace string, p Page) ([]Interface, PageInfo, error) {
	return list[Interface](ctx, db, interfaceListing, namespace, p)
}

var apiListing = listing{
	resource: "API", columns: apiColumns, from: "apis", where: "namespace = $1 AND deleted IS NULL AND state <> 'replaced'", key: idColumn("id"),
	fields: map[string]column{
		"id": idColumn("id"), "name": textColumn("name"), "interface": idColumn("interface"), "message": idColumn("message"),
		"state": textColumn("state"), "created": timeColumn("created"),
	},
}

// ListAPIs returns a page of the namespace's APIs.
func (db *DB) ListAPIs(ctx context.Context, namespace string, p Page) ([]API, PageInfo, error) {
	return list[API](ctx, db, apiListing, namespace, p)
}

var listenerListing = listing{
	resource: "listener", columns: listenerColumns, from: "listeners", where: "namespace = $1", key: idColumn("id"),
	fields: map[string]column{
		"id": idColumn("id"), "name": textColumn("name"), "topic": textColumn("topic"), "signature": textColumn("signature"),
		"protocolId": textColumn("protocol_id"), "created": timeColumn("created"),
	},
	match: map[string]string{
		"interface": "interface = CAST(%s AS uuid)", "location": "address = decode(substr(CAST(%s AS text), 3), 'hex')",
	},
}

// ListListeners returns a page of the namespace's listeners.
func (db *DB) ListListeners(ctx context.Context, namespace string, p Page) ([]Listener, PageInfo, error) {
	return list[Listener](ctx, db, listenerListing, namespace, p)
}

var subscriptionListing = listing{
	resource: "subscription", columns: subscriptionColumns, from: "subscriptions", where: "namespace = $1", key: idColumn("id"),
	fields: map[string]column{
		"id": idColumn("id"), "name": textColumn("name"), "transport": textColumn("transport"), "created": timeColumn("created"),
	},
}

// ListSubscriptions returns a page of the namespace's subscriptions.
func (db *DB) ListSubscriptions(ctx context.Context, namespace string, p Page) ([]Subscription, PageInfo, error) {
	return list[Subscription](ctx, db, subscriptionListing, namespace, p)
}

var eventListing = listing{
	resource: "event", columns: `namespace, sequence, id, type, reference, transaction, topic, created, listener, name, author, tag, "group", topics,
		tx_type, body_key, body`,
	from: "events", where: "namespace = $1", key: column{"sequence", "bigint"},
	fields: map[string]column{
		"id": idColumn("id"), "sequence": {"sequence", "bigint"}, "type": textColumn("type"), "reference": idColumn("reference"),
		"topic": textColumn("topic"), "created": timeColumn("created"),
	},
	match: map[string]string{"tx": "transaction = CAST(%s AS uuid)"},
}

// ListEvents returns a page of the namespace's history.
func (db *DB) ListEvents(ctx context.Context, namespace string, p Page) ([]Event, PageInfo, error) {
	return list[Event](ctx, db, eventListing, namespace, p)
}

var blockchainEventListing = listing{
	resource: "blockchain event", columns: blockchainEventColumns,
	from:  "blockchain_events b LEFT JOIN events e ON e.namespace = b.namespace AND e.sequence = b.sequence",
	where: "b.namespace = $1", key: column{"b.sequence", "bigint"},
	fields: map[string]column{
		"id": idColumn("b.id"), "name": textColumn("b.name"), "listener": idColumn("b.listener"), "protocolId": textColumn("b.protocol_id"),
		"timestamp": timeColumn("b.timestamp"), "sequence": {"b.sequence", "bigint"},
	},
	match: map[string]string{"tx.blockchainId": "b.tx_hash = decode(substr(CAST(%s AS text), 3), 'hex')"},
}

// ListBlockchainEvents returns a page of the namespace's records.
func (db *DB) ListBlockchainEvents(ctx context.Context, namespace string, p Page) ([]BlockchainEvent, PageInfo, error) {
	return list[BlockchainEvent](ctx, db, blockchainEventListing, namespace, p)
}

var messageListing = listing{
	resource: "message", columns: messageColumns, from: "messages", where: "namespace = $1", key: idColumn("id"),
	fields: map[string]column{
		"id": idColumn("id"), "state": textColumn("state"), "author": textColumn("author"), "tag": textColumn("tag"), "type": textColumn("type"),
		"created": timeColumn("created"),
	},
	match: map[string]string{"batch": "batch = CAST(%s AS uuid)", "topics": "%s = ANY (topics)"},
}

// ListMessages returns a page of the namespace's messages.
func (db *DB) ListMessages(ctx context.Context, namespace string, p Page) ([]Message, PageInfo, error) {
	return list[Message](ctx, db, messageListing, namespace, p)
}

var operationListing = listing{
	resource: "operation", columns: operationColumns, from: operationTables, where: "o.namespace = $1", key: idColumn("o.id"),
	fields: map[string]column{
		"id": idColumn("o.id"), "tx": idColumn("o.transaction"), "type": textColumn("o.type"), "status": textColumn("o.status"),
		"created": timeColumn("o.created"), "updated": timeColumn("o.updated"),
	},
}

// ListOperations returns a page of the namespace's operations.
func (db *DB) ListOperations(ctx context.Context, namespace string, p Page) ([]Operation, PageInfo, error) {
	rows, info, err := list[operationRow](ctx, db, operationListing, namespace, p)
	if err != nil {
		return nil, info, err
	}
	operations := make([]Operation, 0, len(rows))
	for i := range rows {
		op, err := rows[i].operation()
		if err != nil {
			return nil, info, err
		}
		operations = append(operations, op)
	}
	return operations, info, nil
}
