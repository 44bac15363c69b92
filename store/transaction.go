package store

import (
	"context"
	"fmt"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"
	"github.com/lib/pq"
)

// The types of transactions.
const (
	TxInvoke = "contract_invoke"
	TxPin    = "batch_pin"
	TxDeploy = "contract_deploy"
)

// Transaction is what binds an operation to what it brought about: messages and events name it.
type Transaction struct {
	ID             uuid.UUID `db:"id" json:"id"`
	Namespace      string    `db:"namespace" json:"namespace"`
	Type           string    `db:"type" json:"type"`
	IdempotencyKey *string   `db:"idempotency_key" json:"idempotencyKey,omitempty"`
	Created        time.Time `db:"created" json:"created"`
	BlockchainIDs  []string  `db:"-" json:"blockchainIds,omitempty"` // hashes of the blockchain transactions mined or under way
}

// Transaction returns one transaction of the namespace.
func (db *DB) Transaction(ctx context.Context, ns string, id uuid.UUID) (Transaction, error) {
	var row struct {
		Transaction
		Hashes pq.ByteaArray `db:"hashes"`
	}
	err := db.db.GetContext(ctx, &row, `
		SELECT t.id, t.namespace, t.type, t.idempotency_key, t.created, ARRAY(
			SELECT COALESCE(o.tx_hash, q.tx_hash) FROM operations o LEFT JOIN outbox q ON q.operation = o.id
			WHERE o.transaction = t.id AND COALESCE(o.tx_hash, q.tx_hash) IS NOT NULL ORDER BY o.id) AS hashes
		FROM transactions t WHERE t.namespace = $1 AND t.id = $2`, ns, id)
	if err != nil {
		return Transaction{}, missing(err, "transaction", id.String(), fmt.Sprintf("read transaction %s", id))
	}
	for _, hash := range row.Hashes {
		row.BlockchainIDs = append(row.BlockchainIDs, common.BytesToHash(hash).Hex())
	}
	row.Created = row.Created.UTC()
	return row.Transaction, nil
}
