package delivery

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/store"
)

// Attend starts a session for each durable subscription that has the transport, as soon as there is one, until ctx ends. In all processes together one
// session of each subscription is active, and the others stand by. It is woken for the namespaces given, and looks once a second at all of them.
func (m *Manager) Attend(ctx context.Context, transport string, namespaces []string, push func(ctx context.Context, p Push) error) error {
	woken := make(chan struct{}, 1)
	var waking sync.WaitGroup
	defer waking.Wait()
	for _, namespace := range namespaces {
		changed := m.db.Subscribe(store.TopicSubscriptions(namespace))
		waking.Go(func() {
			defer changed.Close()
			for {
				select {
				case <-ctx.Done():
					return
				case <-changed.C:
					signal(woken)
				}
			}
		})
	}
	a := &attendance{m: m, push: push, sessions: map[uuid.UUID]*Session{}}
	defer a.close()
	poll := time.NewTicker(pollInterval)
	defer poll.Stop()
	for {
		a.prune()
		subs, err := m.db.SubscriptionsByTransport(ctx, transport)
		if err != nil && ctx.Err() == nil {
			m.log.WarnContext(ctx, "look for subscriptions to attend to", "transport", transport, "error", err)
		}
		for _, sub := range subs {
			err := a.begin(ctx, sub)
			if errors.Is(err, errStopped) || ctx.Err() != nil {
				break
			}
			if err != nil { // it holds up none of the others
				m.log.WarnContext(ctx, "attend to a subscription", "subscription", sub.ID, "error", err)
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-woken:
		case <-poll.C:
		}
	}
}

var errStopped = errors.New("stopped")

// attendance knows which subscriptions have a session already.
type attendance struct {
	m    *Manager
	push func(ctx context.Context, p Push) error

	mu       sync.Mutex
	sessions map[uuid.UUID]*Session
}

func (a *attendance) begin(ctx context.Context, sub store.Subscription) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[sub.ID] != nil {
		return nil
	}
	p := &Prepared{m: a.m}
	if err := p.durable(sub); err != nil {
		return err
	}
	s, err := p.Start(ctx, Consumer{Push: a.push})
	switch {
	case err == nil:
		a.sessions[sub.ID] = s
	case pactwire.KindOf(err) == pactwire.KindUnavailable:
		return errStopped // the manager is stopping, and so shall we
	}
	return err
}

// prune forgets the sessions that have ended.
func (a *attendance) prune() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for id, s := range a.sessions {
		if s.feed.isClosed() {
			delete(a.sessions, id)
		}
	}
}

// close ends all sessions, if the manager has not done so already.
func (a *attendance) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, s := range a.sessions {
		s.Close()
	}
}

func (f *feed) isClosed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}
