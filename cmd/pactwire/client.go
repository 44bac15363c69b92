package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

const (
	// clientFile is the one file of a generated package.
	clientFile = "client.gen.go"
	// maxDocument bounds a document: ten times that of the largest contract there can be.
	maxDocument = 256 << 20
	// documentTimeout bounds the fetching of a document.
	documentTimeout = time.Minute
)

// clientSource says what a client is generated from.
type clientSource struct {
	service, namespace, api string
	document                string // a file; instead of the others
}

func newClient() *cobra.Command {
	var from clientSource
	var out, name string
	cmd := &cobra.Command{
		Use:   "client (--api NAME | --document FILE) --out DIR",
		Short: "Write a typed Go client of a contract API",
		Long: "Write a Go package with a typed client of one contract API, generated with oapi-codegen from the API's OpenAPI document: a type for each method's input\n" +
			"and output, and a function for each query, invocation and listener. The package is one file, " + clientFile + "; it needs the standard library and\n" +
			"github.com/oapi-codegen/runtime, and no other code of Pactwire.",
		Example: "  pactwire client --api simple-storage --out storage\n" +
			"  pactwire client --document swagger.json --out internal/token --package token",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (from.api == "") == (from.document == "") {
				return usageError{errors.New("client takes the name of an API (--api) or a file (--document)")}
			}
			if out == "" {
				return usageError{errors.New("client needs the folder to write to (--out)")}
			}
			path, err := writeClient(cmd.Context(), from, out, name)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), path)
			return err
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&from.api, "api", "", "`name` of the contract API")
	flags.StringVar(&from.document, "document", "", "`file` with the API's OpenAPI document, JSON or YAML, instead of a running service")
	flags.StringVar(&out, "out", "", "`folder` of the package; made where it is missing")
	flags.StringVar(&name, "package", "", "`name` of the package; default: that of the folder")
	flags.StringVar(&from.service, "url", "", "the service's `URL` (PACTWIRE_URL; default "+defaultServiceURL+")")
	flags.StringVar(&from.namespace, "namespace", "default", "`name` of the namespace")
	return cmd
}

// writeClient generates a package into a folder and returns the path of its file.
func writeClient(ctx context.Context, from clientSource, out, name string) (string, error) {
	folder, err := filepath.Abs(out)
	if err != nil {
		return "", fmt.Errorf("find the folder %s: %w", out, err)
	}
	if name == "" {
		name = packageName(filepath.Base(folder))
	}
	if !isPackageName(name) {
		return "", usageError{fmt.Errorf("%q cannot be the name of a Go package; give one with --package", name)}
	}
	document, command, err := from.read(ctx, name)
	if err != nil {
		return "", err
	}
	code, err := clientCode(document, name, command)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // source code, for all who work on it
		return "", fmt.Errorf("make the folder of the package: %w", err)
	}
	path := filepath.Join(out, clientFile)
	if err := os.WriteFile(path, code, 0o644); err != nil { //nolint:gosec // source code, for all who work on it
		return "", fmt.Errorf("write the package: %w", err)
	}
	return path, nil
}

// read returns the document, and the arguments that make the package again from within its folder; there are none for a file, which may be elsewhere then.
func (s clientSource) read(ctx context.Context, name string) (document []byte, command []string, err error) {
	if s.document != "" {
		file, err := os.Open(s.document)
		if err != nil {
			return nil, nil, fmt.Errorf("read the document: %w", err)
		}
		defer file.Close()
		document, err := readDocument(file)
		return document, nil, err
	}
	service := cmp.Or(s.service, os.Getenv("PACTWIRE_URL"), defaultServiceURL)
	u, err := url.Parse(service)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, nil, usageError{fmt.Errorf("--url must be like %s", defaultServiceURL)}
	}
	if document, err = fetchDocument(ctx, u.JoinPath("api/v1/namespaces", s.namespace, "apis", s.api, "api/swagger.json")); err != nil {
		return nil, nil, err
	}
	command = []string{"client", "--api", s.api, "--out", ".", "--package", name}
	if s.namespace != "default" {
		command = append(command, "--namespace", s.namespace)
	}
	// The environment says where the service is, as for every other command; source code is no place for a password.
	if u.User = nil; s.service != "" && u.String() != defaultServiceURL {
		command = append(command, "--url", u.String())
	}
	return document, command, nil
}

// fetchDocument gets a document from the service. User and password in the address become credentials.
func fetchDocument(ctx context.Context, address *url.URL) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, documentTimeout)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("fetch the document: %w", err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, fmt.Errorf("fetch the document: %w", err)
	}
	defer response.Body.Close()
	body, err := readDocument(response.Body)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		var problem struct{ Detail string }
		if json.Unmarshal(body, &problem) == nil && problem.Detail != "" {
			return nil, fmt.Errorf("fetch the document: %s", problem.Detail)
		}
		return nil, fmt.Errorf("fetch the document: %s answered %s", address.Redacted(), response.Status)
	}
	return body, nil
}

func readDocument(from io.Reader) ([]byte, error) {
	document, err := io.ReadAll(io.LimitReader(from, maxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("read the document: %w", err)
	}
	if len(document) > maxDocument {
		return nil, fmt.Errorf("read the document: it is larger than %d MiB", maxDocument>>20)
	}
	return document, nil
}
