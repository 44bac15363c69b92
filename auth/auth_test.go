package auth_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/bcrypt"

	"github.com/pactwire/pactwire/auth"
)

func file(t *testing.T, lines ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func hash(t *testing.T, password string) string {
	t.Helper()
	h, err := bcrypt.GenerateFromPassword([]byte(password), bcrypt.MinCost)
	if err != nil {
		t.Fatal(err)
	}
	return string(h)
}

func digest(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

func request(header string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	if header != "" {
		r.Header.Set("Authorization", header)
	}
	return r
}

func basic(name, password string) *http.Request {
	r := request("")
	r.SetBasicAuth(name, password)
	return r
}

func TestUsersAndTokens(t *testing.T) {
	t.Parallel()
	users, err := auth.NewUsers(file(t, "# people", "", "ann:"+hash(t, "secret")+":admin", "bob:"+hash(t, "hidden")+":invoke:one,two", "eve:"+hash(t, "x")))
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := auth.NewTokens(file(t, "ci:"+digest("t0ken")+":read:one"))
	if err != nil {
		t.Fatal(err)
	}
	both := []auth.Authenticator{users, tokens}
	for _, c := range []struct {
		name    string
		request *http.Request
		want    string
		err     error
	}{
		{"right password", basic("ann", "secret"), "ann", nil},
		{"right password again, from memory", basic("ann", "secret"), "ann", nil},
		{"another user's password", basic("ann", "hidden"), "", auth.ErrWrongCredentials},
		{"parts shifted between name and password", basic("anns", "ecret"), "", auth.ErrWrongCredentials},
		{"unknown user", basic("zoe", "secret"), "", auth.ErrWrongCredentials},
		{"empty password", basic("ann", ""), "", auth.ErrWrongCredentials},
		{"right token", request("bearer t0ken"), "ci", nil},
		{"wrong token", request("Bearer other"), "", auth.ErrWrongCredentials},
		{"the digest in place of the token", request("Bearer " + digest("t0ken")), "", auth.ErrWrongCredentials},
		{"nothing", request(""), "", auth.ErrNoCredentials},
		{"another scheme", request("Digest abc"), "", auth.ErrNoCredentials},
		{"broken basic", request("Basic %%%"), "", auth.ErrNoCredentials},
	} {
		p, err := auth.First(both, c.request)
		if !errors.Is(err, c.err) || p.Name != c.want {
			t.Errorf("%s: %q, %v; want %q, %v", c.name, p.Name, err, c.want, c.err)
		}
	}
}

func TestRolesAndNamespaces(t *testing.T) {
	t.Parallel()
	users, err := auth.NewUsers(file(t, "ann:"+hash(t, "a")+":admin", "bob:"+hash(t, "b")+":invoke:one,two", "eve:"+hash(t, "e")))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name      string
		role      auth.Role
		namespace string
		want      bool
	}{
		{"ann", auth.RoleAdmin, "anything", true},
		{"ann", auth.RoleRead, "", true},
		{"ann", "root", "anything", false},
		{"bob", auth.RoleInvoke, "one", true},
		{"bob", auth.RoleRead, "two", true},
		{"bob", auth.RoleAdmin, "one", false},
		{"bob", auth.RoleRead, "three", false},
		{"bob", auth.RoleRead, "", true},
		{"eve", auth.RoleRead, "one", true},
		{"eve", auth.RoleInvoke, "one", false},
	} {
		p, err := users.Authenticate(basic(c.name, c.name[:1]))
		if err != nil {
			t.Fatal(err)
		}
		if got := p.May(c.role, c.namespace); got != c.want {
			t.Errorf("%s may %s in %q: %v, want %v", c.name, c.role, c.namespace, got, c.want)
		}
	}
	if (auth.Principal{}).May(auth.RoleRead, "") {
		t.Error("nobody may read")
	}
}

func TestBrokenFilesAreRefusedWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	good := hash(t, "x")
	for _, c := range []struct{ line, want string }{
		{"ann", "line 1: must have the form"},
		{":" + good, "must have the form"},
		{"ann:s3cret", "no bcrypt hash"},
		{"ann:" + good + ":owner", `"owner" is none of`},
		{"ann:" + good + ":read:a,,b", "namespace is empty"},
		{"ann:" + good + "\nann:" + good, "line 2"},
		{"# nobody", "names nobody"},
	} {
		_, err := auth.NewUsers(file(t, c.line))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v; want %q", c.line, err, c.want)
		}
		if err != nil && (strings.Contains(err.Error(), good) || strings.Contains(err.Error(), "s3cret")) {
			t.Errorf("the error tells a secret: %v", err)
		}
	}
	if _, err := auth.NewTokens(file(t, "ci:t0ken")); err == nil || strings.Contains(err.Error(), "t0ken") {
		t.Errorf("a clear token: %v", err)
	}
	if _, err := auth.NewTokens(file(t, "a:"+digest("x"), "b:"+digest("x"))); err == nil {
		t.Error("two names with one token were accepted")
	}
	if _, err := auth.NewUsers(filepath.Join(t.TempDir(), "missing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
