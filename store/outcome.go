package store

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// Outcome is the end of one operation.
type Outcome struct {
	Operation uuid.UUID
	Status    string           // OpSucceeded or OpFailed
	Output    *OperationOutput // nil when nothing was mined
	TxHash    *common.Hash     // of the transaction that was mined
	Error     string           // why it failed, one sentence
	Revert    *pactwire.Revert // what the contract said, if it reverted
}

// The rows of the outbox go, the operations end and the history tells it, in one statement, if the lease is still the owner's. An operation that has ended already
// is left as it is. What a retry needs stays with an invocation that failed. The histories are numbered as in sqlAppendHistory, after all the rest; the events come
// in the order of the outcomes, and the body of each is the operation as json.Marshal writes it.
const sqlFinishOperations = `
	WITH fence AS (
		SELECT epoch FROM leases WHERE name = $9 AND epoch = $10 FOR SHARE
	), ended AS (
		SELECT e.* FROM unnest(CAST($1 AS uuid[]), CAST($2 AS text[]), CAST($3 AS text[]), CAST($4 AS text[]), CAST($5 AS text[]), CAST($6 AS bytea[]),
			CAST($7 AS uuid[])) WITH ORDINALITY AS e (operation, status, output, error, revert, tx_hash, event, place), fence
	), gone AS (
		DELETE FROM outbox q USING ended e WHERE q.operation = e.operation
		RETURNING e.*, q.attempts, q.to_address, q.data, q.value, q.gas, q.options
	), done AS (
		UPDATE operations o SET status = g.status, output = g.output, error = g.error, revert = g.revert, tx_hash = NULLIF(g.tx_hash, ''),
			attempts = g.attempts, updated = $8,
			to_address = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.to_address END,
			data = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.data END,
			value = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.value END,
			gas = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.gas END,
			options = CASE WHEN g.status = 'Failed' AND o.type = 'blockchain_invoke' THEN g.options END
		FROM gone g
		WHERE o.id = g.operation AND o.status IN ('Initialized', 'Pending')
		RETURNING o.id, o.namespace, o.transaction, o.type, o.status, o.plugin, o.chain, o.key, o.input, o.output, o.error, o.revert, o.retry, o.created,
			o.updated, o.tx_hash, o.attempts, g.event, g.place
	), told AS (
		SELECT done.*, row_number() OVER (PARTITION BY namespace ORDER BY place) AS nth FROM done WHERE type = 'blockchain_invoke'
	), locked AS (
		SELECT name FROM namespaces WHERE name IN (SELECT namespace FROM told) ORDER BY name FOR UPDATE
	), numbered AS (
		UPDATE namespaces n SET sequence = n.sequence + t.events
		FROM locked l JOIN (SELECT namespace, count(*) AS events FROM told GROUP BY namespace) t ON t.namespace = l.name
		WHERE n.name = l.name RETURNING n.name, n.sequence - t.events AS before
	), appended AS (
		INSERT INTO events (namespace, sequence, id, type, reference, transaction, created, tx_type, body_key, body)
		SELECT t.namespace, n.before + t.nth, t.event,
			CASE t.status WHEN 'Succeeded' THEN '` + EventInvokeSucceeded + `' ELSE '` + EventInvokeFailed + `' END,
			t.id, t.transaction, t.updated, '` + TxInvoke + `', '` + BodyOperation + `',
			'{"id":"' || t.id || '","namespace":' || to_json(t.namespace) || ',"tx":"' || t.transaction || '","type":"' || t.type
				|| '","status":"' || t.status || '","plugin":' || to_json(t.plugin) || ',"input":' || t.input
				|| coalesce(',"output":' || t.output, '') || CASE t.error WHEN '' THEN '' ELSE ',"error":' || to_json(t.error) END
				|| coalesce(',"revert":' || t.revert, '') || coalesce(',"retry":"' || t.retry || '"', '')
				|| ',"created":"' || to_char(t.created AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
				|| '","updated":"' || to_char(t.updated AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') || '"}'
		FROM told t JOIN numbered n ON n.name = t.namespace
	)
	SELECT id, namespace, transaction, type, status, plugin, chain, key, input, output, error, revert, retry, created, updated, tx_hash, attempts,
		CAST(NULL AS bigint) AS nonce FROM done`

// FinishOperations ends operations, each with its event, all of them or none, and hands them to those who wait for them.
func (db *DB) FinishOperations(ctx context.Context, lease Lease, outcomes []Outcome) error {
	if len(outcomes) == 0 {
		return nil
	}
	doing := "finish operations"
	columns, err := outcomeColumns(outcomes)
	if err != nil {
		return wrap(err, doing)
	}
	finish, err := db.prepared(ctx, sqlFinishOperations)
	if err != nil {
		return wrap(err, doing)
	}
	var rows []operationRow
	if err := finish.SelectContext(ctx, &rows, append(columns, Now(), lease.Name, lease.Epoch)...); err != nil {
		return wrap(err, doing)
	}
	if len(rows) == 0 { // there was nothing to end but fillers, or the lease is lost
		return db.inTx(ctx, doing, func(tx *sqlx.Tx) error { return checkLease(ctx, tx, lease) })
	}
	ended := make([]Operation, len(rows))
	histories := map[string]bool{}
	for i := range rows {
		if ended[i], err = rows[i].operation(); err != nil {
			return wrap(err, doing)
		}
		if ended[i].Type == OpInvoke {
			histories[TopicHistory(ended[i].Namespace)] = true
		}
	}
	db.handOver(ended)
	db.NotifyOthers(TopicOutcomes)
	db.Notify(slices.Collect(maps.Keys(histories))...)
	return nil
}

// outcomeColumns are the first arguments of sqlFinishOperations.
func outcomeColumns(outcomes []Outcome) ([]any, error) {
	var operations, statuses, errs, events []string
	var outputs, reverts []*string
	var hashes pq.ByteaArray
	for i := range outcomes {
		o := &outcomes[i]
		operations, events = append(operations, o.Operation.String()), append(events, NewID().String())
		statuses = append(statuses, o.Status)
		errs = append(errs, storable(o.Error))
		var output, revert *string
		if o.Output != nil {
			text, err := json.Marshal(o.Output)
			if err != nil {
				return nil, fmt.Errorf("encode the output of operation %s: %w", o.Operation, err)
			}
			s := string(text)
			output = &s
		}
		if o.Revert != nil {
			text, err := json.Marshal(o.Revert)
			if err != nil {
				return nil, fmt.Errorf("encode the revert of operation %s: %w", o.Operation, err)
			}
			s := string(text)
			revert = &s
		}
		outputs, reverts = append(outputs, output), append(reverts, revert)
		var hash []byte // a nil element of the array is NULL
		if o.TxHash != nil {
			hash = o.TxHash.Bytes()
		}
		hashes = append(hashes, hash)
	}
	return []any{pq.Array(operations), pq.Array(statuses), pq.Array(outputs), pq.Array(errs), pq.Array(reverts), hashes, pq.Array(events)}, nil
}

// storable makes of a text that came from a chain or a node one that PostgreSQL keeps: valid UTF-8 without NUL.
func storable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}
