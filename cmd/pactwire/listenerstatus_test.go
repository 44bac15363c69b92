package main

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pactwire/pactwire/gen"
)

func TestProgressUntilLive(t *testing.T) {
	t.Parallel()
	at := func(checkpoint, lag, events int64, mode string) gen.ListenerStatus {
		return gen.ListenerStatus{Mode: mode, Checkpoint: &checkpoint, Lag: &lag, Events: events}
	}
	looks := []gen.ListenerStatus{at(0, 1000, 0, "catchup"), at(250, 750, 500, "catchup"), at(1001, 0, 2000, "live")}
	for _, bar := range []bool{false, true} {
		var out bytes.Buffer
		p := progress{out: &out, bar: bar}
		i := 0
		err := p.watch(t.Context(), time.Millisecond, func(context.Context) (gen.ListenerStatus, error) {
			i++
			return looks[i-1], nil
		})
		if err != nil {
			t.Fatal(err)
		}
		text := out.String()
		for _, want := range []string{"  0%  block 0 of 1000", " 25%  block 250 of 1000, 500 events, ", " left", "live at block 1000, 2000 events\n"} {
			if !strings.Contains(text, want) {
				t.Errorf("bar %t: %q does not contain %q", bar, text, want)
			}
		}
		if strings.Contains(text, "[=======   ") != bar || strings.Contains(text, "\r") != bar {
			t.Errorf("bar %t: %q", bar, text)
		}
	}
	p := progress{out: &bytes.Buffer{}}
	if err := p.watch(t.Context(), time.Second, func(context.Context) (gen.ListenerStatus, error) { return gen.ListenerStatus{}, errors.New("gone") }); err == nil {
		t.Error("an error was swallowed")
	}
}

func TestListenerStatusAsksTheService(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("fetchstatus") != "true" || !strings.HasSuffix(r.URL.Path, "/namespaces/default/contracts/listeners/transfers") {
			http.Error(w, `{"detail":"no","code":"x"}`, http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte(`{"id":"0191e9f0-0000-7000-8000-000000000000","status":{"mode":"live","events":7,"checkpoint":12}}`))
	}))
	defer server.Close()
	var out, errs bytes.Buffer
	if code := execute(t.Context(), []string{"listener", "status", "transfers", "--watch", "--url", server.URL}, streams{nil, &out, &errs}); code != 0 {
		t.Fatalf("exit code %d: %s", code, &errs)
	}
	if out.String() != "live at block 11, 7 events\n" {
		t.Errorf("%q", out.String())
	}
	out.Reset()
	if code := execute(t.Context(), []string{"listener", "status", "transfers", "--url", server.URL}, streams{nil, &out, &errs}); code != 0 || !strings.Contains(out.String(), `"mode": "live"`) {
		t.Errorf("exit code %d: %s %s", code, &out, &errs)
	}
	if code := execute(t.Context(), []string{"listener", "status", "other", "--url", server.URL}, streams{nil, &out, &errs}); code != exitFailure {
		t.Errorf("exit code %d for one that there is not", code)
	}
}
