package e2e

import (
	"strings"
	"testing"
	"time"

	"github.com/pactwire/pactwire/gen"
)

func TestMembersThroughTheAPI(t *testing.T) {
	t.Parallel()
	s := start(t)
	account := func(i int) string { return s.chain.Accounts[i].Address.Hex() }
	add := func(account, name string, params *gen.AddMemberParams) (int, string) {
		r, err := s.client.AddMemberWithResponse(t.Context(), ns, params, gen.MemberInput{Account: account, Name: name, URL: ptr("https://" + name + ".example")})
		must(t, err)
		if r.JSON200 != nil && r.JSON200.Status != "Succeeded" {
			t.Errorf("add %s: %s", name, r.Body)
		}
		return r.StatusCode(), string(r.Body)
	}
	confirm := &gen.AddMemberParams{Confirm: ptr(true)}
	if status, body := add(account(5), "bob", confirm); status != 200 {
		t.Fatalf("add bob: %d %s", status, body)
	}
	for what, c := range map[string]struct {
		account, name, code string
		status              int
	}{
		"again":      {account(5), "robert", "already_a_member", 409},
		"name taken": {account(6), "bob", "member_name_taken", 409},
		"no account": {"0x123", "carol", "invalid", 400},
		"no name":    {account(6), "car ol", "invalid", 400},
	} {
		if status, body := add(c.account, c.name, confirm); status != c.status || !strings.Contains(body, c.code) {
			t.Errorf("%s: %d %s", what, status, body)
		}
	}
	// The same request once more, as after a lost answer.
	keyed := &gen.AddMemberParams{IdempotencyKey: ptr("add-carol")}
	_, first := add(account(6), "carol", keyed)
	if status, again := add(account(6), "carol", keyed); status != 202 || again != first {
		t.Errorf("the repeat was answered %d %s, the first time %s", status, again, first)
	}
	if status, body := add(account(7), "carol", keyed); status != 409 || !strings.Contains(body, "idempotency_conflict") {
		t.Errorf("another body: %d %s", status, body)
	}
	names := func() string {
		r, err := s.client.ListMembersWithResponse(t.Context(), ns)
		must(t, err)
		var out []string
		for _, m := range *r.JSON200 {
			out = append(out, m.Name)
		}
		return strings.Join(out, " ")
	}
	eventually(t, 20*time.Second, "carol is a member", func() bool { return names() == "bob carol org" }, nothing{})
	for _, by := range []string{"bob", account(5), strings.ToLower(account(5))} {
		r, err := s.client.GetMemberWithResponse(t.Context(), ns, by)
		must(t, err)
		if r.JSON200 == nil || r.JSON200.Name != "bob" || *r.JSON200.URL != "https://bob.example" || *r.JSON200.Self {
			t.Errorf("get %s: %s", by, r.Body)
		}
	}
	removed, err := s.client.RemoveMemberWithResponse(t.Context(), ns, "bob", &gen.RemoveMemberParams{Confirm: ptr(true)})
	must(t, err)
	if removed.JSON200 == nil {
		t.Errorf("remove bob: %s", removed.Body)
	}
	eventually(t, 20*time.Second, "bob is gone", func() bool { return names() == "carol org" }, nothing{})
	if r, err := s.client.RemoveMemberWithResponse(t.Context(), ns, "bob", nil); err != nil || r.StatusCode() != 404 {
		t.Errorf("remove bob again: %s %v", r.Body, err)
	}
	updated, err := s.client.UpdateSelfWithResponse(t.Context(), ns, &gen.UpdateSelfParams{Confirm: ptr(true)}, gen.MemberUpdate{URL: "https://new.example"})
	must(t, err)
	if updated.JSON200 == nil {
		t.Errorf("update: %s", updated.Body)
	}
	if r, err := s.client.UpdateSelfWithResponse(t.Context(), ns, nil, gen.MemberUpdate{URL: "javascript:alert(1)"}); err != nil || r.StatusCode() != 400 {
		t.Errorf("a URL that is none: %s %v", r.Body, err)
	}
	eventually(t, 20*time.Second, "the new URL is known", func() bool {
		r, err := s.client.GetMemberWithResponse(t.Context(), ns, "org")
		must(t, err)
		return r.JSON200 != nil && r.JSON200.URL != nil && *r.JSON200.URL == "https://new.example" && *r.JSON200.Self
	}, nothing{})
	rotated, err := s.client.RotateSelfWithResponse(t.Context(), ns, &gen.RotateSelfParams{Confirm: ptr(true)}, gen.MemberRotation{Account: account(8)})
	must(t, err)
	if rotated.JSON200 == nil {
		t.Errorf("rotate: %s", rotated.Body)
	}
	eventually(t, 20*time.Second, "the old key cannot broadcast", func() bool {
		r, err := s.client.BroadcastMessageWithResponse(t.Context(), ns, nil, gen.MessageInput{Data: []gen.DataInput{{Value: []byte(`1`)}}})
		must(t, err)
		return r.StatusCode() == 409 && strings.Contains(string(r.Body), "not_a_member")
	}, nothing{})
}

func TestRepeatedBroadcastsThroughTheAPI(t *testing.T) {
	t.Parallel()
	s := start(t)
	send := func(value string, header, body *string) (int, string) {
		r, err := s.client.BroadcastMessageWithResponse(t.Context(), ns, &gen.BroadcastMessageParams{IdempotencyKey: header},
			gen.MessageInput{Data: []gen.DataInput{{Value: []byte(value)}}, IdempotencyKey: body})
		must(t, err)
		if r.JSON202 == nil {
			return r.StatusCode(), string(r.Body)
		}
		return 202, r.JSON202.Header.ID.String()
	}
	_, first := send(`{"a":1}`, ptr("k1"), nil)
	for _, again := range [][2]*string{{ptr("k1"), nil}, {nil, ptr("k1")}, {ptr("k1"), ptr("k1")}} {
		if _, id := send(`{"a":1}`, again[0], again[1]); id != first {
			t.Errorf("a repeat is %s, not %s", id, first)
		}
	}
	if status, body := send(`{"a":2}`, ptr("k1"), nil); status != 409 {
		t.Errorf("another body: %d %s", status, body)
	}
	if status, body := send(`{"a":1}`, ptr("k1"), ptr("k2")); status != 400 {
		t.Errorf("two keys: %d %s", status, body)
	}
	if _, id := send(`{"a":1}`, nil, nil); id == first {
		t.Error("without a key it is the same message")
	}
}
