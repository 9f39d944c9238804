package top

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/rail"
	"railyard/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var rewrite = flag.Bool("rewrite", false, "write the golden screens anew")

// twoLooks are two snapshots of a node, a second apart: three rails to one peer, one of them down, and a peer with a nasty name.
func twoLooks() (before, after *snapshot.Node) {
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	times := func(n uint64) snapshot.Times {
		t := snapshot.Times{Buckets: make([]uint64, 24)}
		t.Buckets[8], t.Buckets[12] = 60*n, 3*n
		return t
	}
	look := func(second uint64) *snapshot.Node {
		n := &snapshot.Node{
			At: at.Add(time.Duration(second) * time.Second), Started: at.Add(-3 * time.Hour), Name: "north", Address: "10.0.0.1:7400",
			Incarnation: "one", Version: "v1.2.3", Regions: snapshot.Regions{Live: 24, Limit: 1048576},
			Totals: snapshot.Totals{BytesOut: 90e6 * second, BytesIn: 41e6 * second, MessagesSent: 4160 * second, MessagesReceived: 4159 * second,
				Completed: 63 * second, Puts: times(second), Messages: times(second)},
		}
		for p, name := range []string{"south", "we\x1b[31mst"} {
			e := snapshot.Endpoint{Peer: fmt.Sprintf("10.0.0.%d:7400", p+2), Name: name, Window: 64 << 20, UnderWay: 1 << 20, Open: 6}
			for i := range 3 {
				r := snapshot.Rail{ID: uint32(i), Kind: "tcp", Local: fmt.Sprintf("10.%d.0.1:7400", i), Remote: fmt.Sprintf("10.%d.0.%d:7400", i, p+2),
					State: rail.Up, Generation: 3, Weight: 1, Rate: 1.1e9, RoundTrip: 180 * int64(i+1), InFlight: 65536, Since: 70000,
					BytesOut: uint64(i+1) * 15e6 * second, BytesIn: uint64(i+1) * 7e6 * second}
				if p == 0 && i == 1 {
					r.State, r.Reason, r.Weight, r.InFlight, r.Restarts, r.Since = rail.Down, "no answer for 120 ms", 0, 0, 2, 900
				}
				e.Rails = append(e.Rails, r)
			}
			n.Endpoints = append(n.Endpoints, e)
		}
		gap, away := 71.4, 2310.0
		n.Failovers = []snapshot.Failover{
			{At: at.Add(-time.Minute), Peer: "10.0.0.2:7400", Rail: 1, Generation: 1, Cause: "connection reset", GapMs: &gap, OutageMs: &away, Rerouted: 812345},
			{At: at, Peer: "10.0.0.2:7400", Rail: 1, Generation: 3, Cause: "no answer for 120 ms"},
		}
		n.Events = []snapshot.Event{
			{Sequence: 1, At: at.Add(-time.Hour), Kind: "EndpointUp", Peer: "10.0.0.2:7400"},
			{Sequence: 2, At: at, Kind: "RailDown", Peer: "10.0.0.2:7400", Rail: 1, Generation: 3, Cause: "no answer for 120 ms"},
		}
		return n
	}
	return look(10), look(11)
}

func frame() *Frame {
	var m Memory
	before, after := twoLooks()
	m.Frame(before)
	return m.Frame(after)
}

// The screens of the two usual sizes, as they are.
func TestScreens(t *testing.T) {
	for _, s := range []Screen{{Width: 80, Height: 24}, {Width: 200, Height: 50}, {Width: 80, Height: 24, Color: true}} {
		name := fmt.Sprintf("%dx%d", s.Width, s.Height)
		if s.Color {
			name += "-color"
		}
		t.Run(name, func(t *testing.T) {
			lines := Lines(frame(), s)
			assert.Len(t, lines, s.Height)
			got := strings.Join(lines, "\n") + "\n"
			path := filepath.Join("testdata", name+".golden")
			if *rewrite {
				require.NoError(t, os.WriteFile(path, []byte(got), 0o600))
			}
			want, err := os.ReadFile(path)
			require.NoError(t, err)
			assert.Equal(t, string(want), got, "go test ./cmd/railyard/internal/top -rewrite, and look at the difference")
		})
	}
}

