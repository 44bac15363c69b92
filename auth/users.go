package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"runtime"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/crypto/bcrypt"
)

// remembered is how many right passwords are known by digest: bcrypt is slow on purpose, and a client sends its password with each request.
const remembered = 1024

// Users knows people by name and password (HTTP basic authentication).
type Users struct {
	users map[string]user
	seed  [32]byte // digests of this process are of no use to anyone else
	right *lru.Cache[[32]byte, Principal]
	slots chan struct{} // bounds how many cores wrong passwords can keep busy
	dummy []byte        // compared with where there is no such user
}

type user struct {
	Principal
	hash []byte
}

// NewUsers reads a users file.
func NewUsers(path string) (*Users, error) {
	u := &Users{users: map[string]user{}, slots: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2))}
	cost := bcrypt.MinCost
	err := readLines(path, func(p Principal, secret string) error {
		c, err := bcrypt.Cost([]byte(secret))
		if err != nil {
			return fmt.Errorf("the password of %q is no bcrypt hash; make one with `htpasswd -nB %s`", p.Name, p.Name)
		}
		cost = max(cost, c)
		u.users[p.Name] = user{Principal: p, hash: []byte(secret)}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if _, err := rand.Read(u.seed[:]); err != nil {
		return nil, fmt.Errorf("make a seed: %w", err)
	}
	if u.dummy, err = bcrypt.GenerateFromPassword(u.seed[:], cost); err != nil {
		return nil, fmt.Errorf("make a hash: %w", err)
	}
	if u.right, err = lru.New[[32]byte, Principal](remembered); err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	return u, nil
}

// Authenticate implements Authenticator.
func (u *Users) Authenticate(r *http.Request) (Principal, error) {
	name, password, ok := r.BasicAuth()
	if !ok {
		return Principal{}, ErrNoCredentials
	}
	digest := sha256.Sum256(fmt.Appendf(u.seed[:len(u.seed):len(u.seed)], "%d:%s%s", len(name), name, password))
	if p, ok := u.right.Get(digest); ok {
		return p, nil
	}
	select {
	case u.slots <- struct{}{}:
		defer func() { <-u.slots }()
	case <-r.Context().Done():
		return Principal{}, fmt.Errorf("wait for a password to be checked: %w", r.Context().Err())
	}
	known, ok := u.users[name]
	if !ok {
		known.hash = u.dummy
	}
	if err := bcrypt.CompareHashAndPassword(known.hash, []byte(password)); err != nil || !ok {
		return Principal{}, ErrWrongCredentials
	}
	u.right.Add(digest, known.Principal)
	return known.Principal, nil
}
