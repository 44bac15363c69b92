package console_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/pactwire/pactwire/console"
)

var references = regexp.MustCompile(`(?:src|href)="([^"]*)"`)

func TestEverythingAPageLoadsIsServedHere(t *testing.T) {
	t.Parallel()
	router := http.NewServeMux()
	router.Handle(console.AssetsPath, console.Assets())
	server := httptest.NewServer(router)
	defer server.Close()
	page := string(console.Page("Simple storage", "/spec.json", ""))
	found := references.FindAllStringSubmatch(page, -1)
	if len(found) < 6 {
		t.Fatalf("the page loads too little:\n%s", page)
	}
	for _, f := range found {
		if f[1] == "/spec.json" {
			continue
		}
		if !strings.HasPrefix(f[1], console.AssetsPath) {
			t.Errorf("%s is not an embedded asset", f[1])
		}
		for _, encoding := range []string{"gzip", "identity"} {
			response := get(t, server.URL+f[1], encoding)
			if response.StatusCode != http.StatusOK || len(response.body) == 0 {
				t.Errorf("%s as %s: status %d, %d bytes", f[1], encoding, response.StatusCode, len(response.body))
			}
			if kind := response.Header.Get("Content-Type"); !strings.Contains(kind, map[string]string{"css": "css", ".js": "javascript", "png": "png"}[f[1][len(f[1])-3:]]) {
				t.Errorf("%s has the type %q", f[1], kind)
			}
		}
	}
	for _, path := range []string{"embed.go", "missing.js", "", "../page.html"} {
		if response := get(t, server.URL+console.AssetsPath+path, ""); response.StatusCode == http.StatusOK {
			t.Errorf("%q is served", path)
		}
	}
}

type answer struct {
	*http.Response
	body []byte
}

func get(t *testing.T, address, encoding string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept-Encoding", encoding)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{response, body}
}

func TestAPageHasNoInlineScriptAndNamesNoOtherOrigin(t *testing.T) {
	t.Parallel()
	page := string(console.Page(`</title><script>alert(1)</script>`, `/api?x="><script>alert(2)</script>`, "/behind/a/proxy/"))
	if strings.Contains(page, "alert(1)</script>") || strings.Contains(page, "<script>alert") {
		t.Errorf("a value became markup:\n%s", page)
	}
	for _, script := range regexp.MustCompile(`(?s)<script[^>]*>(.*?)</script>`).FindAllStringSubmatch(page, -1) {
		if script[1] != "" {
			t.Errorf("inline script: %s", script[1])
		}
	}
	if !strings.Contains(page, `src="/behind/a/proxy/console/assets/console.js"`) {
		t.Errorf("the base path is not used:\n%s", page)
	}
	for _, f := range references.FindAllStringSubmatch(page, -1) {
		if u, err := url.Parse(f[1]); err != nil || u.Host != "" {
			t.Errorf("%s leads elsewhere (%v)", f[1], err)
		}
	}
	if strings.Contains(console.Policy, "http") || !strings.Contains(console.Policy, "default-src 'none'") {
		t.Errorf("the policy is too wide: %s", console.Policy)
	}
}
