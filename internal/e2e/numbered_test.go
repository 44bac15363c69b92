package e2e

import (
	"encoding/json"
	"math/big"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/core/types"
	"github.com/google/uuid"
	"github.com/gorilla/websocket"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/gen"
)

// emitter has the storage emit the events 1, 2, 3 … until it is stopped. It writes to the chain directly: what is tested is that they are heard.
type emitter struct {
	c    *cluster
	mu   sync.Mutex // held while the chain is away
	last int
	quit chan struct{}
	done chan struct{}
}

// emitNumbers emits one event in each interval.
func emitNumbers(c *cluster, interval time.Duration) *emitter {
	e := &emitter{c: c, quit: make(chan struct{}), done: make(chan struct{})}
	nonce, err := c.chain.Client().PendingNonceAt(c.t.Context(), c.chain.Accounts[2].Address)
	must(c.t, err)
	go func() {
		defer close(e.done)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-e.quit:
				return
			case <-tick.C:
			}
			e.mu.Lock()
			if e.send(nonce, e.last+1) {
				nonce++
				e.last++
			}
			e.mu.Unlock()
		}
	}()
	return e
}

func (e *emitter) send(nonce uint64, number int) bool {
	data, err := contracts.SimpleStorage().Parsed.Pack("set", big.NewInt(int64(number)))
	if err != nil {
		e.c.t.Errorf("encode the call: %v", err)
		return false
	}
	tx, err := types.SignNewTx(e.c.chain.Accounts[2].Key, types.LatestSignerForChainID(big.NewInt(devnet.ChainID)), &types.DynamicFeeTx{
		ChainID: big.NewInt(devnet.ChainID), Nonce: nonce, To: &e.c.storage, Data: data, Gas: 200_000, GasTipCap: big.NewInt(1), GasFeeCap: big.NewInt(1_000_000_000),
	})
	if err != nil {
		e.c.t.Errorf("sign: %v", err)
		return false
	}
	if err := e.c.chain.Client().SendTransaction(e.c.t.Context(), tx); err != nil {
		e.c.t.Logf("emit %d: %v", number, err) // it is sent again
		return false
	}
	return true
}

// stop returns the number of the last event.
func (e *emitter) stop() int {
	close(e.quit)
	<-e.done
	return e.last
}

// receivedEvent is a line of the consumer's log.
type receivedEvent struct {
	number   int
	sequence int64
	id       uuid.UUID
}

// stubborn consumes the durable subscription "app" through any replica that serves it, and acknowledges each event after it has written it to its log.
type stubborn struct {
	t    *testing.T
	urls []string
	quit chan struct{}
	done chan struct{}

	mu          sync.Mutex
	log         []receivedEvent
	connections int
}

// readAhead is that of the subscription.
const readAhead = 20

// ackBehind is how many events the consumer has in flight.
const ackBehind = 5

// silence is how long the consumer waits for a frame before it tries another replica.
const silence = 3 * time.Second

func consumeNumbers(c *cluster) *stubborn {
	s := &stubborn{t: c.t, quit: make(chan struct{}), done: make(chan struct{})}
	for _, r := range c.replicas {
		s.urls = append(s.urls, "ws://"+r.front.listen+"/ws?namespace=default&name=app")
	}
	go func() {
		defer close(s.done)
		for i := 0; ; i++ {
			select {
			case <-s.quit:
				return
			case <-time.After(20 * time.Millisecond): // an application's own pause before it connects again
			}
			s.connection(s.urls[i%len(s.urls)])
		}
	}()
	return s
}

// connection receives until the connection breaks, or gives nothing for a while.
func (s *stubborn) connection(url string) {
	dialer := websocket.Dialer{HandshakeTimeout: silence}
	socket, response, err := dialer.Dial(url, nil)
	if err != nil {
		return
	}
	response.Body.Close()
	defer socket.Close()
	s.mu.Lock()
	s.connections++
	s.mu.Unlock()
	sequence := int64(0)
	late := make([]uuid.UUID, 0, 2*ackBehind)
	for {
		select {
		case <-s.quit:
			return
		default:
		}
		if err := socket.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return
		}
		_, frame, err := socket.ReadMessage()
		if err != nil {
			return
		}
		var e gen.Event
		if err := json.Unmarshal(frame, &e); err != nil {
			s.t.Errorf("a frame that is no event: %s", frame)
			return
		}
		if e.Type == "protocol_error" { // a late acknowledgement of what is due to come again
			continue
		}
		var output struct{ Value string }
		if e.Blockchainevent == nil || json.Unmarshal(e.Blockchainevent.Output, &output) != nil {
			s.t.Errorf("not a contract event: %s", frame)
			return
		}
		number, err := strconv.Atoi(output.Value)
		if err != nil {
			s.t.Errorf("not a number: %s", frame)
			return
		}
		// Only what was in flight comes again when the service had to take the subscription up anew on a connection that stayed.
		if e.Sequence <= sequence-ackBehind-readAhead {
			s.t.Errorf("sequence %d came after %d on one connection", e.Sequence, sequence)
		}
		sequence = max(sequence, e.Sequence)
		s.mu.Lock()
		s.log = append(s.log, receivedEvent{number, e.Sequence, e.ID})
		s.mu.Unlock()
		// Acknowledged a little late, so that something is always in flight when a connection breaks.
		if late = append(late, e.ID); len(late) <= ackBehind {
			continue
		}
		if err := socket.WriteJSON(map[string]string{"type": "ack", "id": late[0].String()}); err != nil {
			return
		}
		late = late[1:]
	}
}

// last is the highest number in the log.
func (s *stubborn) last() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	highest := 0
	for i := range s.log {
		highest = max(highest, s.log[i].number)
	}
	return highest
}

// String shows the end of the log.
func (s *stubborn) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	text := "the consumer's log ends with"
	for _, e := range s.log[max(0, len(s.log)-5):] {
		text += " " + strconv.Itoa(e.number)
	}
	return text
}

// finish waits until the event with the last number has come, and checks the log: without redeliveries it is 1, 2, 3 … in order, and a redelivery is the very
// event that came before.
func (s *stubborn) finish(last int) {
	s.t.Helper()
	eventually(s.t, 2*time.Minute, "all "+strconv.Itoa(last)+" events arrive", func() bool { return s.last() >= last }, s)
	close(s.quit)
	<-s.done
	again, next := 0, 1
	seen := map[int]receivedEvent{}
	for _, e := range s.log {
		if before, ok := seen[e.number]; ok {
			if before != e {
				s.t.Errorf("event %d came as %+v and as %+v", e.number, before, e)
			}
			again++
			continue
		}
		if e.number != next {
			s.t.Errorf("event %d came where %d was due", e.number, next)
		}
		seen[e.number], next = e, e.number+1
	}
	if len(seen) != last {
		s.t.Errorf("%d different events came, want %d", len(seen), last)
	}
	s.t.Logf("%d events, %d redeliveries, %d connections", last, again, s.connections)
}
