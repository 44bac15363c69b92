package app_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pactwire/pactwire/app"
	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
)

// certificateFiles writes a self-signed certificate for 127.0.0.1 and its key.
func certificateFiles(t *testing.T) (certFile, keyFile string, roots *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	certFile, keyFile = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, content := range map[string][]byte{certFile: certPEM, keyFile: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(certPEM)
	return certFile, keyFile, roots
}

func TestItServesHTTPS(t *testing.T) {
	t.Parallel()
	chain := chaintest.New(t)
	certFile, keyFile, roots := certificateFiles(t)
	s := serve(t, chain, map[string]string{
		"database-url": pgtest.New(t), "pin-contract": pinContractOf(chain).Hex(), "tls-cert-file": certFile, "tls-key-file": keyFile,
	})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	response, err := client.Get(s.url + "/livez")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if s.url[:8] != "https://" || response.StatusCode != http.StatusOK || response.TLS == nil {
		t.Errorf("%s answered %d", s.url, response.StatusCode)
	}
}

func TestHalfACertificateIsRefused(t *testing.T) {
	t.Parallel()
	certFile, _, _ := certificateFiles(t)
	if _, err := app.Load(app.ModeDev, map[string]string{"tls-cert-file": certFile}, nil); err == nil {
		t.Error("a certificate without its key was accepted")
	}
}