func TestEverySizeHolds(t *testing.T) {
	f := frame()
	for _, width := range []int{0, 1, 2, 15, 40, 79, 80, 109, 110, 130, 150, 180, 200, 219} {
		for _, height := range []int{0, 1, 2, 5, 10, 24, 100} {
			for _, scroll := range []int{0, 3, 7} {
				lines := Lines(f, Screen{Width: width, Height: height, Scroll: scroll})
				if height > 0 {
					require.Len(t, lines, height, "%dx%d", width, height)
				}
				for _, line := range lines {
					require.LessOrEqual(t, len([]rune(line)), width)
					require.NotContains(t, line, "\x1b", "what a peer calls itself commands no terminal")
				}
			}
		}
	}
}

func TestTroubleComesFirst(t *testing.T) {
	f := frame()
	assert.Equal(t, rail.Down, f.rails[0].State)
	assert.InDelta(t, 30e6, f.rails[0].out, 1)
	well, all := f.working()
	assert.Equal(t, 5, well)
	assert.Equal(t, 6, all)
	var m Memory
	before, after := twoLooks()
	m.Frame(before)
	after.Incarnation = "two"
	assert.Zero(t, m.Frame(after).out, "another life of the node is not compared")
}

// serve is a node's page that answers as it is told.
func serve(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

func TestWhatMayAnswer(t *testing.T) {
	_, after := twoLooks()
	text, err := json.Marshal(after)
	require.NoError(t, err)
	for name, c := range map[string]struct {
		status int
		body   string
		want   error
	}{
		"a node": {200, string(text), nil}, "a token": {401, "", ErrToken}, "nonsense": {200, "<html>", ErrAnswer}, "nothing": {404, "", ErrAnswer},
	} {
		t.Run(name, func(t *testing.T) {
			n, err := At(serve(t, func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "Bearer secret", r.Header.Get("Authorization"))
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.body))
			}), "secret")
			require.NoError(t, err)
			got, err := n.Look(t.Context())
			if c.want != nil {
				require.ErrorIs(t, err, c.want)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "north", got.Name)
		})
	}
	for _, address := range []string{"", "host", "ftp://host:1", "http://", ":x"} {
		_, err := At(address, "")
		require.ErrorIs(t, err, ErrAddress, address)
	}
	n, err := At("127.0.0.1:1", "")
	require.NoError(t, err)
	_, err = n.Look(t.Context())
	require.ErrorIs(t, err, ErrAnswer)
}

func TestKeysAndTrouble(t *testing.T) {
	m := &model{ctx: t.Context(), screen: Screen{Width: 80, Height: 24}}
	before, after := twoLooks()
	m.frame = m.memory.Frame(before)
	m.Update(tea.WindowSizeMsg{Width: 200, Height: 50})
	assert.Equal(t, 200, m.screen.Width)
	m.Update(looked{node: after})
	assert.Contains(t, m.View().Content, "out 90.0 MB/s")
	m.Update(looked{err: ErrAnswer})
	assert.Contains(t, m.View().Content, "trying again")
	assert.True(t, m.View().AltScreen)
	for key, scroll := range map[string]int{"end": 5, "home": 0, "pgdown": 5} {
		m.key(key)
		assert.Equal(t, scroll, m.screen.Scroll, key)
		m.key("home")
	}
	m.key("space")
	assert.True(t, m.paused)
	assert.Contains(t, m.View().Content, "paused")
	assert.NotNil(t, m.key("q"))
}

// discard is a terminal that nobody looks at.
type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func TestRunEndsWithItsContext(t *testing.T) {
	_, after := twoLooks()
	text, err := json.Marshal(after)
	require.NoError(t, err)
	n, err := At(serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(text) }), "")
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	in, typist, err := os.Pipe()
	require.NoError(t, err)
	defer typist.Close()
	defer in.Close()
	require.NoError(t, Run(ctx, Options{Node: n, In: in, Out: discard{}}))
	time.Sleep(lookEvery + 100*time.Millisecond) // the last wait, which nobody needs any more
}

func TestOncePrintsRates(t *testing.T) {
	before, after := twoLooks()
	looks := 0
	n, err := At(serve(t, func(w http.ResponseWriter, _ *http.Request) {
		looks++
		s := before
		if looks > 1 {
			s = after
		}
		assert.NoError(t, json.NewEncoder(w).Encode(s))
	}), "")
	require.NoError(t, err)
	var out strings.Builder
	require.NoError(t, Once(t.Context(), Options{Node: n, Out: &out}, 100))
	assert.Contains(t, out.String(), "out 90.0 MB/s  in 41.0 MB/s")
	assert.NotContains(t, out.String(), "q quit")
}
