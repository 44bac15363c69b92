package e2e

import (
	"context"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/pactwire/pactwire/contracts"
)

// browserLimit is how long a visit of a page may take on a busy machine.
const browserLimit = time.Minute

// chromium finds the browser, or skips the test. Where PACTWIRE_TEST_BROWSER is set there must be one.
func chromium(t *testing.T) string {
	t.Helper()
	wanted := os.Getenv("PACTWIRE_TEST_BROWSER")
	for _, name := range []string{wanted, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if wanted != "" {
		t.Fatal("PACTWIRE_TEST_BROWSER is set, and there is no Chromium; scripts/install-chromium.sh installs it")
	}
	t.Skip("there is no Chromium; make browser-test installs it where it may")
	return ""
}

// visit is a browser with one page open, and what it asked the network for.
type visit struct {
	ctx context.Context //nolint:containedctx // chromedp keeps the browser in it

	mu       sync.Mutex
	requests []string
	troubles []string // exceptions and what the page's policy refused
}

// browse starts a browser with a profile of its own.
func browse(t *testing.T) *visit {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.UserDataDir(t.TempDir()), chromedp.WindowSize(1200, 1600),
		chromedp.NoSandbox, // Chromium refuses to sandbox for root, which CI is
		chromedp.DisableGPU, chromedp.NoFirstRun, chromedp.WSURLReadTimeout(browserLimit),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
		chromedp.Flag("disable-sync", true), chromedp.Flag("no-proxy-server", true),
	)
	ctx, stop := context.WithTimeout(t.Context(), 3*browserLimit)
	t.Cleanup(stop)
	ctx, end := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(end)
	v := &visit{}
	var quit context.CancelFunc
	v.ctx, quit = chromedp.NewContext(ctx)
	t.Cleanup(quit)
	must(t, chromedp.Listen(v.ctx, func(event any) {
		v.mu.Lock()
		defer v.mu.Unlock()
		switch event := event.(type) {
		case *network.EventRequestWillBeSent:
			v.requests = append(v.requests, event.Request.URL)
		case *network.EventWebSocketCreated:
			v.requests = append(v.requests, event.URL)
		case *runtime.EventExceptionThrown:
			v.troubles = append(v.troubles, event.ExceptionDetails.Text)
		case *runtime.EventConsoleAPICalled:
			if event.Type != runtime.ConsoleAPICalledTypeError {
				return
			}
			for _, a := range event.Args {
				v.troubles = append(v.troubles, string(a.Value)+a.Description)
			}
		}
	}))
	_, err := chromedp.Call(v.ctx, network.Enable, network.EnableParams{})
	must(t, err)
	return v
}

func (v *visit) do(t *testing.T, what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(v.ctx, steps...); err != nil {
		t.Fatalf("%s: %v\n%s", what, err, v)
	}
}

func ask[T any](t *testing.T, v *visit, what string, action chromedp.Action[T]) T {
	t.Helper()
	answer, err := chromedp.Run(v.ctx, action)
	if err != nil {
		t.Fatalf("%s: %v\n%s", what, err, v)
	}
	return answer
}

// picture keeps what the page shows, where the work tree ignores it.
func (v *visit) picture(t *testing.T, name string) {
	t.Helper()
	png := ask(t, v, "take a picture", chromedp.FullScreenshot(100))
	folder := filepath.Join(root, ".artefacts")
	must(t, os.MkdirAll(folder, 0o755))
	must(t, os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600))
	if len(png) < 10_000 {
		t.Errorf("the picture %s has %d bytes; it cannot show much", name, len(png))
	}
}

// execute opens an operation of Swagger UI, sends it with the body (as it is when empty), and returns the status and the body of the answer.
func (v *visit) execute(t *testing.T, operation, body string) (status, answer string) {
	t.Helper()
	const responses = ` .live-responses-table .response`
	v.do(t, "open "+operation,
		chromedp.WaitVisible(chromedp.CSS(operation+" .opblock-summary-control")),
		chromedp.Click(chromedp.CSS(operation+" .opblock-summary-control")),
		chromedp.WaitVisible(chromedp.CSS(operation+" .execute")))
	if body != "" {
		// As a person does: select what stands there, and type over it.
		text := operation + " textarea.body-param__text"
		// The page may draw the text after the button below it.
		v.do(t, "wait for the text of "+operation, chromedp.WaitVisible(chromedp.CSS(text)))
		_ = ask(t, v, "select the text", chromedp.Evaluate[any](`document.querySelector("`+text+`").select()`))
		v.do(t, "fill in "+operation, chromedp.SendKeys(chromedp.CSS(text), body))
	}
	v.press(t, operation+" .execute", operation+responses+" .response-col_status")
	status = ask(t, v, "read the status", chromedp.Text(chromedp.CSS(operation+responses+" .response-col_status")))
	answer = ask(t, v, "read the answer", chromedp.Text(chromedp.CSS(operation+responses+" .response-col_description")))
	return strings.Fields(status)[0], answer
}

