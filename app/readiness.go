package app

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	pactwire "github.com/pactwire/pactwire"
)

// readiness knows what is still missing, and asks the parts that can go away again.
type readiness struct {
	mu       sync.Mutex
	missing  map[string]string                             // part: why
	checks   map[string]func(context.Context) (why string) // part: asked on each request
	stopping bool
}

// checkTimeout is how long a part may take to say that it is there.
const checkTimeout = 2 * time.Second

func newReadiness() *readiness {
	return &readiness{missing: map[string]string{"start": "the service is starting"}, checks: map[string]func(context.Context) string{}}
}

// need says that a part is missing.
func (r *readiness) need(part, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.missing[part] = why
}

// have says that a part is there.
func (r *readiness) have(part string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.missing, part)
}

// watch has a part asked from now on; it answers with an empty string when all is well.
func (r *readiness) watch(part string, check func(context.Context) (why string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.missing, part)
	r.checks[part] = check
}

// stop makes the service not ready for good, so that load balancers look elsewhere while requests under way finish.
func (r *readiness) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stopping = true
}

// check returns nil when everything is there, and otherwise what is not.
func (r *readiness) check(ctx context.Context) error {
	r.mu.Lock()
	if r.stopping {
		r.mu.Unlock()
		return pactwire.Unavailable("shutting_down", nil, "The service is stopping.")
	}
	missing, checks := maps.Clone(r.missing), maps.Clone(r.checks)
	r.mu.Unlock()
	if len(missing) == 0 {
		ctx, cancel := context.WithTimeout(ctx, checkTimeout)
		defer cancel()
		var mu sync.Mutex
		var asking sync.WaitGroup
		for part, check := range checks {
			asking.Go(func() {
				if why := check(ctx); why != "" {
					mu.Lock()
					defer mu.Unlock()
					missing[part] = why
				}
			})
		}
		asking.Wait()
	}
	if len(missing) == 0 {
		return nil
	}
	e := pactwire.Unavailable("not_ready", nil, "")
	var words []string
	for _, part := range slices.Sorted(maps.Keys(missing)) {
		e.Fields = append(e.Fields, pactwire.Field{Path: part, Message: missing[part]})
		words = append(words, part+": "+missing[part])
	}
	e.Message = "The service is not ready. " + strings.Join(words, "; ") + "."
	return e
}
