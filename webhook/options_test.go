package webhook_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/pgtest"
)

// What FireFly's clients send, and what they may not.
func TestOptionsOfWebhooks(t *testing.T) {
	n := newNode(t, pgtest.New(t), nil)
	for options, want := range map[string]string{
		`{}`: "options.url",
		`{"url":"https://x.example","fastack":false,"json":true,"reply":false,"replytag":"","replytx":"","tlsConfigName":"","input":{},"withData":true,"readAhead":5,
			"retry":{"enabled":true,"count":5,"initialDelay":"250ms","maxDelay":"30s"},"httpOptions":{"requestTimeout":"30s"},"headers":{"a":1,"b":true},"query":{"c":"d"}}`: "",
		`{"url":"https://x.example","fastack":true}`:                                                                       "options.fastack",
		`{"url":"https://x.example","reply":true}`:                                                                         "options.reply",
		`{"url":"https://x.example","method":"GET"}`:                                                                       "options.method",
		`{"url":"ftp://x.example"}`:                                                                                        "options.url",
		`{"url":"https://"}`:                                                                                               "options.url",
		`{"url":"https://ann:pw@x.example"}`:                                                                               "options.url",
		`{"url":"https://x.example","headers":{"Host":"y"}}`:                                                               "options.headers.Host",
		`{"url":"https://x.example","headers":{"webhook-id":"y"}}`:                                                         "options.headers.webhook-id",
		`{"url":"https://x.example","headers":{"a b":"y"}}`:                                                                "options.headers",
		`{"url":"https://x.example","headers":{"a":"y\r\nb: c"}}`:                                                          "options.headers.a",
		`{"url":"https://x.example","headers":{"Authorization":"********"}}`:                                               "options.headers.Authorization",
		`{"url":"https://x.example","signingSecret":"hush"}`:                                                               "options.signingSecret",
		`{"url":"https://x.example","signingSecret":"whsec_c2hvcnQ="}`:                                                     "options.signingSecret",
		`{"url":"https://x.example","signingSecret":"********"}`:                                                           "options.signingSecret",
		`{"url":"https://x.example","retry":{"initialDelay":"1h","maxDelay":"1s"}}`:                                        "options.retry.initialDelay",
		`{"url":"https://x.example","httpOptions":{"requestTimeout":"1h"}}`:                                                "options.httpOptions.requestTimeout",
		`{"url":"https://x.example","signingSecret":"` + secretA + ` ` + secretB + `","batch":true,"batchTimeout":"50ms"}`: "",
	} {
		sub, err := n.manager.Create(context.Background(), delivery.SubscriptionRequest{
			Namespace: "default", Name: "hook", Transport: "webhooks", Options: json.RawMessage(options),
		})
		switch {
		case err == nil && want == "":
			must(t, n.db.DeleteSubscription(context.Background(), "default", sub.Name))
		case err == nil || want == "" || !strings.HasPrefix(err.Error(), want):
			t.Errorf("%s: %v, want %q", options, err, want)
		}
		if err != nil && (strings.Contains(err.Error(), "hush") || strings.Contains(err.Error(), "ann:pw")) {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
	_, err := n.manager.Create(context.Background(), delivery.SubscriptionRequest{
		Namespace: "default", Name: "sock", Transport: "websockets", Options: json.RawMessage(`{"url":"https://x.example"}`),
	})
	if err == nil || !strings.HasPrefix(err.Error(), "transport") {
		t.Errorf("a URL for WebSockets: %v", err)
	}

	// Secrets are answered masked, and a mask means "as it was".
	r := newReceiver(t, nil)
	n.put("hook", r.URL, `"headers":{"Authorization":"Bearer abc","X-Plain":"1"},"query":{"token":"def"},"signingSecret":"`+secretA+`"`)
	sub := n.put("hook", r.URL, `"headers":{"Authorization":"********","X-Plain":"2"},"query":{"token":"********"},"signingSecret":"********"`)
	options, err := delivery.StoredOptions(sub)
	must(t, err)
	if options.Headers["Authorization"] != "Bearer abc" || options.Headers["X-Plain"] != "2" || options.Query["token"] != "def" || options.SigningSecret != secretA {
		t.Errorf("kept %+v", options.Webhook)
	}
	answer, err := json.Marshal(options.Redacted())
	must(t, err)
	for _, secret := range []string{"abc", "def", "whsec"} {
		if strings.Contains(string(answer), secret) {
			t.Errorf("answered %s", answer)
		}
	}
}
