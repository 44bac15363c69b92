package store

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"
)

// channel is the one PostgreSQL channel; the payload is "<process> <topic>".
const channel = "pactwire"

// Processes tell each other that they are there. Who has heard of nobody for a while notifies nobody: most installations have one process, and each NOTIFY is a
// transaction.
const (
	topicHere   = "here"
	hereEvery   = 10 * time.Second
	hereExpires = 25 * time.Second
	hereAnswer  = 2 * time.Second // how long others may take to say that they are there
)

// TopicOutcomes tells other processes that operations have ended.
const TopicOutcomes = "outcomes"

// Topics that are waited for.
func TopicHistory(namespace string) string       { return "history/" + namespace }       // the history has grown
func TopicOutbox(chain string) string            { return "outbox/" + chain }            // there is something to submit
func TopicPins(chain string) string              { return "pins/" + chain }              // pins wait for the aggregator
func TopicMessages(namespace string) string      { return "messages/" + namespace }      // messages wait for the publisher
func TopicListeners(chain string) string         { return "listeners/" + chain }         // a listener was made or deleted
func TopicAPIs(namespace string) string          { return "apis/" + namespace }          // an API was made, changed or deleted
func TopicLease(name string) string              { return "lease/" + name }              // a lease was given back
func TopicSubscriptions(namespace string) string { return "subscriptions/" + namespace } // one was changed or deleted

// Notifier wakes those who wait for a topic: in this process at once, in others through NOTIFY. It is no record of anything: a wake-up may be
// lost when the database connection breaks, so whoever waits polls as well.
//
// NOTIFY is sent by one goroutine on its own, after the commit, and not inside the transactions: a transaction with a NOTIFY holds a lock of
// the whole database during its commit, and would rob concurrent writers of their shared flush.
type Notifier struct {
	url     string
	db      *sqlx.DB
	log     *slog.Logger
	process string

	mu      sync.Mutex
	waiting map[string]map[*Wakeup]struct{}
	dirty   map[string]struct{}
	others  map[string]time.Time // when each other process was last heard of
	deaf    time.Time            // until then there may be others that were not heard; zero: for as long as nothing is heard at all
	kick    chan struct{}
	counts  map[string]*atomic.Uint64 // of the topics that somebody counts
}

// Wakeup receives at most one pending signal for a topic.
type Wakeup struct {
	C     <-chan struct{}
	c     chan struct{}
	topic string
	n     *Notifier
}

func newNotifier(url string, db *sqlx.DB, log *slog.Logger) *Notifier {
	return &Notifier{
		url: url, db: db, log: log, process: uuid.NewString(),
		waiting: map[string]map[*Wakeup]struct{}{}, dirty: map[string]struct{}{}, others: map[string]time.Time{}, kick: make(chan struct{}, 1),
		counts: map[string]*atomic.Uint64{},
	}
}

// Subscribe returns a Wakeup for the topic. Close it when it is no longer needed.
func (n *Notifier) Subscribe(topic string) *Wakeup {
	c := make(chan struct{}, 1)
	w := &Wakeup{C: c, c: c, topic: topic, n: n}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting[topic] == nil {
		n.waiting[topic] = map[*Wakeup]struct{}{}
	}
	n.waiting[topic][w] = struct{}{}
	return w
}

// Close ends the subscription.
func (w *Wakeup) Close() {
	w.n.mu.Lock()
	defer w.n.mu.Unlock()
	delete(w.n.waiting[w.topic], w)
	if len(w.n.waiting[w.topic]) == 0 {
		delete(w.n.waiting, w.topic)
	}
}

// Changes counts how often a topic was notified, for caches: what was read while the count stood where it stands now is still true. Within this process
// the count has grown when the method that made the change returns. From other processes it grows when their notification arrives, which may be
// never: a cache needs an age as well.
func (n *Notifier) Changes(topic string) *atomic.Uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counts[topic] == nil {
		n.counts[topic] = new(atomic.Uint64)
	}
	return n.counts[topic]
}

// Notify wakes everybody who waits for one of the topics. Call it after the commit.
func (n *Notifier) Notify(topics ...string) {
	n.mu.Lock()
	for _, topic := range topics {
		n.wake(topic)
		n.dirty[topic] = struct{}{}
	}
	n.mu.Unlock()
	n.kickSender()
}

