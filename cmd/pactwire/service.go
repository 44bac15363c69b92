package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pactwire/pactwire/gen"
)

// remote is the running service that a command talks to.
type remote struct {
	url, namespace string
}

// flags adds the flags that say which service is meant.
func (r *remote) flags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&r.url, "url", "", "the service's `URL`, with user:password@ where it asks for it (PACTWIRE_URL; default "+defaultServiceURL+")")
	cmd.PersistentFlags().StringVar(&r.namespace, "namespace", "default", "`name` of the namespace")
}

// client makes the generated client for the service.
func (r *remote) client() (*gen.ClientWithResponses, error) {
	u, err := url.Parse(cmp.Or(r.url, os.Getenv("PACTWIRE_URL"), defaultServiceURL))
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, usageError{fmt.Errorf("--url must be like %s", defaultServiceURL)}
	}
	user := u.User
	u.User = nil
	transport := http.DefaultTransport
	if user != nil {
		transport = authenticated{user}
	}
	client, err := gen.NewClientWithResponses(strings.TrimSuffix(u.String(), "/")+"/api/v1", gen.WithHTTPClient(&http.Client{Transport: transport}))
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	return client, nil
}

// authenticated sends a user's name and password with each request.
type authenticated struct{ user *url.Userinfo }

// RoundTrip implements http.RoundTripper.
func (a authenticated) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	password, _ := a.user.Password()
	r.SetBasicAuth(a.user.Username(), password)
	return http.DefaultTransport.RoundTrip(r) //nolint:wrapcheck // a transport passes errors on
}

// answerError words an answer that is not the wanted one.
func answerError(status string, body []byte) error {
	var problem gen.Error
	if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
		text := problem.Detail
		for _, f := range problem.Fields {
			text += fmt.Sprintf("\n  %s: %s", f.Path, f.Message)
		}
		return fmt.Errorf("%s (%s)", text, problem.Code)
	}
	return fmt.Errorf("the service answered %s", status)
}
