package handlers

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/labstack/echo/v4"

	"github.com/pactwire/pactwire/gen"
)

// validated sends one request through the validator alone and returns its error, or the request as it reached the handler.
func validated(t *testing.T, request *http.Request) (*http.Request, error) {
	t.Helper()
	doc, err := gen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	v, err := newValidator(doc, "/api/v1", 1000)
	if err != nil {
		t.Fatal(err)
	}
	var (
		reached *http.Request
		failed  error
	)
	e := echo.New()
	e.HTTPErrorHandler = func(err error, _ echo.Context) { failed = err }
	handler := func(c echo.Context) error {
		reached = c.Request()
		return nil
	}
	group := e.Group("/api/v1", v.middleware)
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			group.Add(method, echoPath(path), handler)
		}
	}
	e.ServeHTTP(httptest.NewRecorder(), request)
	if (failed == nil) == (reached == nil) {
		t.Fatalf("error %v, and reached the handler: %v", failed, reached != nil)
	}
	return reached, failed
}

func post(path, contentType, body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/api/v1/namespaces/default"+path, strings.NewReader(body))
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	return r
}

func get(path string) *http.Request {
	return httptest.NewRequest(http.MethodGet, "/api/v1/namespaces/default"+path, nil)
}

func TestValidatorNamesWhatIsWrong(t *testing.T) {
	const js = "application/json"
	const subscription = "/subscriptions"
	cases := []struct {
		name    string
		request *http.Request
		status  int // 0 when it is let through
		field   string
	}{
		{"good", post(subscription, js, `{"name":"a"}`), 0, ""},
		{"good with a charset", post(subscription, "application/json; charset=utf-8", `{"name":"a"}`), 0, ""},
		{"required", post(subscription, js, `{}`), 400, "name"},
		{"wrong type", post(subscription, js, `{"name":1}`), 400, "name"},
		{"wrong type within", post(subscription, js, `{"name":"a","filter":{"message":{"tag":1}}}`), 400, "filter.message.tag"},
		{"unknown within", post(subscription, js, `{"name":"a","filter":{"colour":"red"}}`), 400, "filter"},
		{"out of range", post(subscription, js, `{"name":"a","options":{"readAhead":65536}}`), 400, "options.readAhead"},
		{"within a list", post("/messages/broadcast", js, `{"data":[{"value":1},{"worth":2}]}`), 400, "data[1].value"},
		{"not a UUID", post("/apis", js, `{"name":"a","interface":{"id":"nonsense"}}`), 400, "interface.id"},
		{"UUID in the path", get("/operations/nonsense"), 400, "id"},
		{"null for an object", post(subscription, js, `{"name":"a","options":null}`), 400, "options"},
		{"another body", post(subscription, js, `[]`), 400, ""},
		{"twice", post(subscription, js, `{"name":"a","name":"b"}`), 400, "name"},
		{"no body", post(subscription, js, ``), 400, ""},
		{"no body and no type", post(subscription, "", ``), 400, ""},
		{"blank body", post(subscription, js, " \n"), 400, ""},
		{"text", post(subscription, "text/plain", `{"name":"a"}`), 415, ""},
		{"no type", post(subscription, "", `{"name":"a"}`), 415, ""},
		{"bad type", post(subscription, "application/json;;;=", `{"name":"a"}`), 415, ""},
		{"form", post(subscription, "application/x-www-form-urlencoded", `name=a`), 415, ""},
		{"as large as allowed", post(subscription, js, `{"name":"a"}`+strings.Repeat(" ", 1000-len(`{"name":"a"}`))), 0, ""},
		{"too large", post(subscription, js, `{"name":"a"}`+strings.Repeat(" ", 1000)), 413, ""},
		{"a page", get("/operations?limit=3&skip=1&sort=created&descending=true&count=false&status=Failed"), 0, ""},
		{"limit zero", get("/operations?limit=0"), 400, "limit"},
		{"limit too high", get("/operations?limit=251"), 400, "limit"},
		{"limit as text", get("/operations?limit=many"), 400, "limit"},
		{"skip too far", get("/operations?skip=1001"), 400, "skip"},
		{"unknown filter", get("/operations?colour=red"), 400, "colour"},
		{"filter twice", get("/operations?status=Failed&status=Pending"), 400, "status"},
		{"no such path", get("/nowhere"), 404, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := validated(t, c.request)
			if c.status == 0 {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			status, body, _ := problem(err)
			if status != c.status {
				t.Fatalf("status %d, want %d: %v", status, c.status, err)
			}
			if c.field != "" && (len(body.Fields) != 1 || body.Fields[0].Path != c.field || body.Fields[0].Message == "") {
				t.Fatalf("names %+v, want %s", body.Fields, c.field)
			}
		})
	}
}

func TestPageOfARequest(t *testing.T) {
	r, err := validated(t, get("/operations?limit=3&skip=2&after=x&sort=created&descending=false&count=true&status=Failed"))
	if err != nil {
		t.Fatal(err)
	}
	p := page(r.Context())
	if p.Limit != 3 || p.Skip != 2 || p.After != "x" || p.Sort != "created" || p.Descending == nil || *p.Descending || !p.Count {
		t.Errorf("page %+v", p)
	}
	if len(p.Filters) != 1 || p.Filters["status"] != "Failed" {
		t.Errorf("filters %v", p.Filters)
	}
	if r, err = validated(t, get("/operations")); err != nil {
		t.Fatal(err)
	}
	if p = page(r.Context()); p.Limit != 25 || p.Descending != nil || p.Count || len(p.Filters) != 0 {
		t.Errorf("page of a plain request %+v", p)
	}
}

func TestFieldPath(t *testing.T) {
	for want, pointer := range map[string][]string{
		"": nil, "a": {"a"}, "a.b": {"a", "b"}, "a[0].b": {"a", "0", "b"}, "[3]": {"3"}, "a[1][2]": {"a", "1", "2"}, "x1.y": {"x1", "y"},
	} {
		if got := fieldPath(pointer); got != want {
			t.Errorf("%v: got %s, want %s", pointer, got, want)
		}
	}
}

func TestMethodNotAllowed(t *testing.T) {
	doc, err := gen.GetSpec()
	if err != nil {
		t.Fatal(err)
	}
	v, err := newValidator(doc, "/api/v1", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{"/operations": "GET", "/subscriptions": "GET, POST, PUT", "/nowhere": ""} {
		recorder := httptest.NewRecorder()
		c := echo.New().NewContext(httptest.NewRequest(http.MethodPatch, "/api/v1/namespaces/default"+path, nil), recorder)
		err := v.notRouted(c)
		if allow := recorder.Header().Get("Allow"); allow != want || (want == "") != errors.Is(err, echo.ErrNotFound) {
			t.Errorf("%s: Allow %q, %v", path, allow, err)
		}
	}
}
