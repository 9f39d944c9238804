package admin

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/rail"
	"railyard/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// looked is a page over a node that counts how often it is looked at.
type looked struct {
	*Server
	times atomic.Int64
}

func newLooked(t testing.TB, cfg Config) *looked {
	l := &looked{}
	cfg.Look = func() snapshot.Node {
		return snapshot.Node{Name: fmt.Sprintf("look %d", l.times.Add(1)), Endpoints: []snapshot.Endpoint{}}
	}
	if cfg.Address == "" {
		cfg.Address = "127.0.0.1:0"
	}
	var err error
	l.Server, err = Start(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return l
}

// client keeps no connection, and follows nothing.
var client = &http.Client{Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// ask makes a request; edit may be nil.
func ask(t testing.TB, method, to, body string, edit func(*http.Request)) (int, string, http.Header) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, to, strings.NewReader(body))
	require.NoError(t, err)
	if edit != nil {
		edit(r)
	}
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	return answer.StatusCode, string(text), answer.Header
}

func TestWhereAPageMayListen(t *testing.T) {
	token := strings.Repeat("x", minToken)
	for _, c := range []struct {
		address, token string
		want           error
	}{
		{"127.0.0.1:0", "", nil}, {"[::1]:7480", "", nil}, {"0.0.0.0:7480", token, nil}, {"10.0.0.1:7480", token, nil},
		{"0.0.0.0:7480", "", ErrOpen}, {"[::]:7480", "", ErrOpen}, {"10.0.0.1:7480", "", ErrOpen},
		{"127.0.0.1:0", "secret", ErrToken}, {"localhost:7480", "", ErrAddress}, {":7480", token, ErrAddress}, {"", "", ErrAddress},
	} {
		if c.want == nil {
			assert.NoError(t, Validate(c.address, c.token), c.address)
		} else {
			assert.ErrorIs(t, Validate(c.address, c.token), c.want, c.address)
		}
	}
	l := newLooked(t, Config{})
	_, err := Start(Config{Address: strings.TrimSuffix(strings.TrimPrefix(l.URL(), "http://"), "/"), Look: l.cfg.Look})
	require.ErrorIs(t, err, ErrListen)
	_, err = Start(Config{Address: "127.0.0.1:0", Panels: []Panel{{Name: "a"}, {Name: "a"}}})
	require.ErrorIs(t, err, ErrPanel)
	_, err = Start(Config{Address: "127.0.0.1:0", Panels: []Panel{{Name: "../a"}}})
	require.ErrorIs(t, err, ErrPanel)
}

// elsewhere are addresses of other hosts, but for the names of XML, which nobody asks for.
var elsewhere = regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]{2,}[^\s"']*`)

func TestThePageAsksNoOtherHost(t *testing.T) {
	l := newLooked(t, Config{})
	names := []string{""}
	for name := range embedded() {
		names = append(names, name)
	}
	require.Greater(t, len(names), 8)
	for _, name := range names {
		code, text, h := ask(t, "GET", l.URL()+name, "", nil)
		assert.Equal(t, http.StatusOK, code, name)
		assert.NotEmpty(t, text, name)
		assert.Contains(t, h.Get("Content-Security-Policy"), "default-src 'none'", name)
		for _, to := range elsewhere.FindAllString(text, -1) {
			assert.True(t, strings.HasPrefix(to, "http://www.w3.org/") || strings.HasPrefix(name, "uplot"), "%s names %s", name, to)
		}
		code, _, _ = ask(t, "GET", l.URL()+name, "", func(r *http.Request) { r.Header.Set("If-None-Match", h.Get("ETag")) })
		assert.Equal(t, http.StatusNotModified, code, name)
	}
	code, _, _ := ask(t, "GET", l.URL()+"nothing", "", nil)
	assert.Equal(t, http.StatusNotFound, code)
	assert.Zero(t, l.times.Load(), "files cost the node nothing")
}

func TestOneSnapshotIsForAll(t *testing.T) {
	l := newLooked(t, Config{})
	var wait, reading = make(chan struct{}), 8
	for range reading {
		go func() {
			defer func() { wait <- struct{}{} }()
			for range 4 {
				l.state.now()
			}
		}()
	}
	for range reading {
		<-wait
	}
	first, number, left := l.state.now()
	assert.LessOrEqual(t, left, sampleEvery)
	l.state.taken = l.state.taken.Add(-sampleEvery)
	second, next, _ := l.state.now()
	assert.Equal(t, number+1, next)
	assert.NotEqual(t, string(first), string(second))
	assert.LessOrEqual(t, l.times.Load(), int64(next), "no look without a snapshot")
}

// stream reads snapshots off a stream until it has so many.
func stream(ctx context.Context, t *testing.T, to string, many int) (names []string) {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to+"api/stream", nil)
	require.NoError(t, err)
	answer, err := client.Do(r)
	require.NoError(t, err)
	defer answer.Body.Close()
	require.Equal(t, http.StatusOK, answer.StatusCode)
	lines := bufio.NewScanner(answer.Body)
	for len(names) < many && lines.Scan() {
		if text, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			var n snapshot.Node
			require.NoError(t, json.Unmarshal([]byte(text), &n))
			names = append(names, n.Name)
		}
	}
	return names
}

