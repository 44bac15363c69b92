package app

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"
)

// TLSConfig names the files of the certificate. Without any, the service speaks plain HTTP.
type TLSConfig struct {
	CertFile string // PEM, with the intermediate certificates
	KeyFile  string // PEM
}

// Enabled tells whether the service speaks HTTPS.
func (t TLSConfig) Enabled() bool { return t.CertFile != "" }

// certificateAge is how often the files are looked at: certificates are renewed while a service runs for years.
const certificateAge = time.Minute

// certificate is what the files hold. It takes over a renewed certificate without a restart, and keeps the old one while the new files do not fit
// together.
type certificate struct {
	files TLSConfig
	log   *slog.Logger

	mu      sync.Mutex
	current *tls.Certificate
	looked  time.Time
	changed time.Time // of the newer of the two files
}

func openCertificate(files TLSConfig, log *slog.Logger) (*certificate, error) {
	c := &certificate{files: files, log: log}
	changed, err := c.modified()
	if err == nil {
		err = c.load(changed)
	}
	if err != nil {
		return nil, fmt.Errorf("read the TLS certificate: %w", err)
	}
	c.looked = time.Now()
	return c, nil
}

func (c *certificate) load(changed time.Time) error {
	loaded, err := tls.LoadX509KeyPair(c.files.CertFile, c.files.KeyFile)
	if err != nil {
		return err //nolint:wrapcheck // the caller says what it is about
	}
	c.current, c.changed = &loaded, changed
	return nil
}

func (c *certificate) modified() (time.Time, error) {
	var newest time.Time
	for _, path := range []string{c.files.CertFile, c.files.KeyFile} {
		info, err := os.Stat(path)
		if err != nil {
			return newest, err //nolint:wrapcheck // the caller says what it is about
		}
		if info.ModTime().After(newest) {
			newest = info.ModTime()
		}
	}
	return newest, nil
}

// get implements tls.Config.GetCertificate.
func (c *certificate) get(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateAge {
		return c.current, nil
	}
	c.looked = time.Now()
	c.renew(hello.Context())
	return c.current, nil
}

// renew takes over newer files. c.mu is held.
func (c *certificate) renew(ctx context.Context) {
	changed, err := c.modified()
	if err == nil && !changed.After(c.changed) {
		return
	}
	if err == nil {
		err = c.load(changed)
	}
	if err != nil {
		c.log.ErrorContext(ctx, "the renewed TLS certificate cannot be used; the old one stays", "error", err)
		return
	}
	c.log.InfoContext(ctx, "took over a renewed TLS certificate")
}
