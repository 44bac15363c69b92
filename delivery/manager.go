package delivery

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// Config configures a Manager.
type Config struct {
	Registerer prometheus.Registerer // nil: no metrics are registered
	// CheckURL tells whether events may be posted to an address, when a subscription is made; nil: everywhere. It spares a late surprise, no more.
	CheckURL func(url string) error
}

// Manager delivers events to sessions.
type Manager struct {
	cfg     Config
	db      *store.DB
	log     *slog.Logger
	metrics *metrics
	mover   *mover
	tasks   chan func(context.Context) // run by Run
	stopped chan struct{}              // closed when Run takes no more of them
	process uuid.UUID                  // of this process, for the others

	mu    sync.Mutex
	feeds map[uuid.UUID]*feed // durable and ephemeral

	tailsMu sync.Mutex
	tails   map[string]*tail // by namespace; they stay once they are there
}

// New makes a Manager. Nothing is delivered before Run runs.
func New(cfg Config, db *store.DB, log *slog.Logger) *Manager {
	return &Manager{
		cfg: cfg, db: db, log: log, metrics: newMetrics(cfg.Registerer), mover: newMover(), tasks: make(chan func(context.Context)), stopped: make(chan struct{}), process: uuid.New(),
		feeds: map[uuid.UUID]*feed{}, tails: map[string]*tail{},
	}
}

// Run delivers until ctx ends; then it ends all sessions, writes their positions and gives their leases back. It runs once.
func (m *Manager) Run(ctx context.Context) error {
	group, ctx := errgroup.WithContext(ctx)
	var moving sync.WaitGroup
	moving.Go(func() { m.mover.run(ctx, m.db) })
	defer moving.Wait()
	defer close(m.mover.quit)
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case task := <-m.tasks:
			group.Go(func() error { task(ctx); return nil })
		}
	}
	close(m.stopped)
	m.mu.Lock()
	feeds := make([]*feed, 0, len(m.feeds))
	for _, f := range m.feeds {
		feeds = append(feeds, f)
	}
	m.mu.Unlock()
	for _, f := range feeds {
		f.end(errStopping())
	}
	return group.Wait() //nolint:wrapcheck // tasks do not fail
}

func errStopping() error {
	return pactwire.Unavailable("shutting_down", nil, "The service is stopping.")
}

// start has Run run a task.
func (m *Manager) start(ctx context.Context, task func(context.Context)) error {
	select {
	case m.tasks <- task:
		return nil
	case <-m.stopped:
		return errStopping()
	case <-ctx.Done():
		return ctx.Err() //nolint:wrapcheck // the caller's own doing
	}
}

// CheckNamespace returns a pactwire.KindNotFound for a namespace that does not exist.
func (m *Manager) CheckNamespace(ctx context.Context, namespace string) error {
	_, err := m.db.HeadSequence(ctx, namespace)
	return err //nolint:wrapcheck // the store has said what it was doing
}

// StartRequest describes a session.
type StartRequest struct {
	Namespace string
	Name      string // of the durable subscription, or its id; for an ephemeral one optional and only repeated in its frames
	Ephemeral bool
	AutoAck   bool // each event counts as acknowledged when it is written
	NoBatches bool // the consumer takes single events only, whatever the subscription says
	// AckedThrough acknowledges everything up to a sequence, as soon as the session is the active one; of a durable subscription.
	AckedThrough int64

	// Of an ephemeral session. A durable subscription has its own; only readAhead may be overridden for a session.
	Filter  Filter
	Options Options
}

// Prepared is a session that can start.
type Prepared struct {
	m         *Manager
	request   StartRequest
	ref       Ref
	transport string // durable
	matcher   *Matcher
	options   Options
	position  int64     // ephemeral: where to start
	version   time.Time // durable: of the subscription that was read
}