func TestAStreamBringsEachSnapshotOnce(t *testing.T) {
	l := newLooked(t, Config{})
	names := stream(t.Context(), t, l.URL(), 3)
	assert.Equal(t, []string{"look 1", "look 2", "look 3"}, names)
	require.Eventually(t, func() bool { return len(l.viewers) == 0 }, patience, time.Millisecond, "the viewer has gone")
	looks := l.times.Load()
	time.Sleep(2 * sampleEvery)
	assert.LessOrEqual(t, l.times.Load(), looks+1, "nobody looks, and nothing runs")
	for range maxViewers {
		l.viewers <- struct{}{}
	}
	code, text, _ := ask(t, "GET", l.URL()+"api/stream", "", nil)
	assert.Equal(t, http.StatusServiceUnavailable, code)
	assert.Contains(t, text, "viewers")
	for range maxViewers {
		<-l.viewers
	}
}

func TestEventsAndMetricsAreThere(t *testing.T) {
	events := rail.NewEvents()
	l := newLooked(t, Config{Events: events})
	events.Publish(rail.Event{Kind: rail.RailDown, Peer: "peer", Cause: errors.New("<cable>")})
	require.Eventually(t, func() bool {
		_, text, _ := ask(t, "GET", l.URL()+"api/state", "", nil)
		return strings.Contains(text, "<cable>")
	}, patience, 100*time.Millisecond)
	require.Eventually(t, func() bool {
		_, text, _ := ask(t, "GET", l.URL()+"metrics", "", nil)
		return strings.Contains(text, `railyard_events_total{kind="RailDown"} 1`) && strings.Contains(text, "railyard_endpoints 0") &&
			strings.Contains(text, "go_goroutines")
	}, patience, 100*time.Millisecond)
}

func TestPanels(t *testing.T) {
	var said atomic.Value
	l := newLooked(t, Config{Panels: []Panel{{
		Name: "demo", Script: []byte("export default {}"), State: func() any { return map[string]int{"lost": 0} },
		Act: func(_ context.Context, command string) error {
			said.Store(command)
			if command == "fail" {
				return errors.New("no such cable")
			}
			return nil
		}}, {Name: "odd", State: func() any { return func() {} }}}})
	_, text, _ := ask(t, "GET", l.URL()+"api/state", "", nil)
	assert.Contains(t, text, `"demo":{"lost":0}`)
	assert.Contains(t, text, `"odd":{"error":`)
	_, text, _ = ask(t, "GET", l.URL()+"panels.js", "", nil)
	assert.Equal(t, "export default [\"demo\"];\n", text)
	code, text, _ := ask(t, "GET", l.URL()+"panel/demo.js", "", nil)
	assert.Equal(t, http.StatusOK, code)
	assert.Equal(t, "export default {}", text)
	code, _, _ = ask(t, "POST", l.URL()+"panel/demo", " cut 1 reset\n", nil)
	assert.Equal(t, http.StatusNoContent, code)
	assert.Equal(t, "cut 1 reset", said.Load())
	code, text, _ = ask(t, "POST", l.URL()+"panel/demo", "fail", nil)
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Contains(t, text, "no such cable")
	code, _, _ = ask(t, "POST", l.URL()+"panel/demo", strings.Repeat("x", maxCommand+1), nil)
	assert.Equal(t, http.StatusBadRequest, code)
	assert.Equal(t, "fail", said.Load(), "what is too long is not carried out")
	code, _, _ = ask(t, "POST", l.URL()+"panel/odd", "x", nil)
	assert.NotEqual(t, http.StatusNoContent, code, "it takes no commands")
}

