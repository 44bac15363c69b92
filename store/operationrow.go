package store

import (
	"github.com/google/uuid"
	"github.com/lib/pq"
)

// newOperationRow is what an accepted operation leaves in the tables.
type newOperationRow struct {
	transaction, operation                                        uuid.UUID
	namespace, txType, kind, chain, created, input, custom, value string
	options                                                       string
	idempotencyKey                                                *string
	bodyHash, key, to, data                                       []byte // of a contract creation, to is empty
	gas                                                           int64

	nonce   *int64 // what follows is there when it is accepted with its nonce and its signature
	raw     []byte
	hash    []byte
	attempt string
}

func (r *newOperationRow) sign(s *Signed) {
	nonce := int64(s.Nonce) //nolint:gosec // nonces are below 2^63
	r.nonce, r.raw, r.hash, r.attempt = &nonce, s.Raw, s.Hash.Bytes(), s.Attempt.encode()
}

// operationArguments are the arguments of sqlStoreOperations: the rows column by column.
func operationArguments(rows []newOperationRow) []any {
	var text [13][]string
	var idempotencyKeys []*string
	var binary [6]pq.ByteaArray
	var gas []int64
	var nonces []*int64
	for i := range rows {
		r := &rows[i]
		for column, value := range [...]string{
			r.transaction.String(), r.namespace, r.txType, r.created, r.operation.String(), r.kind, pluginEthereum, r.chain, r.input, r.custom, r.value, r.options,
			r.attempt,
		} {
			text[column] = append(text[column], value)
		}
		for column, value := range [...][]byte{r.bodyHash, r.key, r.to, r.data, r.raw, r.hash} {
			binary[column] = append(binary[column], value)
		}
		idempotencyKeys, gas, nonces = append(idempotencyKeys, r.idempotencyKey), append(gas, r.gas), append(nonces, r.nonce)
	}
	return []any{
		pq.Array(text[0]), pq.Array(text[1]), pq.Array(text[2]), pq.Array(idempotencyKeys), binary[0], pq.Array(text[3]), pq.Array(text[4]),
		pq.Array(text[5]), pq.Array(text[6]), pq.Array(text[7]), binary[1], pq.Array(text[8]), pq.Array(text[9]), binary[2], binary[3], pq.Array(text[10]),
		pq.Array(gas), pq.Array(text[11]), pq.Array(nonces), binary[4], binary[5], pq.Array(text[12]),
	}
}
