package e2e

import (
	"encoding/json"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"go.yaml.in/yaml/v3"

	"github.com/pactwire/pactwire/contracts"
)

// page is an answer with its body.
type page struct {
	*http.Response
	body []byte
}

// get sends a GET with the headers given as names and values in turn.
func (s *service) get(t testing.TB, path string, headers ...string) page {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
	must(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := s.http.Do(r)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	return page{response, body}
}

func TestTheDocumentComesAsJSONAndAsYAML(t *testing.T) {
	t.Parallel()
	s := start(t)
	address := s.chain.Deploy(t, contracts.SimpleStorage()).Hex()
	s.createAPI(t, "simple", *s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI).ID, &address)
	const base = "/api/v1/namespaces/default/apis/simple/api/"

	asJSON, asYAML := s.get(t, base+"swagger.json"), s.get(t, base+"openapi.yaml")
	for want, r := range map[string]page{"application/json": asJSON, "application/yaml": asYAML} {
		if r.StatusCode != http.StatusOK || r.Header.Get("Content-Type") != want || r.Header.Get("ETag") == "" {
			t.Fatalf("the document as %s: %s %v", want, r.Status, r.Header)
		}
	}
	var a, b map[string]any
	must(t, json.Unmarshal(asJSON.body, &a))
	must(t, yaml.Unmarshal(asYAML.body, &b))
	// Numbers differ in their Go types alone.
	raw, err := json.Marshal(b)
	must(t, err)
	clear(b)
	must(t, json.Unmarshal(raw, &b))
	if !reflect.DeepEqual(a, b) {
		t.Errorf("the two documents differ:\n%s\n%s", asJSON.body, asYAML.body)
	}

	// Each form has an entity tag of its own; who has the document gets none.
	tags := map[string]bool{}
	for _, path := range []string{"swagger.json", "openapi.yaml", "swagger.json?views=true", "openapi.yaml?views=true"} {
		first := s.get(t, base+path)
		tag := first.Header.Get("ETag")
		if tags[tag] {
			t.Errorf("%s has the entity tag of another form", path)
		}
		tags[tag] = true
		again := s.get(t, base+path, "If-None-Match", `"other", W/`+tag)
		if again.StatusCode != http.StatusNotModified || len(again.body) != 0 || again.Header.Get("ETag") != tag || again.Header.Get("Content-Type") != "" {
			t.Errorf("%s again: %s %v %q", path, again.Status, again.Header, again.body)
		}
		if views := strings.Contains(path, "views"); strings.Contains(string(first.body), "/invoke/get") != views {
			t.Errorf("%s: an invoke path of the view method is there: %v", path, !views)
		}
	}
	// What the longer document says works.
	if status, problem := s.raw(t, "POST", "/api/v1/namespaces/default/apis/simple/invoke/get?confirm=true", "application/json", `{}`); status != http.StatusOK {
		t.Errorf("invoke a view method: %d %s", status, problem.Detail)
	}
	if r := s.get(t, "/api/v1/namespaces/default/apis/missing/api/openapi.yaml"); r.StatusCode != http.StatusNotFound {
		t.Errorf("the document of an unknown API: %s", r.Status)
	}
}

// Everybody can send X-Forwarded headers; only those of a trusted proxy count.
func TestOnlyATrustedProxySaysUnderWhichAddressTheServiceIsReached(t *testing.T) {
	t.Parallel()
	const base = "/api/v1/namespaces/default/apis/simple"
	forwarded := []string{"X-Forwarded-Proto", "https", "X-Forwarded-Host", "api.example.org, inner", "X-Forwarded-Prefix", "/contracts/"}
	for _, c := range []struct{ name, trusted, want string }{
		{"nobody is trusted", "", ""},
		{"somebody else is trusted", "192.0.2.0/24", ""},
		{"the caller is trusted", "127.0.0.0/8", "https://api.example.org/contracts"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := startWith(t, map[string]string{"trusted-proxies": c.trusted})
			s.createAPI(t, "simple", *s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI).ID, nil)
			want := c.want
			if want == "" {
				want = s.url
			}
			var api struct {
				Urls struct{ Openapi, UI string }
			}
			must(t, json.Unmarshal(s.get(t, base, forwarded...).body, &api))
			if api.Urls.Openapi != want+base+"/api/swagger.json" || api.Urls.UI != want+base+"/api" {
				t.Errorf("the API's addresses are %+v, want them at %s", api.Urls, want)
			}
			for _, path := range []string{"/api/swagger.json", "/api/openapi.yaml"} {
				var doc struct {
					Servers []struct {
						URL string `yaml:"url"`
					} `yaml:"servers"`
				}
				must(t, yaml.Unmarshal(s.get(t, base+path, forwarded...).body, &doc))
				if len(doc.Servers) != 1 || doc.Servers[0].URL != want+base {
					t.Errorf("the server of %s is %+v, want %s", path, doc.Servers, want+base)
				}
				// The next caller, who came directly, gets its own.
				must(t, yaml.Unmarshal(s.get(t, base+path).body, &doc))
				if len(doc.Servers) != 1 || doc.Servers[0].URL != s.url+base {
					t.Errorf("the server of %s without a proxy is %+v, want %s", path, doc.Servers, s.url+base)
				}
			}
		})
	}
}

// Whoever presses Execute without changing anything gets an answer of the contract.
func TestTheExamplesOfADocumentWorkWhenSentAsTheyAre(t *testing.T) {
	t.Parallel()
	s, _, _ := zoo(t)
	doc, err := openapi3.NewLoader().LoadFromData(s.get(t, zooAPI+"/api/swagger.json").body)
	must(t, err)
	sent, answered := 0, 0
	for path, item := range doc.Paths.Map() {
		if item.Post == nil || item.Post.RequestBody == nil {
			continue
		}
		example := item.Post.RequestBody.Value.Content["application/json"].Example
		if example == nil {
			t.Errorf("%s has no example", path)
			continue
		}
		body, err := json.Marshal(example)
		must(t, err)
		sent++
		switch status, answer := s.post(t, zooAPI+path, string(body)); status {
		case http.StatusOK, http.StatusAccepted:
			answered++
		case http.StatusUnprocessableEntity: // this contract reverts on purpose
		default:
			t.Errorf("%s with %s: %d %s", path, body, status, answer)
		}
	}
	if sent < 60 || answered < sent*2/3 {
		t.Errorf("only %d of %d examples were answered", answered, sent)
	}
	t.Logf("%d of %d examples were answered, the others reverted", answered, sent)
}
