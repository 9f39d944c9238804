package actors

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"
)

// TLSPaths names the files of a node's TLS, PEM all of them.
type TLSPaths struct {
	// Certificate is the node's own, with the intermediate ones behind it; Key is its private key.
	Certificate, Key string
	// Authorities are those that peers' certificates must come from.
	Authorities string
	// Logger is told when changed files cannot be used: then the ones before stay in force. It may be nil.
	Logger *zap.Logger
}

// ErrTLSFiles is wrapped by every error about the files of TLSPaths; the text names the file.
var ErrTLSFiles = errors.New("TLS files refused")

// tlsLookEvery is how often files are looked at, at most.
const tlsLookEvery = time.Second

// TLSFiles makes a Config.TLS of files, and follows them: each new connection sees what is in them, a second old
// at most, with no need to start the node again. Connections that are up stay as they are. The error
// wraps ErrTLSFiles.
func TLSFiles(paths TLSPaths) (*tls.Config, error) {
	if paths.Logger == nil {
		paths.Logger = zap.NewNop()
	}
	f := &tlsFiles{paths: paths}
	now, err := f.load()
	if err != nil {
		return nil, err
	}
	f.now, f.looked = now, time.Now()
	f.seen, _ = f.look()
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return f.current().pair, nil
		},
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := f.current()
			return &tls.Config{
				MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*now.pair},
				ClientCAs: now.trusted, ClientAuth: tls.RequireAndVerifyClientCert,
			}, nil
		},
		// A dialer's authorities cannot change inside a tls.Config: so the check that crypto/tls leaves out here is
		// done by trust, with those in force.
		InsecureSkipVerify: true,
		VerifyConnection:   f.trust,
	}, nil
}

// tlsFiles is what is in force of the files.
type tlsFiles struct {
	paths TLSPaths

	mu sync.Mutex
	// Owner of the rest: mu.
	now    *tlsMaterial
	seen   [3]tlsStamp
	looked time.Time
}

type tlsMaterial struct {
	pair    *tls.Certificate
	trusted *x509.CertPool
}

// tlsStamp changes with a file.
type tlsStamp struct {
	size    int64
	changed time.Time
}

// current looks at the files, unless it did so a moment ago.
func (f *tlsFiles) current() *tlsMaterial {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.looked) < tlsLookEvery {
		return f.now
	}
	f.looked = time.Now()
	seen, err := f.look()
	if err == nil && seen == f.seen {
		return f.now
	}
	fresh, failed := f.load()
	if err == nil {
		err = failed
	}
	if err != nil { // perhaps half of them are written: they are looked at again
		f.paths.Logger.Warn("changed TLS files cannot be used, the ones before stay in force", zap.Error(err))
		return f.now
	}
	f.now, f.seen = fresh, seen
	return f.now
}

func (f *tlsFiles) look() (seen [3]tlsStamp, err error) {
	for i, name := range []string{f.paths.Certificate, f.paths.Key, f.paths.Authorities} {
		info, err := os.Stat(name)
		if err != nil {
			return seen, fmt.Errorf("%w: %w", ErrTLSFiles, err)
		}
		seen[i] = tlsStamp{info.Size(), info.ModTime()}
	}
	return seen, nil
}

func (f *tlsFiles) load() (*tlsMaterial, error) {
	pair, err := tls.LoadX509KeyPair(f.paths.Certificate, f.paths.Key)
	if err != nil {
		return nil, fmt.Errorf("%w: %s with %s: %w", ErrTLSFiles, f.paths.Certificate, f.paths.Key, err)
	}
	text, err := os.ReadFile(f.paths.Authorities)
	if err != nil {
		return nil, fmt.Errorf("%w: the authorities: %w", ErrTLSFiles, err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("%w: %s has no certificate in it: want PEM", ErrTLSFiles, f.paths.Authorities)
	}
	return &tlsMaterial{pair: &pair, trusted: trusted}, nil
}

// trust is a dialer's check of its peer: a chain to an authority in force, for serving. The name
// is the endpoint's to check.
func (f *tlsFiles) trust(state tls.ConnectionState) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the peer shows no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{
		Roots: f.current().trusted, Intermediates: between,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return err
}
