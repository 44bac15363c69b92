package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf16"
)

// read reads a resource of the namespace.
func (s *service) read(t testing.TB, path string, into any) {
	t.Helper()
	r, err := s.http.Get(s.url + "/api/v1/namespaces/" + ns + path)
	must(t, err)
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	must(t, err)
	if r.StatusCode != http.StatusOK {
		t.Fatalf("GET %s: %s %s", path, r.Status, body)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber() // numbers stay as they were written
	must(t, d.Decode(into))
}

// all reads a whole collection, oldest first.
func (s *service) all(t testing.TB, path string) (out []map[string]any) {
	t.Helper()
	for {
		var page []map[string]any
		s.read(t, path+fmt.Sprintf("&limit=250&descending=false&sort=id&skip=%d", len(out)), &page)
		out = append(out, page...)
		if len(page) < 250 {
			return out
		}
	}
}

// snapshot is everything of the network's state that the member shows, one line each: definitions, messages with their values, members.
func (s *service) snapshot(t testing.TB) []string {
	t.Helper()
	var out []string
	add := func(kind string, item map[string]any, own ...string) {
		for _, name := range own {
			delete(item, name)
		}
		out = append(out, kind+" "+canonicalJSON(t, item))
	}
	for _, i := range s.all(t, "/contracts/interfaces?state=confirmed") {
		var whole map[string]any
		s.read(t, fmt.Sprintf("/contracts/interfaces/%v?fetchchildren=true", i["id"]), &whole)
		add("interface", whole)
	}
	for _, a := range s.all(t, "/apis?state=confirmed") {
		add("api", a, "urls") // addresses of this member
	}
	for _, m := range s.all(t, "/messages?fetchdata=true") {
		// When this member confirmed it, and which of its transactions pinned it, are its own.
		add("message", m, "confirmed", "txid")
	}
	var members []map[string]any
	s.read(t, "/network/members", &members)
	for _, m := range members {
		add("member", m, "self")
	}
	slices.Sort(out)
	return out
}

// recomputeHashes recomputes the hashes of all messages that a member shows, from nothing but what docs/hashing.md says.
func recomputeHashes(t testing.TB, messages []map[string]any) {
	t.Helper()
	for _, m := range messages {
		header := m["header"].(map[string]any)
		hashes := []any{}
		for _, d := range m["data"].([]any) {
			d := d.(map[string]any)
			if got := sha256Hex(canonicalJSON(t, d["value"])); got != d["hash"] {
				t.Errorf("message %v: value %v has the hash %s, not %v", header["id"], d["id"], got, d["hash"])
			}
			hashes = append(hashes, d["hash"])
		}
		if got := sha256Hex(canonicalJSON(t, hashes)); got != header["datahash"] {
			t.Errorf("message %v: the datahash is %s, not %v", header["id"], got, header["datahash"])
		}
		if got := sha256Hex(canonicalJSON(t, header)); got != m["hash"] {
			t.Errorf("message %v: the hash is %s, not %v", header["id"], got, m["hash"])
		}
	}
}

func sha256Hex(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// canonicalJSON is written anew here, so that the service's own is not its only witness.
func canonicalJSON(t testing.TB, v any) string {
	t.Helper()
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case json.Number:
		return v.String()
	case string:
		var b strings.Builder
		b.WriteByte('"')
		for _, r := range v {
			switch {
			case r == '"' || r == '\\':
				b.WriteString(`\` + string(r))
			case strings.ContainsRune("\b\t\n\f\r", r):
				b.WriteString(`\` + string("btn.fr"[r-8]))
			case r < 0x20:
				fmt.Fprintf(&b, `\u%04x`, r)
			default:
				b.WriteRune(r)
			}
		}
		return b.String() + `"`
	case []any:
		parts := make([]string, len(v))
		for i := range v {
			parts[i] = canonicalJSON(t, v[i])
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		names := make([]string, 0, len(v))
		for name := range v {
			names = append(names, name)
		}
		slices.SortFunc(names, func(a, b string) int { return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b))) })
		parts := make([]string, len(names))
		for i, name := range names {
			parts[i] = canonicalJSON(t, name) + ":" + canonicalJSON(t, v[name])
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	t.Fatalf("a %T in JSON", v)
	return ""
}