// NotifyOthers is Notify for other processes alone: those in this one have been told otherwise.
func (n *Notifier) NotifyOthers(topic string) {
	n.mu.Lock()
	n.dirty[topic] = struct{}{}
	n.mu.Unlock()
	n.kickSender()
}

func (n *Notifier) kickSender() {
	select {
	case n.kick <- struct{}{}:
	default:
	}
}

// wake counts the change and signals the topic's local subscribers. n.mu is held.
func (n *Notifier) wake(topic string) {
	if count := n.counts[topic]; count != nil {
		count.Add(1)
	}
	for w := range n.waiting[topic] {
		select {
		case w.c <- struct{}{}:
		default:
		}
	}
}

func (n *Notifier) wakeAll() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for topic := range n.waiting {
		n.wake(topic)
	}
	for _, count := range n.counts {
		count.Add(1)
	}
}

// Run carries notifications between processes until ctx ends.
func (n *Notifier) Run(ctx context.Context) error {
	listener := pq.NewDialListener(dialer{silence: 75 * time.Second}, n.url, 100*time.Millisecond, 5*time.Second, func(event pq.ListenerEventType, err error) {
		if event == pq.ListenerEventDisconnected {
			n.mu.Lock()
			n.deaf = time.Time{}
			n.mu.Unlock()
		}
		if err != nil {
			n.log.WarnContext(ctx, "notification connection", "event", int(event), "error", err)
		}
	})
	defer func() {
		_ = listener.Close()
		// The listener ends once nobody keeps it from handing over what it has received; that may take it a moment.
		go func() {
			for range listener.Notify { //nolint:revive // emptied
			}
		}()
	}()
	listening := make(chan struct{})
	go func() {
		// Listen blocks until the first connection stands; Close ends the wait.
		if err := listener.Listen(channel); err != nil {
			if ctx.Err() == nil {
				n.log.WarnContext(ctx, "listen for notifications", "error", err)
			}
			return
		}
		close(listening)
	}()
	ping, here := time.NewTicker(30*time.Second), time.NewTicker(hereEvery)
	defer ping.Stop()
	defer here.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-listening:
			listening = nil
			n.greet()
		case note := <-listener.Notify:
			if note == nil { // the connection was made anew: anything may have been missed
				n.greet()
				n.wakeAll()
				continue
			}
			if process, topic, ok := strings.Cut(note.Extra, " "); ok && process != n.process {
				n.hear(process, topic)
			}
		case <-n.kick:
			n.send(ctx)
		case <-here.C:
			n.NotifyOthers(topicHere)
		case <-ping.C:
			go func() { _ = listener.Ping() }() // a dead connection is noticed by it, and made anew
		}
	}
}

// greet asks who else is there, now that answers can be heard.
func (n *Notifier) greet() {
	n.mu.Lock()
	n.deaf = time.Now().Add(hereAnswer)
	n.mu.Unlock()
	n.NotifyOthers(topicHere)
}

// hear takes up what another process has said.
func (n *Notifier) hear(process, topic string) {
	n.mu.Lock()
	_, known := n.others[process]
	n.others[process] = time.Now()
	if topic != topicHere {
		n.wake(topic)
	}
	n.mu.Unlock()
	if !known { // it does not know of this one either
		n.NotifyOthers(topicHere)
	}
}

// alone tells whether no other process is known to be there. n.mu is held.
func (n *Notifier) alone(now time.Time) bool {
	for process, heard := range n.others {
		if now.Sub(heard) >= hereExpires {
			delete(n.others, process)
		}
	}
	return len(n.others) == 0 && !n.deaf.IsZero() && now.After(n.deaf)
}

// send tells the other processes about all topics that gathered since the last time, in one statement.
func (n *Notifier) send(ctx context.Context) {
	n.mu.Lock()
	alone := n.alone(time.Now())
	payloads := make([]string, 0, len(n.dirty))
	for topic := range n.dirty {
		if !alone || topic == topicHere {
			payloads = append(payloads, n.process+" "+topic)
		}
	}
	clear(n.dirty)
	n.mu.Unlock()
	if len(payloads) == 0 {
		return
	}
	_, err := n.db.ExecContext(ctx, `SELECT pg_notify($1, p) FROM unnest(CAST($2 AS text[])) AS p`, channel, pq.Array(payloads))
	if err != nil && ctx.Err() == nil {
		n.log.WarnContext(ctx, "notify other processes", "error", err)
	}
}
