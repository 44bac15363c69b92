package auth

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
)

// Tokens knows machines by a bearer token. A token must be random and long, such as `openssl rand -hex 32`: that is why a plain digest keeps it safe.
type Tokens struct {
	byDigest map[[sha256.Size]byte]Principal
}

// NewTokens reads a tokens file.
func NewTokens(path string) (*Tokens, error) {
	t := &Tokens{byDigest: map[[sha256.Size]byte]Principal{}}
	err := readLines(path, func(p Principal, secret string) error {
		digest, err := hex.DecodeString(secret)
		if err != nil || len(digest) != sha256.Size {
			return fmt.Errorf("the token of %q must be given as its SHA-256 in 64 hex digits: `printf %%s TOKEN | sha256sum`", p.Name)
		}
		key := [sha256.Size]byte(digest)
		if other, taken := t.byDigest[key]; taken {
			return fmt.Errorf("%q and %q have the same token", other.Name, p.Name)
		}
		t.byDigest[key] = p
		return nil
	})
	if err != nil {
		return nil, err
	}
	return t, nil
}

// Authenticate implements Authenticator.
func (t *Tokens) Authenticate(r *http.Request) (Principal, error) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return Principal{}, ErrNoCredentials
	}
	// Looking a digest up tells an attacker who measures time at most about digests, which lead to no token.
	if p, ok := t.byDigest[sha256.Sum256([]byte(strings.TrimSpace(token)))]; ok {
		return p, nil
	}
	return Principal{}, ErrWrongCredentials
}
