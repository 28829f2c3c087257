//go:build unix

package main_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/integration/server"
)

// certificate writes one that signs itself, for 127.0.0.1, and its key.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, bytes []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "EC PRIVATE KEY", secret)
}

// freeAddr is one that nobody listens on, or did a moment ago.
func freeAddr(t *testing.T) (addr, port string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return l.Addr().String(), port
}

func TestTLSAndSocketAddresses(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	addr, port := freeAddr(t)
	dir, err := os.MkdirTemp("", "hf") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "s")
	s := siteOn(t, server.Start(t, server.Args("--unixsocket", socket, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert)))
	s.lock(s.client("web").Mutex("x"))

	s.want(0, []string{"ls", "--redis", "unix://" + socket}, "mutex")
	secure := []string{"ls", "--redis", "rediss://" + addr, "--timeout", "2s"}
	s.want(0, append(secure, "--tls-ca", cert, "--tls-cert", cert, "--tls-key", key), "mutex")
	s.want(0, append(secure, "--tls-skip-verify", "--tls-cert", cert, "--tls-key", key), "mutex")
	s.want(1, secure, "certificate", "--tls-ca FILE")
	s.want(1, append(secure, "--tls-ca", cert), "certificate") // the server wants the client's
	s.want(2, append(secure, "--tls-ca", key), "no PEM certificate")
	s.want(1, []string{"ls", "--redis", s.url, "--tls", "--timeout", "300ms"}, "TLS on one side only?")
}