// String lists what the browser has asked for, and its complaints.
func (v *visit) String() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return strings.Join(v.requests, "\n") + "\n" + strings.Join(v.troubles, "\n")
}

// press clicks a button until what it leads to is there: a page that is still growing may move the button from under the pointer.
func (v *visit) press(t *testing.T, button, until string) {
	t.Helper()
	for deadline := time.Now().Add(browserLimit); ; {
		v.do(t, "press "+button, chromedp.ScrollIntoView(chromedp.CSS(button)), chromedp.Click(chromedp.CSS(button)))
		ctx, stop := context.WithTimeout(v.ctx, 5*time.Second)
		err := chromedp.Do(ctx, chromedp.WaitVisible(chromedp.CSS(until)))
		stop()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			v.picture(t, "failure")
			t.Fatalf("press %s: %v\n%s", button, err, v)
		}
	}
}

// staysHome holds everything that the browser asked for against the service's origin.
func (v *visit) staysHome(t *testing.T, origin string) {
	t.Helper()
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.requests) < 5 {
		t.Errorf("only %d requests were seen: %v", len(v.requests), v.requests)
	}
	for _, address := range v.requests {
		u, err := url.Parse(address)
		if err != nil || u.Scheme != "data" && u.Scheme != "blob" && u.Scheme+"://"+u.Host != origin {
			t.Errorf("the page asked for %s", address)
		}
	}
	for _, trouble := range v.troubles {
		t.Errorf("the page says: %s", trouble)
	}
}

// What a person does who opens urls.ui of the answer.
func TestTheSwaggerUIOfAnAPIWorksInABrowser(t *testing.T) {
	v := browse(t)
	s := start(t)
	address := s.chain.Deploy(t, contracts.SimpleStorage()).Hex()
	api := s.createAPI(t, "simple", *s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI).ID, &address)
	s.invoke(t, "simple", "set", `{"newValue":"12345678901234567890123456789"}`)

	heading := chromedp.CSS(".swagger-ui .info .title")
	v.do(t, "open the page", chromedp.Navigate(api.URLs(t).UI), chromedp.WaitVisible(heading))
	title, shown := ask(t, v, "read the title", chromedp.Title()), ask(t, v, "read the heading", chromedp.Text(heading))
	if title != "simple" || !strings.Contains(shown, "simple") {
		t.Errorf("the page's title is %q, its heading %q", title, shown)
	}

	// The example of the document, sent as it is.
	if status, answer := v.execute(t, "#operations-query-query_get", ""); status != "200" || !strings.Contains(answer, `"12345678901234567890123456789"`) {
		t.Errorf("query: %s %s", status, answer)
	}
	v.picture(t, "swagger-ui-query")
	if status, answer := v.execute(t, "#operations-invoke-invoke_set", `{"input": {"newValue": "42"}}`); status != "202" || !strings.Contains(answer, `"id"`) {
		t.Errorf("invoke: %s %s", status, answer)
	}
	eventually(t, browserLimit, "the invocation is done", func() bool { return s.query(t, "simple", "get", `{}`) == `{"output":"42"}` }, v)
	if status, answer := v.execute(t, "#operations-query-query_set", `{"input": {"newValue": "-1"}}`); status != "400" || !strings.Contains(answer, "input.newValue") {
		t.Errorf("a mistake: %s %s", status, answer)
	}
	v.picture(t, "swagger-ui")
	v.staysHome(t, s.url)
}

// The service's own document, in the same page.
func TestTheSwaggerUIOfTheServiceWorksInABrowser(t *testing.T) {
	v := browse(t)
	s := start(t)
	v.do(t, "open the page", chromedp.Navigate(s.url+"/api"), chromedp.WaitVisible(chromedp.CSS(".swagger-ui .opblock")))
	v.picture(t, "swagger-ui-service")
	v.staysHome(t, s.url)
}
