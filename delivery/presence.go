package delivery

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/store"
)

const (
	presenceLasts   = 30 * time.Second // how long a process that died is still counted
	presenceRenewal = presenceLasts / 3
)

// presence shows other processes what this one has to do with the subscriptions of a namespace, about once a second where it changes. It is for one goroutine.
type presence struct {
	process uuid.UUID
	shown   map[uuid.UUID]shown
}

type shown struct {
	store.Presence
	at time.Time
}

// show writes what has changed, or was written long ago.
func (p *presence) show(ctx context.Context, m *Manager, feeds map[uuid.UUID]*feed) {
	now := time.Now()
	var list []store.Presence
	for id, f := range feeds {
		f.mu.Lock()
		s := store.Presence{Subscription: id, Consumers: len(f.sessions), LastError: f.lastError}
		if f.leading {
			s.InFlight = f.window.open
		}
		f.mu.Unlock()
		if last, ok := p.shown[id]; s.Consumers > 0 && (!ok || last.Presence != s || now.Sub(last.at) > presenceRenewal) {
			list = append(list, s)
		}
	}
	for id := range p.shown {
		if feeds[id] == nil {
			list = append(list, store.Presence{Subscription: id})
		}
	}
	if len(list) == 0 {
		return
	}
	if err := m.db.ShowPresence(ctx, p.process, list, presenceLasts); err != nil {
		if ctx.Err() == nil {
			m.log.WarnContext(ctx, "show who serves subscriptions", "error", err)
		}
		return
	}
	for _, s := range list {
		if s.Consumers == 0 {
			delete(p.shown, s.Subscription)
			continue
		}
		p.shown[s.Subscription] = shown{s, now}
	}
}

// leave takes everything back, when the process stops.
func (p *presence) leave(ctx context.Context, m *Manager) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	p.show(ctx, m, nil) // a database that does not answer lets it expire
}
