package actors

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"

	"railyard/internal/certs"
	"railyard/rma"
)

// tlsFolder is where a node's files are.
type tlsFolder struct {
	TLSPaths
	t testing.TB
}

func newTLSFolder(t testing.TB) tlsFolder {
	dir := t.TempDir()
	return tlsFolder{t: t, TLSPaths: TLSPaths{Certificate: filepath.Join(dir, "node.pem"), Key: filepath.Join(dir, "node.key"),
		Authorities: filepath.Join(dir, "ca.pem")}}
}

// issue writes a certificate of the authority, and trusts it.
func (f tlsFolder) issue(a *certs.Authority) {
	f.t.Helper()
	leaf, err := a.Issue(certs.Request{Names: []string{"127.0.0.1"}})
	require.NoError(f.t, err)
	for name, text := range map[string][]byte{f.Certificate: leaf.CertPEM, f.Key: leaf.Key, f.Authorities: a.PEM()} {
		require.NoError(f.t, os.WriteFile(name, text, 0o600))
	}
}

func withTLS(t testing.TB, f tlsFolder) func(*Config) {
	t.Helper()
	cfg, err := TLSFiles(f.TLSPaths)
	require.NoError(t, err)
	return func(c *Config) { c.TLS, c.RequireTLS, c.Secret = cfg, true, nil }
}

func newAuthority(t testing.TB) *certs.Authority {
	t.Helper()
	a, err := certs.New("a test")
	require.NoError(t, err)
	return a
}

// putTo writes to a fresh region of the other node.
func putTo(t testing.TB, from, to testNode) error {
	t.Helper()
	region, err := to.Register(make([]byte, 8), rma.RemoteWrite)
	require.NoError(t, err)
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	e, err := from.Connect(ctx, to.Address())
	if err != nil {
		return err
	}
	return e.Put(ctx, region.Key(), 0, []byte("in bytes"))
}

// Nodes with files of one authority are peers. When the files change, those that come after see the new ones, and what
// is up stays up.
func TestTLSFilesAreFollowed(t *testing.T) {
	old, fresh := newAuthority(t), newAuthority(t)
	server, client := newTLSFolder(t), newTLSFolder(t)
	server.issue(old)
	client.issue(old)
	b := node(t, withTLS(t, server))
	first := node(t, withTLS(t, client))
	require.NoError(t, putTo(t, first, b))

	server.issue(fresh)
	client.issue(fresh)
	require.Eventually(t, func() bool { // files are looked at once a second
		late := node(t, withTLS(t, client), func(c *Config) { c.OutageLimit = 300 * time.Millisecond })
		return putTo(t, late, b) == nil
	}, patience, 100*time.Millisecond, "the new authority is trusted, and the new certificate shown")
	require.NoError(t, putTo(t, first, b), "the old rail is up as it was")
}

// Files that do not go together are refused, and do not displace those that do.
func TestTLSFilesThatAreBroken(t *testing.T) {
	a := newAuthority(t)
	f := newTLSFolder(t)
	_, err := TLSFiles(f.TLSPaths)
	require.ErrorIs(t, err, ErrTLSFiles)
	require.ErrorContains(t, err, "node.pem")
	f.issue(a)
	require.NoError(t, os.WriteFile(f.Authorities, []byte("nobody"), 0o600))
	_, err = TLSFiles(f.TLSPaths)
	require.ErrorIs(t, err, ErrTLSFiles)
	require.ErrorContains(t, err, "ca.pem")
	f.issue(a)
	core, seen := observer.New(zapcore.WarnLevel)
	f.Logger = zap.New(core)
	cfg, err := TLSFiles(f.TLSPaths)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(f.Certificate, []byte("half a cert"), 0o600))
	require.Eventually(t, func() bool {
		pair, err := cfg.GetClientCertificate(nil)
		assert.NoError(t, err)
		assert.NotEmpty(t, pair.Certificate)
		return seen.Len() > 0
	}, patience, 50*time.Millisecond)
}

// Neither secret nor TLS is said once where others can reach the node, and not where nobody can.
func TestOpenNodeOnLoopbackIsNotWarnedOf(t *testing.T) {
	core, seen := observer.New(zapcore.WarnLevel)
	node(t, func(c *Config) { c.Secret, c.Logger = nil, zap.New(core) })
	require.Zero(t, seen.FilterMessageSnippet("no Secret and no TLS").Len())
}
