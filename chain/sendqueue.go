package chain

import (
	"sync"

	"github.com/ethereum/go-ethereum/common"
)

// outgoing is a transaction on its way to the node.
type outgoing struct {
	*inflight
	raw  []byte
	sent common.Hash // of raw; another one may have taken its place
}

// sendQueue holds what is to be sent, in order. What gathers while one message is under way goes out with the next one. It holds no more than what is in flight.
type sendQueue struct {
	mu      sync.Mutex
	waiting []*inflight
	newest  map[*inflight]*outgoing // what is signed for them now
	wake    chan struct{}
}

func newSendQueue() *sendQueue {
	return &sendQueue{newest: map[*inflight]*outgoing{}, wake: make(chan struct{}, 1)}
}

// put appends transactions. What waits already keeps its place, with the newer bytes.
func (q *sendQueue) put(batch []*outgoing) {
	if len(batch) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, out := range batch {
		if q.newest[out.inflight] == nil {
			q.waiting = append(q.waiting, out.inflight)
		}
		q.newest[out.inflight] = out
	}
	signal(q.wake)
}

// take removes the first n transactions.
func (q *sendQueue) take(n int) []*outgoing {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.waiting))
	batch := make([]*outgoing, n)
	for i, t := range q.waiting[:n] {
		batch[i] = q.newest[t]
		delete(q.newest, t)
	}
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	return batch
}
