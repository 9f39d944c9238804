package actors

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// net/http runs over streams as it does over TCP.
func TestHTTPOverStreams(t *testing.T) {
	a, b := node(t), node(t)
	l, err := b.Listen("http")
	require.NoError(t, err)
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, r.Body) // the client sees what is missing
	})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(l) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return a.Dial(ctx, b.Address(), "http")
	}}
	client := &http.Client{Transport: transport, Timeout: patience}
	for _, size := range []int{0, 10, 1 << 20, 9 << 20} {
		body := strings.Repeat("x", size)
		got, err := client.Post("http://any/", "text/plain", strings.NewReader(body))
		require.NoError(t, err)
		back, err := io.ReadAll(got.Body)
		require.NoError(t, err)
		require.NoError(t, got.Body.Close())
		require.Len(t, back, size)
	}
	transport.CloseIdleConnections()
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	require.NoError(t, server.Shutdown(ctx))
	require.ErrorIs(t, <-served, http.ErrServerClosed)
	settled(t, "no stream is left", func() bool {
		a.streams.mu.Lock()
		defer a.streams.mu.Unlock()
		return len(a.streams.byID) == 0
	})
}
