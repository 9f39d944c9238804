package actors

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/admin"
	"railyard/rail"
	"railyard/rma"
	"railyard/snapshot"
)

func TestASnapshotTellsWhatTheNodeDoes(t *testing.T) {
	a := node(t, func(c *Config) { c.Name = "north"; c.Rails = append(c.Rails, rail.TCP("127.0.0.1:0")) })
	b := node(t, func(c *Config) { c.Name = "south"; c.Rails = append(c.Rails, rail.TCP("127.0.0.1:0")) })
	_, got := b.inbox(t, "inbox")
	buf := make([]byte, 1<<20)
	region, err := b.Register(buf, rma.RemoteWrite|rma.RemoteRead)
	require.NoError(t, err)
	peer, err := a.Connect(testContext(t), b.Address())
	require.NoError(t, err)
	require.NoError(t, peer.Put(testContext(t), region.Key(), 0, make([]byte, 1<<20)))
	require.NoError(t, peer.Get(testContext(t), region.Key(), 0, make([]byte, 4096)))
	a.sys.Root.Send(b.at("inbox"), text("hello"))
	next(t, got, "the message")

	s := a.Snapshot()
	assert.Equal(t, "north", s.Name)
	assert.Equal(t, a.Address(), s.Address)
	assert.Len(t, s.Listening, 2)
	require.Len(t, s.Endpoints, 1)
	e := s.Endpoints[0]
	assert.Equal(t, "south", e.Name)
	assert.Equal(t, b.Address(), e.Peer)
	assert.NotZero(t, e.Window)
	require.NotEmpty(t, e.Rails)
	var out uint64
	for _, r := range e.Rails {
		out += r.BytesOut
	}
	assert.GreaterOrEqual(t, out, uint64(1<<20), "the put went over the rails")
	assert.Equal(t, s.Totals.Completed, e.Completed)
	assert.EqualValues(t, 2, s.Totals.Completed)
	assert.EqualValues(t, 1, s.Totals.Puts.Count())
	assert.EqualValues(t, 1, s.Totals.Gets.Count())
	assert.GreaterOrEqual(t, s.Totals.MessagesSent, uint64(1))
	assert.GreaterOrEqual(t, b.Snapshot().Totals.BytesIn, uint64(1<<20))
	assert.Equal(t, 1, b.Snapshot().Regions.Live)

	before := b.Snapshot().Totals
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	require.NoError(t, a.Shutdown(ctx))
	require.Eventually(t, func() bool { return len(b.Snapshot().Endpoints) == 0 }, patience, time.Millisecond)
	after := b.Snapshot().Totals
	assert.GreaterOrEqual(t, after.BytesIn, before.BytesIn, "what was counted with a peer outlives it")
	assert.GreaterOrEqual(t, after.MessagesReceived, before.MessagesReceived)
}

func TestTheAdminPageOfANode(t *testing.T) {
	a := node(t)
	assert.Empty(t, a.AdminURL(), "off by default")
	b := node(t, func(c *Config) { c.Admin = "127.0.0.1:0" })
	_, err := a.Connect(testContext(t), b.Address())
	require.NoError(t, err)
	get := func() snapshot.Node {
		r, err := http.NewRequestWithContext(testContext(t), http.MethodGet, b.AdminURL()+"api/state", nil)
		require.NoError(t, err)
		r.Close = true
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		var n snapshot.Node
		require.NoError(t, json.Unmarshal(text, &n))
		return n
	}
	require.Eventually(t, func() bool {
		n := get()
		return len(n.Endpoints) == 1 && n.Endpoints[0].Peer == a.Address() && len(n.Events) > 0
	}, patience, 100*time.Millisecond)
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	require.NoError(t, b.Shutdown(ctx))
	_, err = net.DialTimeout("tcp", strings.TrimSuffix(strings.TrimPrefix(b.AdminURL(), "http://"), "/"), patience)
	require.Error(t, err, "the page ends with its node")
}

func TestAdminSettingsThatAreRefused(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	for name, c := range map[string]struct {
		address, token string
		want           error
	}{
		"open":            {"0.0.0.0:0", "", admin.ErrOpen},
		"short token":     {"127.0.0.1:0", "x", admin.ErrToken},
		"no address":      {"page", "", admin.ErrAddress},
		"token alone":     {"", "0123456789abcdef", ErrConfig},
		"taken elsewhere": {taken.Addr().String(), "", admin.ErrListen},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := loopback(1)
			cfg.Admin, cfg.AdminToken = c.address, c.token
			sys := quietSystem()
			defer sys.Shutdown()
			_, err := Start(sys, cfg)
			require.ErrorIs(t, err, c.want)
			require.ErrorIs(t, err, ErrConfig)
			require.Contains(t, err.Error(), "Admin")
		})
	}
}
