package cli

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shared is a writer that can be read meanwhile.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (w *shared) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(b)
}

func (w *shared) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.String()
}

// visitor is somebody in front of the demo's page.
type visitor struct {
	t   *testing.T
	url string
}

func (v *visitor) ask(method, path, body string) (int, string) {
	v.t.Helper()
	r, err := http.NewRequestWithContext(v.t.Context(), method, v.url+path, strings.NewReader(body))
	require.NoError(v.t, err)
	r.Close = true
	answer, err := http.DefaultClient.Do(r)
	require.NoError(v.t, err)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	require.NoError(v.t, err)
	return answer.StatusCode, string(text)
}

// demoState is what the visitor looks for in /api/state.
type demoState struct {
	Endpoints []struct {
		Rails []struct{ State, Local, Remote string }
	}
	Failovers []struct {
		Gap *float64 `json:"gap_ms"`
	}
	Panels struct {
		Demo struct {
			Cables   []struct{ Fault, Address string }
			Counters struct{ Delivered, Doubled uint64 }
			Lost     uint64
			Records  []map[string]any
			Pace     struct {
				Messages float64 `json:"messages_per_s"`
			}
		}
	}
}

// working counts the rails that take work.
func (s *demoState) working() (n int) {
	for _, e := range s.Endpoints {
		for _, r := range e.Rails {
			if r.State == "up" || r.State == "probation" {
				n++
			}
		}
	}
	return n
}

// await looks until it sees what it wants.
func (v *visitor) await(what string, is func(s *demoState) bool) {
	v.t.Helper()
	require.Eventually(v.t, func() bool {
		code, text := v.ask(http.MethodGet, "api/state", "")
		require.Equal(v.t, http.StatusOK, code)
		var s demoState
		require.NoError(v.t, json.Unmarshal([]byte(text), &s))
		return is(&s)
	}, time.Minute, 100*time.Millisecond, what)
}

func (v *visitor) command(command string, want int) string {
	v.t.Helper()
	code, text := v.ask(http.MethodPost, "panel/demo", command)
	assert.Equal(v.t, want, code, "%s: %s", command, text)
	return text
}

// On the page a cable is cut and healed by hand, the load is changed, and Ctrl-C is how it ends well.
func TestThePageCutsAndHeals(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, errOut, code := &shared{}, &shared{}, make(chan int, 1)
	go func() {
		code <- run(ctx, []string{"demo", "failover", "--page", "--rails", "2", "--pairs", "2"}, streams{strings.NewReader(""), out, errOut})
	}()
	v := &visitor{t: t}
	require.Eventually(t, func() bool {
		v.url = regexp.MustCompile(`http://127\.0\.0\.1:\d+/`).FindString(out.String())
		return v.url != ""
	}, time.Minute, 10*time.Millisecond, "the page's address: %s", errOut)
	v.await("two rails and a load", func(s *demoState) bool {
		return s.working() == 2 && len(s.Panels.Demo.Cables) == 2 && s.Panels.Demo.Counters.Delivered > 100
	})
	v.command("cut 1 reset", http.StatusNoContent)
	v.await("the rail is down, its gap is known", func(s *demoState) bool {
		return s.working() == 1 && s.Panels.Demo.Cables[1].Fault == "reset" && len(s.Failovers) > 0 && s.Failovers[0].Gap != nil
	})
	v.command("heal 1", http.StatusNoContent)
	v.await("the rail is back, the cut on record", func(s *demoState) bool {
		return s.working() == 2 && s.Panels.Demo.Cables[1].Fault == "" && len(s.Panels.Demo.Records) == 1
	})
	v.command("pace 100 10MB/s", http.StatusNoContent)
	v.await("another pace", func(s *demoState) bool { return s.Panels.Demo.Pace.Messages == 100 })
	for command, word := range map[string]string{
		"cut 7 reset": "no such rail", "wait 5m": "for scripts", "pace 1": "two words", "pace -1 10MB/s": "no number", "pace 1 9GB/s": "at most",
		"pace NaN 1MB/s": "no number", "pace 1 fast": "must end in /s", "flap 0 1000 10s": "for scripts", "": "no command",
	} {
		assert.Contains(t, v.command(command, http.StatusBadRequest), word, command)
	}
	v.await("nothing lost, nothing doubled", func(s *demoState) bool {
		return s.Panels.Demo.Lost == 0 && s.Panels.Demo.Counters.Doubled == 0
	})
	cancel()
	assert.Equal(t, codeWell, <-code, "%s%s", out, errOut)
	assert.Contains(t, out.String(), "every promise was kept")
	assert.Contains(t, out.String(), ", 0 lost, 0 doubled")
}