// Prepare checks everything that a start needs and settles where an ephemeral session begins: every event after the call is delivered to it.
func (m *Manager) Prepare(ctx context.Context, r StartRequest) (*Prepared, error) {
	if r.Namespace == "" {
		return nil, pactwire.Invalid("namespace", "is required")
	}
	head, err := m.db.HeadSequence(ctx, r.Namespace)
	if err != nil {
		return nil, err //nolint:wrapcheck // the store has said what it was doing
	}
	p := &Prepared{m: m, request: r}
	if r.Options.Webhook != nil {
		return nil, pactwire.Invalid("options", "webhooks are subscriptions of their own; these events go over this connection")
	}
	if r.AckedThrough > head {
		return nil, pactwire.Invalid("Last-Event-ID", "is %d, but the history ends at %d", r.AckedThrough, head)
	}
	if r.Ephemeral {
		if p.matcher, err = r.Filter.Compile(); err != nil {
			return nil, err
		}
		p.ref = Ref{ID: store.NewID(), Namespace: r.Namespace, Name: r.Name}
		if p.ref.Name == "" {
			p.ref.Name = "ephemeral-" + p.ref.ID.String()
		}
		p.options, p.position = r.Options.Resolve(head)
		return p, nil
	}
	if r.Name == "" {
		return nil, pactwire.Invalid("name", "is required for a durable subscription")
	}
	if r.Filter != (Filter{}) {
		return nil, pactwire.Invalid("filter", "is set when a durable subscription is made; only an ephemeral one takes it on connecting")
	}
	if r.Options.FirstEvent != "" || r.Options.WithData || r.Options.Batch {
		return nil, pactwire.Invalid("options", "firstEvent, withData and batch are set when a durable subscription is made; only an ephemeral one takes them on connecting")
	}
	sub, err := m.db.Subscription(ctx, r.Namespace, r.Name)
	if err != nil {
		return nil, err //nolint:wrapcheck // the store has said what it was doing
	}
	if sub.Transport != TransportWebSockets {
		return nil, pactwire.Invalid("name", "is a subscription with the transport %s: its events are not delivered over connections", sub.Transport)
	}
	return p, p.durable(sub)
}

// durable takes over what a durable subscription says.
func (p *Prepared) durable(sub store.Subscription) (err error) {
	p.ref, p.transport, p.version = Ref{ID: sub.ID, Namespace: sub.Namespace, Name: sub.Name}, sub.Transport, version(sub)
	p.matcher, p.options, err = compile(sub)
	return err
}

// version is when a subscription was last changed.
func version(sub store.Subscription) time.Time {
	if sub.Updated != nil {
		return *sub.Updated
	}
	return sub.Created
}

// Ref names the subscription.
func (p *Prepared) Ref() Ref { return p.ref }

// Start begins the delivery. Close the session when the consumer goes.
func (p *Prepared) Start(ctx context.Context, c Consumer) (*Session, error) {
	m, s := p.m, &Session{consumer: c, autoAck: p.request.AutoAck, noBatches: p.request.NoBatches, ackedThrough: p.request.AckedThrough}
	if !p.request.Ephemeral {
		s.readAhead = p.request.Options.ReadAhead
	}
	t, err := m.tail(ctx, p.ref.Namespace)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	f := m.feeds[p.ref.ID]
	if f != nil && f.add(s) {
		m.mu.Unlock()
		return s, nil
	}
	f = m.newFeed(p.ref, p.request.Ephemeral, p.matcher, p.options)
	f.tail, f.updated, f.transport = t, p.version, p.transport
	f.window.start(p.position, nil)
	f.add(s)
	m.feeds[p.ref.ID] = f
	m.mu.Unlock()
	m.metrics.feeds.Inc()
	if err := m.start(ctx, f.run); err != nil {
		f.remove(s)
		f.end(err) // for others who have joined it meanwhile
		return nil, err
	}
	return s, nil
}

// Start prepares and begins a session.
func (m *Manager) Start(ctx context.Context, r StartRequest, c Consumer) (*Session, error) {
	p, err := m.Prepare(ctx, r)
	if err != nil {
		return nil, err
	}
	return p.Start(ctx, c)
}

// tail returns the shared end of a namespace's history; the first call for a namespace begins to follow it.
func (m *Manager) tail(ctx context.Context, namespace string) (*tail, error) {
	m.tailsMu.Lock()
	defer m.tailsMu.Unlock()
	if t := m.tails[namespace]; t != nil {
		return t, nil
	}
	t := newTail(namespace)
	err := m.start(ctx, func(ctx context.Context) {
		var both sync.WaitGroup
		both.Go(func() { t.run(ctx, m.db, m.log) })
		both.Go(func() { m.watch(ctx, namespace) })
		both.Wait()
	})
	if err != nil {
		return nil, err
	}
	m.tails[namespace] = t
	return t, nil
}

// forget lets go of a feed that has ended.
func (m *Manager) forget(f *feed) {
	m.metrics.feeds.Dec()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.feeds[f.ref.ID] == f {
		delete(m.feeds, f.ref.ID)
	}
}

