package app

import (
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/pactwire/pactwire/handlers"
)

// gate answers what must be answered at all times, and hands everything else to the API as soon as there is one.
func (a *App) gate() http.Handler {
	quiet := slog.New(slog.DiscardHandler) // not being ready is no error to log, least of all once a second
	unready := func(w http.ResponseWriter, r *http.Request) bool {
		err := a.readiness.check(r.Context())
		if err != nil {
			handlers.WriteError(quiet, w, r, err)
		}
		return err != nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", ok)
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if !unready(w, r) {
			ok(w, r)
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{Registry: a.registry}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/livez", "/readyz", "/metrics":
			mux.ServeHTTP(w, r)
			return
		}
		// Past the multiplexer: it would redirect paths with empty segments, which the API answers by its own rules.
		api := a.api.Load()
		if api == nil && unready(w, r) {
			return
		}
		(*a.api.Load()).ServeHTTP(w, r) // it is there before the service counts as ready
	})
}

func ok(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = io.WriteString(w, "ok\n")
}
