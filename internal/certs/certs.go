package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// skew is how much earlier than its making a certificate is valid: clocks differ.
const skew = time.Hour

// Authority issues certificates.
type Authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Leaf is a certificate with its key, in both forms that programs take.
type Leaf struct {
	TLS          tls.Certificate
	CertPEM, Key []byte
}

// Request says what a Leaf is to be good for.
type Request struct {
	// Names are host names and IP addresses.
	Names []string
	// For is how long it is valid from now on; negative: it expired so long ago. 0: a day.
	For time.Duration
}

// New makes an authority that is valid for a day.
func New(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certs: making the key of authority %s: %w", name, err)
	}
	now := time.Now()
	draft := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: now.Add(-skew), NotAfter: now.Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, draft, draft, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certs: making authority %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certs: reading authority %s back: %w", name, err)
	}
	return &Authority{cert: cert, key: key}, nil
}

// Pool trusts the authority and nobody else.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// PEM is the authority's certificate as a file has it.
func (a *Authority) PEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// Issue makes a leaf that may serve and call.
func (a *Authority) Issue(r Request) (*Leaf, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certs: making the key for %v: %w", r.Names, err)
	}
	if r.For == 0 {
		r.For = 24 * time.Hour
	}
	now := time.Now()
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("certs: choosing a number for %v: %w", r.Names, err)
	}
	draft := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "railyard node"},
		NotBefore: now.Add(min(0, r.For) - skew), NotAfter: now.Add(r.For), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, name := range r.Names {
		if ip := net.ParseIP(name); ip != nil {
			draft.IPAddresses = append(draft.IPAddresses, ip)
		} else {
			draft.DNSNames = append(draft.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, draft, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, fmt.Errorf("certs: signing for %v: %w", r.Names, err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("certs: writing the key for %v: %w", r.Names, err)
	}
	return &Leaf{
		TLS:     tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		CertPEM: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		Key:     pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}),
	}, nil
}

// Node makes the settings of a node that has the names, and trusts all of the authority's.
func (a *Authority) Node(names ...string) (*tls.Config, error) {
	leaf, err := a.Issue(Request{Names: names})
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{leaf.TLS}, RootCAs: a.Pool(), MinVersion: tls.VersionTLS13}, nil
}