// A page of another site can reach loopback through the browser of whoever looks at it: it gets nothing, and commands nothing.
func TestOtherSitesGetNothing(t *testing.T) {
	acted := false
	l := newLooked(t, Config{Panels: []Panel{{Name: "demo", Act: func(context.Context, string) error { acted = true; return nil }}}})
	for _, host := range []string{"evil.example", "evil.example:80", "10.0.0.1:7480", "127.0.0.1.evil.example", ""} {
		code, text, _ := ask(t, "GET", l.URL()+"api/state", "", func(r *http.Request) {
			r.Host = host
			if host == "" {
				r.Host = "0.0.0.0"
			}
		})
		assert.Equal(t, http.StatusMisdirectedRequest, code, host)
		assert.NotContains(t, text, "look")
	}
	for _, host := range []string{"localhost:1", "127.0.0.2", "[::1]:80", "localhost"} {
		code, _, _ := ask(t, "GET", l.URL()+"api/state", "", func(r *http.Request) { r.Host = host })
		assert.Equal(t, http.StatusOK, code, host)
	}
	for name, value := range map[string]string{"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"} {
		code, _, _ := ask(t, "POST", l.URL()+"panel/demo", "cut all", func(r *http.Request) { r.Header.Set(name, value) })
		assert.Equal(t, http.StatusForbidden, code, name)
	}
	assert.False(t, acted)
}

func TestATokenIsAskedFor(t *testing.T) {
	token := "0123456789abcdef-right"
	l := newLooked(t, Config{Token: token})
	get := func(edit func(*http.Request)) int {
		code, text, _ := ask(t, "GET", l.URL()+"api/state", "", edit)
		assert.Equal(t, code == http.StatusOK, strings.Contains(text, "look"))
		return code
	}
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	assert.Equal(t, http.StatusUnauthorized, get(nil))
	assert.Equal(t, http.StatusUnauthorized, get(bearer("0123456789abcdef-wrong")))
	assert.Equal(t, http.StatusUnauthorized, get(func(r *http.Request) { r.AddCookie(&http.Cookie{Name: cookieName, Value: token}) }))
	assert.Equal(t, http.StatusOK, get(bearer(token)))
	assert.Equal(t, http.StatusOK, get(func(r *http.Request) { bearer(token)(r); r.Host = "node.example" }), "any name will do")

	form := func(token string) (int, http.Header) {
		code, _, h := ask(t, "POST", l.URL()+"login", url.Values{"token": {token}}.Encode(), func(r *http.Request) {
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			r.Header.Set("Accept", "text/html")
		})
		return code, h
	}
	code, text, _ := ask(t, "GET", l.URL(), "", func(r *http.Request) { r.Header.Set("Accept", "text/html") })
	assert.Equal(t, http.StatusUnauthorized, code)
	assert.Contains(t, text, `name="token"`)
	code, h := form("nonsense")
	assert.Equal(t, http.StatusUnauthorized, code)
	assert.Empty(t, h.Get("Set-Cookie"))
	code, h = form(token)
	assert.Equal(t, http.StatusSeeOther, code)
	cookie := h.Get("Set-Cookie")
	assert.Contains(t, cookie, "HttpOnly")
	assert.Contains(t, cookie, "SameSite=Strict")
	assert.NotContains(t, cookie, token)
	pass := func(r *http.Request) { r.Header.Set("Cookie", strings.SplitN(cookie, ";", 2)[0]) }
	assert.Equal(t, http.StatusOK, get(pass))
	for range 3 * maxGuesses {
		form("nonsense")
	}
	code, _ = form(token)
	assert.Equal(t, http.StatusTooManyRequests, code, "who guesses has to wait")
	assert.Equal(t, http.StatusOK, get(pass), "who is in stays in")
}

func TestCloseEndsWhatIsOpen(t *testing.T) {
	l := newLooked(t, Config{})
	done := make(chan []string, 1)
	go func() { done <- stream(context.WithoutCancel(t.Context()), t, l.URL(), 1000) }()
	require.Eventually(t, func() bool { return len(l.viewers) == 1 }, patience, time.Millisecond)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close(), "once more does nothing")
	select {
	case <-done:
	case <-time.After(patience):
		t.Fatal("the stream goes on")
	}
}

// BenchmarkSample is one snapshot of 200 peers with five rails each, serialized: what a node pays twice a second while somebody looks.
func BenchmarkSample(b *testing.B) {
	n := snapshot.Node{}
	for p := range 200 {
		e := snapshot.Endpoint{Peer: fmt.Sprintf("10.0.%d.1:7400", p), Name: fmt.Sprintf("node-%d", p)}
		for r := range 5 {
			e.Rails = append(e.Rails, snapshot.Rail{ID: uint32(r), Kind: "tcp", Local: fmt.Sprintf("10.%d.0.1:7400", r),
				Remote: fmt.Sprintf("10.%d.%d.1:7400", r, p), State: rail.Up, Rate: 1.25e9 / 3, BytesIn: 1 << 40, BytesOut: 1 << 41})
		}
		n.Endpoints = append(n.Endpoints, e)
	}
	s := &Server{cfg: Config{Look: func() snapshot.Node { return n }}}
	b.ReportAllocs()
	for b.Loop() {
		b.SetBytes(int64(len(s.sample())))
	}
}
