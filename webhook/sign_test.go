package webhook_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/pactwire/pactwire/delivery"
	"github.com/pactwire/pactwire/internal/pgtest"
)

const (
	secretA = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	secretB = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
)

// verified checks a request as the specification tells receivers to, with code of its own.
func verified(t testing.TB, p posted, secret string) bool {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	must(t, err)
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(p.header.Get("webhook-id") + "." + p.header.Get("webhook-timestamp") + "." + string(p.body)))
	want := base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for one := range strings.FieldsSeq(p.header.Get("webhook-signature")) {
		if version, got, _ := strings.Cut(one, ","); version == "v1" && hmac.Equal([]byte(got), []byte(want)) {
			return true
		}
	}
	return false
}

func TestSecretsRotate(t *testing.T) {
	n := newNode(t, pgtest.New(t), nil)
	r := newReceiver(t, nil)
	for i, c := range []struct {
		secret string
		a, b   bool
	}{{secretA, true, false}, {secretB + " " + secretA, true, true}, {delivery.Masked, true, true}, {secretB, false, true}, {"", false, false}} {
		n.put("hook", r.URL, `"signingSecret":"`+c.secret+`"`)
		// The new secret counts from the moment that the process that delivers has heard of it.
		eventually(t, "the secrets count", func() bool {
			seen := len(r.requests())
			n.append(1)
			eventually(t, "the event is posted", func() bool { return len(r.requests()) > seen })
			p := r.requests()[seen]
			return verified(t, p, secretA) == c.a && verified(t, p, secretB) == c.b
		})
		sub, err := n.db.Subscription(t.Context(), "default", "hook")
		must(t, err)
		options, err := delivery.StoredOptions(sub)
		must(t, err)
		answered, err := json.Marshal(options.Redacted())
		must(t, err)
		if strings.Contains(string(answered), "whsec_") {
			t.Errorf("%d: the secret is answered: %s", i, answered)
		}
	}
}
