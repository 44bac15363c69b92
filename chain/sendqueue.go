package chain

import "sync"

// outgoing is a transaction on its way to the node.
type outgoing struct {
	*inflight
	raw []byte
}

// sendQueue holds what is to be sent, in order. What gathers while one message is under way goes out with the next one. It holds no more than what is in flight.
type sendQueue struct {
	mu      sync.Mutex
	waiting []*inflight
	raw     map[*inflight][]byte // what is signed for them now
	wake    chan struct{}
}

func newSendQueue() *sendQueue {
	return &sendQueue{raw: map[*inflight][]byte{}, wake: make(chan struct{}, 1)}
}

// put appends transactions. What waits already keeps its place, with the newer bytes.
func (q *sendQueue) put(batch []*outgoing) {
	if len(batch) == 0 {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, out := range batch {
		if _, waits := q.raw[out.inflight]; !waits {
			q.waiting = append(q.waiting, out.inflight)
		}
		q.raw[out.inflight] = out.raw
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
		batch[i] = &outgoing{inflight: t, raw: q.raw[t]}
		delete(q.raw, t)
	}
	rest := copy(q.waiting, q.waiting[n:])
	clear(q.waiting[rest:])
	q.waiting = q.waiting[:rest]
	return batch
}
