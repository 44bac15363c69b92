package console

import (
	"bytes"
	_ "embed"
	"net/http"
	"time"

	"github.com/swaggest/swgui/v5/static"
	"github.com/vearutop/statigz"
)

//go:embed console.js
var script []byte

//go:embed console.css
var style []byte

// Assets serves what the pages load, compressed, with entity tags.
func Assets() http.Handler {
	files := http.NewServeMux()
	files.Handle("GET /{file}", statigz.FileServer(static.FS))
	files.Handle("GET /console.js", own("console.js", script))
	files.Handle("GET /console.css", own("console.css", style))
	files.Handle("GET /embed.go", http.NotFoundHandler()) // a source file of the library
	return http.StripPrefix(AssetsPath[:len(AssetsPath)-1], http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Cache-Control", "no-cache") // ask whether it has changed: an upgrade of the service brings other files under the same names
		files.ServeHTTP(w, r)
	}))
}

func own(name string, content []byte) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(content))
	})
}
