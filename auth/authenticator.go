package auth

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
)

var (
	// ErrNoCredentials means that a request carries nothing that this authenticator understands.
	ErrNoCredentials = errors.New("no credentials")
	// ErrWrongCredentials means that a request carries credentials and that they are wrong.
	ErrWrongCredentials = errors.New("wrong credentials")
)

// Authenticator tells who sends a request: ErrNoCredentials when the request does not try to say, ErrWrongCredentials when it says it wrongly.
type Authenticator interface {
	Authenticate(r *http.Request) (Principal, error)
}

// First asks one authenticator after the other until one understands the request.
func First(authenticators []Authenticator, r *http.Request) (Principal, error) {
	for _, a := range authenticators {
		p, err := a.Authenticate(r)
		if !errors.Is(err, ErrNoCredentials) {
			return p, err
		}
	}
	return Principal{}, ErrNoCredentials
}

// readLines calls take with each line of a file that is neither empty nor a comment. Errors name file and line, never the line's text: it holds a secret.
func readLines(path string, take func(p Principal, secret string) error) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("read credentials: %w", err)
	}
	known := map[string]bool{}
	for i, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		p, secret, err := parseLine(line)
		if err == nil && known[p.Name] {
			err = fmt.Errorf("the name %q is there twice", p.Name)
		}
		if err == nil {
			err = take(p, secret)
		}
		if err != nil {
			return fmt.Errorf("read credentials: %s, line %d: %w", path, i+1, err)
		}
		known[p.Name] = true
	}
	if len(known) == 0 {
		return fmt.Errorf("read credentials: %s names nobody", path)
	}
	return nil
}
