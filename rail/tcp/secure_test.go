package tcp_test

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/internal/certs"
	"railyard/rail"
	"railyard/rail/railtest"
)

// settings are those of both ends: of the kind that the endpoint makes of a user's.
func settings(t testing.TB) (server, client *tls.Config) {
	t.Helper()
	a, err := certs.New("rails")
	require.NoError(t, err)
	cfg, err := a.Node("127.0.0.1")
	require.NoError(t, err)
	cfg.ClientCAs, cfg.ClientAuth, cfg.ServerName = cfg.RootCAs, tls.RequireAndVerifyClientCert, "127.0.0.1"
	cfg.SessionTicketsDisabled, cfg.DynamicRecordSizingDisabled = true, true
	return cfg, cfg
}

// secure encrypts a fresh connection.
func secure(t testing.TB, near, far rail.Conn) {
	t.Helper()
	server, client := settings(t)
	failed := make(chan error, 1)
	deadline := time.Now().Add(30 * time.Second)
	require.NoError(t, near.SetDeadline(deadline))
	require.NoError(t, far.SetDeadline(deadline))
	go func() {
		_, err := far.(rail.Securable).Secure(server, false)
		failed <- err
	}()
	state, err := near.(rail.Securable).Secure(client, true)
	require.NoError(t, err)
	require.NoError(t, <-failed)
	require.EqualValues(t, tls.VersionTLS13, state.Version)
	require.NoError(t, near.SetDeadline(time.Time{}))
	require.NoError(t, far.SetDeadline(time.Time{}))
}

// An encrypted rail keeps every promise of a plain one: no bracket is open while its reader waits, nothing lands late, and Kill ends
// it wherever it is.
func TestContractTLS(t *testing.T) {
	railtest.Contract(t, func(t *testing.T) railtest.Fixture {
		f := loopback(t)
		f.Prepare = func(t *testing.T, near, far rail.Conn) { secure(t, near, far) }
		f.Allocations = 400 // crypto/tls makes a few for each record of 16 KiB
		return f
	})
}
