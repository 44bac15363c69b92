package handlers

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/pactwire/pactwire/store"
)

// apiAge bounds how long an API may be taken from memory after another process has changed it and its notification got lost.
const apiAge = time.Second

// cachedAPI is an API as it was read, and what tells whether it still is so.
type cachedAPI struct {
	api     store.API
	changes *atomic.Uint64 // of the namespace's APIs
	at      uint64         // the count before the reading
	read    time.Time
}

func (c *cachedAPI) fresh() bool { return c.changes.Load() == c.at && time.Since(c.read) < apiAge }

// findAPI returns an API by its name. Each call of a contract needs one, so it is kept as long as nothing has changed.
func (s *Server) findAPI(ctx context.Context, namespace, name string) (store.API, error) {
	key := namespace + "/" + name
	if cached, ok := s.apis.Get(key); ok && cached.fresh() {
		return cached.api, nil
	}
	fresh := &cachedAPI{changes: s.db.Changes(store.TopicAPIs(namespace)), read: time.Now()}
	fresh.at = fresh.changes.Load()
	var err error
	if fresh.api, err = s.db.API(ctx, namespace, name); err != nil {
		return store.API{}, fmt.Errorf("find an API: %w", err)
	}
	s.apis.Add(key, fresh)
	return fresh.api, nil
}
