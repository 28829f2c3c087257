// Package connect makes a go-redis client from an address and what else the command line says about the connection.
package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
)

// Form is how servers stand together.
type Form string

// The forms.
const (
	Standalone Form = "standalone"
	Sentinel   Form = "sentinel"
	Cluster    Form = "cluster"
)

// Options is what the command line says besides the address.
type Options struct {
	Timeout    time.Duration // for a connection to be made, and for an answer
	TLS        bool          // whatever the scheme
	CA         string        // file with the certificates to trust; empty: the system's
	Cert, Key  string        // files of the client's own certificate
	SkipVerify bool
}

// Target is a Redis that is connected to on first use.
type Target struct {
	redis.UniversalClient
	Address string // without secrets
	Form    Form
	// Sentinels are the options of a client for each sentinel, and Master is what they call the master.
	Sentinels []*redis.Options
	Master    string
}

// Open understands an address; see the help topic "connection". It does no I/O but to read certificates.
func Open(text string, o Options) (*Target, error) {
	logging.Disable() // go-redis reports each failed dial; the command says once what went wrong
	a, err := parse(text)
	if err != nil {
		return nil, err
	}
	target := &Target{Address: a.String(), Form: a.form}
	switch a.form {
	case Sentinel:
		err = target.openSentinel(a, o)
	case Cluster:
		err = target.openCluster(a, o)
	default:
		err = target.openStandalone(a, o)
	}
	return target, err
}

func (t *Target) openStandalone(a *address, o Options) error {
	r, err := a.standalone()
	if err != nil {
		return err
	}
	if r.TLSConfig, err = o.tls(r.TLSConfig); err != nil {
		return err
	}
	o.bound(&r.DialTimeout, &r.ReadTimeout, &r.WriteTimeout, &r.DialerRetries, &r.MaxRetries)
	t.UniversalClient = redis.NewClient(r)
	return nil
}

func (t *Target) openCluster(a *address, o Options) error {
	r, err := a.cluster()
	if err != nil {
		return err
	}
	if r.TLSConfig, err = o.tls(r.TLSConfig); err != nil {
		return err
	}
	o.bound(&r.DialTimeout, &r.ReadTimeout, &r.WriteTimeout, &r.DialerRetries, &r.MaxRetries)
	t.UniversalClient = redis.NewClusterClient(r)
	return nil
}

func (t *Target) openSentinel(a *address, o Options) error {
	r, err := a.sentinel()
	if err != nil {
		return err
	}
	if r.TLSConfig, err = o.tls(r.TLSConfig); err != nil {
		return err
	}
	o.bound(&r.DialTimeout, &r.ReadTimeout, &r.WriteTimeout, &r.DialerRetries, &r.MaxRetries)
	t.Master = r.MasterName
	for _, addr := range r.SentinelAddrs {
		t.Sentinels = append(t.Sentinels, &redis.Options{
			Addr: addr, Username: r.SentinelUsername, Password: r.SentinelPassword, TLSConfig: r.TLSConfig,
			DialTimeout: r.DialTimeout, ReadTimeout: r.ReadTimeout, DialerRetries: 1, MaxRetries: -1,
		})
	}
	t.UniversalClient = redis.NewFailoverClient(r)
	return nil
}

// bound keeps go-redis from trying for long: somebody waits for an answer. What the address says stays.
func (o Options) bound(dial, read, write *time.Duration, dials, retries *int) {
	for _, d := range []*time.Duration{dial, read, write} {
		if *d == 0 {
			*d = o.Timeout
		}
	}
	if *dials == 0 {
		*dials = 1
	}
	if *retries == 0 {
		*retries = 1
	}
}

// tls completes what go-redis made of the scheme. The name to verify is left to each connection: go-redis puts in the
// first host's, which is wrong for the others.
func (o Options) tls(parsed *tls.Config) (*tls.Config, error) {
	if parsed == nil && !o.TLS {
		if o.CA != "" || o.Cert != "" || o.SkipVerify {
			return nil, errors.New("TLS options need rediss:// or --tls")
		}
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: o.SkipVerify || parsed != nil && parsed.InsecureSkipVerify}
	if o.CA != "" {
		pem, err := os.ReadFile(o.CA)
		if err != nil {
			return nil, err
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("%s has no PEM certificate", o.CA)
		}
	}
	if o.Cert != "" || o.Key != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
