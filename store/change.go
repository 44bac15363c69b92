package store

import (
	"context"
	"encoding/json"
	"fmt"
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	pactwire "github.com/pactwire/pactwire"
)

// The changes of an operation that can be asked for while it is not mined.
const (
	ChangeCancel  = "cancel"
	ChangeSpeedUp = "speedup"
)

// ChangeRequest is what a client asks for. The one submitter of the operation's key answers it, so that it never races the giving of a nonce.
type ChangeRequest struct {
	Kind                 string   `json:"kind"`
	GasPrice             *big.Int `json:"gasPrice,omitempty"`
	MaxFeePerGas         *big.Int `json:"maxFeePerGas,omitempty"`
	MaxPriorityFeePerGas *big.Int `json:"maxPriorityFeePerGas,omitempty"`
}

// Fees are the fees asked for, as options of a transaction.
func (r ChangeRequest) Fees() TxOptions {
	return TxOptions{GasPrice: r.GasPrice, MaxFeePerGas: r.MaxFeePerGas, MaxPriorityFeePerGas: r.MaxPriorityFeePerGas}
}

// TopicChanges wakes the submitters of a chain when a change is asked for.
func TopicChanges(chain string) string { return "changes/" + chain }

// RequestChange notes a change of an operation that has not ended. A cancellation is not taken back by a later wish for more speed.
func (db *DB) RequestChange(ctx context.Context, ns string, id uuid.UUID, request ChangeRequest) error {
	var chain string
	err := db.inTx(ctx, "change operation "+id.String(), func(tx *sqlx.Tx) error {
		var row struct {
			Chain   string  `db:"chain"`
			Request *string `db:"request"`
		}
		err := tx.GetContext(ctx, &row, `
			SELECT q.chain, q.request FROM outbox q JOIN operations o ON o.id = q.operation WHERE o.namespace = $1 AND o.id = $2 FOR UPDATE OF q`, ns, id)
		if err != nil {
			return missing(err, "operation", id.String(), "read the outbox")
		}
		if row.Request != nil {
			var before ChangeRequest
			if err := json.Unmarshal([]byte(*row.Request), &before); err != nil {
				return fmt.Errorf("decode a request: %w", err)
			}
			if before.Kind == ChangeCancel {
				request.Kind = ChangeCancel
			}
		}
		text, err := json.Marshal(request)
		if err != nil {
			return fmt.Errorf("encode a request: %w", err)
		}
		chain = row.Chain
		if _, err := tx.ExecContext(ctx, `UPDATE outbox SET request = $2 WHERE operation = $1`, id, string(text)); err != nil {
			return fmt.Errorf("update the outbox: %w", err)
		}
		return nil
	})
	if pactwire.KindOf(err) == pactwire.KindNotFound { // it has ended, or was never there
		op, err := db.Operation(ctx, ns, id)
		if err != nil {
			return err
		}
		return pactwire.Conflict("operation_ended", "The operation has ended as %s; only what is not mined yet can be changed.", op.Status)
	}
	if err == nil {
		db.Notify(TopicChanges(chain))
	}
	return err
}

// RequestedOutbox returns the rows of the key that a change is asked of.
func (db *DB) RequestedOutbox(ctx context.Context, chain string, key common.Address, limit int) ([]OutboxCall, error) {
	return db.outboxCalls(ctx, sqlOutboxCall+`WHERE chain = $1 AND key = $2 AND request IS NOT NULL ORDER BY operation LIMIT $3`, chain, key.Bytes(), limit)
}

// AnswerRequest forgets a request; a newer one stays. With options, these are what the transaction shall be made with.
func (db *DB) AnswerRequest(ctx context.Context, lease Lease, call *OutboxCall, options *TxOptions) error {
	return db.inTx(ctx, "answer a request", func(tx *sqlx.Tx) error {
		if err := checkLease(ctx, tx, lease); err != nil {
			return err
		}
		text, err := optionsText(options)
		if err != nil {
			return err
		}
		_, err = tx.ExecContext(ctx, `
			UPDATE outbox SET request = NULLIF(request, $2), options = COALESCE(CAST($3 AS text), options) WHERE operation = $1`,
			call.Operation, call.request, text)
		if err != nil {
			return fmt.Errorf("update the outbox: %w", err)
		}
		return nil
	})
}

// Replacement is a newly signed transaction in the place of one that has its nonce.
type Replacement struct {
	Signed
	Answers *OutboxCall // the call whose request it answers; nil when nobody has asked
	Cancel  bool        // it cancels the operation
	Options *TxOptions  // new wishes for fees; nil: as before
}

// ReplaceSigned stores newly signed transactions for nonces that were given before.
func (db *DB) ReplaceSigned(ctx context.Context, lease Lease, replacements []Replacement) error {
	return db.inTx(ctx, "replace signed transactions", func(tx *sqlx.Tx) error {
		if err := checkLease(ctx, tx, lease); err != nil {
			return err
		}
		signed := make([]Signed, len(replacements))
		var cancels []bool
		var requests, options []*string
		for i, r := range replacements {
			signed[i] = r.Signed
			cancels = append(cancels, r.Cancel)
			text, err := optionsText(r.Options)
			if err != nil {
				return err
			}
			options = append(options, text)
			var request *string
			if r.Answers != nil {
				request = &r.Answers.request
			}
			requests = append(requests, request)
		}
		c := columnsOf(signed)
		_, err := tx.ExecContext(ctx, `
			UPDATE outbox SET raw = s.raw, tx_hash = s.tx_hash, tx_hashes = outbox.tx_hashes || s.tx_hash, attempts = outbox.attempts || s.attempt,
				cancel_at = CASE WHEN s.cancel THEN COALESCE(outbox.cancel_at, cardinality(outbox.tx_hashes)) ELSE outbox.cancel_at END,
				request = NULLIF(outbox.request, s.request), options = COALESCE(s.options, outbox.options)
			FROM unnest(CAST($1 AS uuid[]), CAST($2 AS bigint[]), CAST($3 AS bytea[]), CAST($4 AS bytea[]), CAST($5 AS text[]), CAST($6 AS boolean[]),
				CAST($7 AS text[]), CAST($8 AS text[])) AS s (operation, nonce, raw, tx_hash, attempt, cancel, request, options)
			WHERE outbox.operation = s.operation AND outbox.nonce = s.nonce`,
			c.operations, pq.Array(c.nonces), c.raw, c.hashes, c.attempts, pq.Array(cancels), pq.Array(requests), pq.Array(options))
		if err != nil {
			return fmt.Errorf("update the outbox: %w", err)
		}
		return nil
	})
}

func optionsText(options *TxOptions) (*string, error) {
	if options == nil {
		return nil, nil //nolint:nilnil // NULL
	}
	text, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encode the options: %w", err)
	}
	s := string(text)
	return &s, nil
}
