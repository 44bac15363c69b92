package webhook_test

import (
	"context"
	"encoding/json"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/pgtest"
	"github.com/pactwire/pactwire/webhook"
)

// A name that is public when it is looked at and private when it is dialled: the dialled address counts, each time.
func TestPrivateTargetsAreRefusedAlsoBehindNames(t *testing.T) {
	var lookups atomic.Int64
	n := newNode(t, pgtest.New(t), func(cfg *webhook.Config) {
		cfg.Targets = webhook.Targets{Lookup: func(context.Context, string) ([]netip.Addr, error) {
			lookups.Add(1)
			return []netip.Addr{netip.MustParseAddr("::ffff:127.0.0.1"), netip.MustParseAddr("10.1.2.3")}, nil
		}}
	})
	r := newReceiver(t, nil)
	_, port, _ := strings.Cut(strings.TrimPrefix(r.URL, "http://"), ":")
	n.put("hook", "http://receiver.example:"+port, `"retry":{"count":2,"initialDelay":"1ms","maxDelay":"1ms"}`)
	n.append(1)
	eventually(t, "it is given up", func() bool { return n.status("hook").DeadLetters == 1 })
	sub, err := n.db.Subscription(t.Context(), "default", "hook")
	must(t, err)
	if l := n.deadLetters(sub)[0]; !strings.Contains(l.Reason, "private network") || len(r.requests()) != 0 || lookups.Load() != 3 {
		t.Errorf("%+v after %d lookups, %d requests", l, lookups.Load(), len(r.requests()))
	}
	options, err := delivery.StoredOptions(sub)
	must(t, err)
	if pong, err := n.server.Ping(t.Context(), delivery.Ref{ID: sub.ID}, options); err != nil || pong.Delivered || !strings.Contains(pong.Reason, "private network") {
		t.Errorf("ping: %+v, %v", pong, err)
	}

	for _, url := range []string{
		"http://127.0.0.1/", "http://localhost:8080/x", "http://a.localhost.", "http://[::1]/", "http://169.254.169.254/latest/meta-data", "http://10.0.0.1", "http://192.168.1.1",
		"http://172.16.0.1", "http://[fe80::1]/", "http://[fd00::1]/", "http://0.0.0.0", "http://[::ffff:127.0.0.1]/", "http://100.64.0.1", "http://[64:ff9b::7f00:1]/",
		"http://[2002:7f00:1::]/", "http://[::127.0.0.1]/", "http://224.0.0.1", "http://255.255.255.255",
	} {
		_, err := n.manager.Create(t.Context(), delivery.SubscriptionRequest{
			Namespace: "default", Name: "bad", Transport: "webhooks", Options: json.RawMessage(`{"url":"` + url + `"}`),
		})
		if err == nil || !strings.Contains(err.Error(), "allow-private") {
			t.Errorf("%s: %v", url, err)
		}
	}
	for _, url := range []string{"https://1.1.1.1/", "https://[2606:4700::1111]/", "https://example.org"} {
		if err := (webhook.Targets{}).CheckURL(url); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
