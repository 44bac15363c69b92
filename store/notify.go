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
		waiting: map[string]map[*Wakeup]struct{}{}, dirty: map[string]struct{}{}, kick: make(chan struct{}, 1),
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
	go func() {
		// Listen blocks until the first connection stands; Close ends the wait.
		if err := listener.Listen(channel); err != nil && ctx.Err() == nil {
			n.log.WarnContext(ctx, "listen for notifications", "error", err)
		}
	}()
	ping := time.NewTicker(30 * time.Second)
	defer ping.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case note := <-listener.Notify:
			if note == nil { // the connection was made anew: anything may have been missed
				n.wakeAll()
				continue
			}
			process, topic, ok := strings.Cut(note.Extra, " ")
			if ok && process != n.process {
				n.mu.Lock()
				n.wake(topic)
				n.mu.Unlock()
			}
		case <-n.kick:
			n.send(ctx)
		case <-ping.C:
			go func() { _ = listener.Ping() }() // a dead connection is noticed by it, and made anew
		}
	}
}

// send tells the other processes about all topics that gathered since the last time, in one statement.
func (n *Notifier) send(ctx context.Context) {
	n.mu.Lock()
	payloads := make([]string, 0, len(n.dirty))
	for topic := range n.dirty {
		payloads = append(payloads, n.process+" "+topic)
	}
	clear(n.dirty)
	n.mu.Unlock()
	_, err := n.db.ExecContext(ctx, `SELECT pg_notify($1, p) FROM unnest(CAST($2 AS text[])) AS p`, channel, pq.Array(payloads))
	if err != nil && ctx.Err() == nil {
		n.log.WarnContext(ctx, "notify other processes", "error", err)
	}
}