// watch looks after changed and deleted subscriptions of a namespace: woken at once, and once a second in case a wake-up got lost.
func (m *Manager) watch(ctx context.Context, namespace string) {
	changed := m.db.Subscribe(store.TopicSubscriptions(namespace))
	defer changed.Close()
	present := &presence{process: m.process, shown: map[uuid.UUID]shown{}}
	defer present.leave(ctx, m)
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-changed.C:
		case <-poll.C:
		}
		feeds := map[uuid.UUID]*feed{}
		var ids []uuid.UUID
		m.mu.Lock()
		for id, f := range m.feeds {
			if !f.ephemeral && f.ref.Namespace == namespace {
				feeds[id] = f
				ids = append(ids, id)
			}
		}
		m.mu.Unlock()
		present.show(ctx, m, feeds)
		if len(ids) == 0 {
			continue
		}
		subs, err := m.db.SubscriptionsByID(ctx, ids)
		if err != nil {
			if ctx.Err() == nil {
				m.log.WarnContext(ctx, "look after changed subscriptions", "namespace", namespace, "error", err)
			}
			continue
		}
		var pushed []uuid.UUID
		for _, sub := range subs {
			if sub.Transport == TransportWebhooks {
				pushed = append(pushed, sub.ID)
			}
		}
		m.lookForRedriven(ctx, feeds, pushed)
		for _, sub := range subs {
			feeds[sub.ID].update(ctx, sub)
			delete(feeds, sub.ID)
		}
		for _, f := range feeds {
			f.end(pactwire.NotFound("subscription", "The subscription %q was deleted.", f.ref.Name))
		}
	}
}

// lookForRedriven wakes the feeds that have dead letters to deliver again.
func (m *Manager) lookForRedriven(ctx context.Context, feeds map[uuid.UUID]*feed, ids []uuid.UUID) {
	if len(ids) == 0 {
		return
	}
	found, err := m.db.WithRedriven(ctx, ids)
	if err != nil && ctx.Err() == nil {
		m.log.WarnContext(ctx, "look for redriven events", "error", err)
	}
	for _, id := range found {
		f := feeds[id]
		f.mu.Lock()
		f.redriven = true
		f.mu.Unlock()
		signal(f.wake)
	}
}

// Status is how far a durable subscription is.
type Status struct {
	Position  int64  // everything up to here is acknowledged or filtered out
	Head      int64  // the highest sequence of the history
	Lag       int64  // Head - Position
	InFlight  int    // delivered and not acknowledged; in other processes as it was a second ago
	Consumers int    // sessions, standing by or active; in other processes as it was a second ago
	LastError string // what holds delivery up, empty when nothing does

	// Of webhooks; the same whichever process is asked.
	Attempt     *Attempt // what the tries of the next event have come to; nil when there were none, or they succeeded
	DeadLetters int64
}

// Status tells how far a subscription is, whichever process serves it.
func (m *Manager) Status(ctx context.Context, sub store.Subscription) (Status, error) {
	head, err := m.db.HeadSequence(ctx, sub.Namespace)
	if err != nil {
		return Status{}, err //nolint:wrapcheck // the store has said what it was doing
	}
	s := Status{Position: sub.Position, Head: head}
	m.mu.Lock()
	f := m.feeds[sub.ID]
	m.mu.Unlock()
	if f != nil {
		f.mu.Lock()
		s.Consumers, s.LastError = len(f.sessions), f.lastError
		if f.leading {
			s.Position, s.InFlight = f.window.position(), f.window.open
		}
		f.mu.Unlock()
	}
	s.Lag = max(0, s.Head-s.Position)
	others, err := m.db.PresenceElsewhere(ctx, sub.ID, m.process)
	if err != nil {
		return s, err //nolint:wrapcheck // the store has said what it was doing
	}
	s.Consumers += others.Consumers
	s.InFlight += others.InFlight
	if s.LastError == "" {
		s.LastError = others.LastError
	}
	if sub.Transport != TransportWebhooks {
		return s, nil
	}
	a, ok, err := m.db.Attempt(ctx, sub.ID)
	if err != nil {
		return s, err //nolint:wrapcheck // the store has said what it was doing
	}
	if ok {
		s.Attempt = &Attempt{Count: a.Attempts, Reason: a.Reason, Status: a.Status, Next: a.Next}
		s.LastError = a.Reason
	}
	s.DeadLetters, err = m.db.CountDeadLetters(ctx, sub.ID)
	return s, err //nolint:wrapcheck // the store has said what it was doing
}
