package supervision_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	. "railyard/supervision"
)

const ms = time.Millisecond

// largest is a source with which jitter gives almost all of its ceiling.
type largest struct{}

func (largest) Uint64() uint64 { return 1<<64 - 1 }

func defaultPolicy(t require.TestingT, c DefaultConfig, source rand.Source) Policy {
	p, err := Default(c, source)
	require.NoError(t, err)
	return p
}

func TestDefaultDecides(t *testing.T) {
	goodbye := fmt.Errorf("rail 1: %w", ErrGoodbye)
	cases := []struct {
		name   string
		h      History
		f      Failure
		action Action
		delay  time.Duration // the ceiling, jitter being at its largest
	}{
		{"lost after a healthy spell", History{Failures: 1, Healthy: true, Flaps: 1}, Failure{Class: Path}, Restart, 0},
		{"the very first dial", History{Failures: 1}, Failure{}, Restart, 50 * ms},
		{"the dial after a healthy spell", History{Failures: 2, Flaps: 1}, Failure{}, Restart, 50 * ms},
		{"third in a row", History{Failures: 3, Flaps: 1}, Failure{}, Restart, 100 * ms},
		{"eighth in a row", History{Failures: 8}, Failure{}, Restart, 3200 * ms},
		{"ninth in a row", History{Failures: 9}, Failure{}, Restart, 5 * time.Second},
		{"millionth in a row", History{Failures: 1e6}, Failure{Class: Path}, Restart, 5 * time.Second},
		{"the same, reachable", History{Failures: 1e6, Reachable: true}, Failure{Class: Path}, Restart, 500 * ms},
		{"reachable, but early", History{Failures: 3, Reachable: true}, Failure{}, Restart, 100 * ms},
		{"second flap", History{Failures: 1, Healthy: true, Flaps: 2}, Failure{}, Restart, 50 * ms},
		{"fourth flap", History{Failures: 1, Healthy: true, Flaps: 4}, Failure{}, Restart, 200 * ms},
		{"goodbye", History{Failures: 1, Healthy: true}, Failure{Class: Peer, Err: goodbye}, Escalate, 0},
		{"new incarnation", History{}, Failure{Class: Peer, Err: ErrNewIncarnation}, Escalate, 0},
		{"refused for good", History{}, Failure{Class: Peer, Err: ErrRefused}, Stop, 0},
		{"peer, unsaid why", History{}, Failure{Class: Peer}, Stop, 0},
		{"a bug", History{Failures: 1, Healthy: true, Flaps: 1, Recent: bugs(1)}, Failure{Class: Bug}, Restart, 0},
		{"ten bugs", History{Failures: 3, Recent: bugs(10)}, Failure{Class: Bug}, Restart, 100 * ms},
		{"eleven bugs", History{Failures: 3, Recent: bugs(11)}, Failure{Class: Bug}, Escalate, 0},
		{"eleven bugs, reachable", History{Recent: bugs(11), Reachable: true}, Failure{Class: Bug}, Reroute, 0},
		{"no bug after eleven", History{Failures: 2, Recent: bugs(11)}, Failure{Class: Path}, Restart, 50 * ms},
		{"a class from the future", History{Failures: 2}, Failure{Class: 77}, Restart, 50 * ms},
	}
	p := defaultPolicy(t, DefaultConfig{}, largest{})
	for _, c := range cases {
		d := p.Decide(c.h, c.f, time.Minute)
		assert.Equal(t, c.action, d.Action, c.name)
		assert.LessOrEqual(t, d.Delay, c.delay, c.name)
		assert.InDelta(t, float64(c.delay), float64(d.Delay), float64(c.delay)/100, c.name)
		assert.NotEmpty(t, d.Reason, c.name)
	}
	// Bugs count within a minute only.
	h := History{Failures: 3, Recent: bugs(11)}
	assert.Equal(t, Restart, p.Decide(h, Failure{Class: Bug}, 2*time.Minute).Action)
}

// bugs are n failures of class Bug within the first minute.
func bugs(n int) []Lapse {
	lapses := make([]Lapse, n)
	for i := range lapses {
		lapses[i] = Lapse{At: time.Duration(i) * time.Second, Class: Bug}
	}
	return lapses
}

func TestDefaultRefusesBadConfig(t *testing.T) {
	source := rand.NewPCG(1, 2)
	seen := map[string]bool{}
	for says, c := range map[string]DefaultConfig{
		"negative":            {Base: -1},
		"Base 10s":            {Base: 10 * time.Second},
		"ReachableMax 6s":     {ReachableMax: 6 * time.Second},
		"BugLimit 64":         {BugLimit: MaxRecent},
		"Base 1s is above":    {Base: time.Second, Max: ms},
		"BugLimit -3":         {BugLimit: -3},
		"ReachableMax -1ns, ": {ReachableMax: -1},
	} {
		_, err := Default(c, source)
		require.ErrorIs(t, err, ErrConfig, says)
		assert.Contains(t, err.Error(), says)
		assert.False(t, seen[err.Error()])
		seen[err.Error()] = true
	}
	_, err := Default(DefaultConfig{}, nil)
	require.ErrorIs(t, err, ErrConfig)
	_, err = Default(DefaultConfig{Max: 10 * ms}, source)
	require.NoError(t, err, "defaults fit under a small Max")
}

// A whole story by the record: what a rail lives through, and what it is told.
func TestRailThatFlapsWaitsLonger(t *testing.T) {
	p := defaultPolicy(t, DefaultConfig{}, largest{})
	var r Record
	var story strings.Builder
	now := time.Duration(0)
	fail := func(class Class) {
		f := Failure{Class: class}
		h := r.Failed(f, now)
		d := p.Decide(h, f, now)
		health := "not healthy"
		if h.Healthy {
			health = "healthy till then"
		}
		fmt.Fprintf(&story, "%v %s, %s: %s %s\n", now, class, health, d.Action, (d.Delay + ms/2).Truncate(ms))
		now += d.Delay
	}
	up := func(life time.Duration) {
		h := r.Up(now)
		fmt.Fprintf(&story, "%v up, probation %s\n", now.Truncate(ms), Probation(h))
		now += life
	}
	fail(Transient) // refused: the peer is not there yet
	now = time.Second
	up(time.Hour)
	fail(Path)
	fail(Path) // the redial at once times out
	now = time.Hour + 10*time.Second
	up(3 * time.Second)
	fail(Path)
	now = time.Hour + 20*time.Second
	up(3 * time.Second)
	fail(Path)
	now = time.Hour + 30*time.Second
	up(999 * ms) // shorter than its probation
	fail(Path)
	now = time.Hour + 40*time.Second
	up(10 * time.Minute)
	fail(Transient)
	assert.Equal(t, strings.TrimLeft(`
0s transient, not healthy: restart 50ms
1s up, probation 250ms
1h0m1s path, healthy till then: restart 0s
1h0m1s path, not healthy: restart 50ms
1h0m10s up, probation 250ms
1h0m13s path, healthy till then: restart 50ms
1h0m20s up, probation 500ms
1h0m23s path, healthy till then: restart 100ms
1h0m30s up, probation 1s
1h0m30.999s path, not healthy: restart 200ms
1h0m40s up, probation 2s
1h10m40s transient, healthy till then: restart 0s
`, "\n"), story.String())
}

// history draws any history, also senseless ones.
func history(t *rapid.T) History {
	h := History{
		Failures:  rapid.IntRange(-1, 1<<40).Draw(t, "failures"),
		Flaps:     rapid.IntRange(-1, MaxRecent).Draw(t, "flaps"),
		Healthy:   rapid.Bool().Draw(t, "healthy"),
		Reachable: rapid.Bool().Draw(t, "reachable"),
	}
	if rapid.Bool().Draw(t, "few") {
		h.Failures %= 12
	}
	return h
}

func TestDelayStaysWithinItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := DefaultConfig{
			Base:         time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "base")),
			Max:          time.Duration(rapid.Int64Range(int64(time.Second), 1<<62).Draw(t, "max")),
			ReachableMax: time.Duration(rapid.Int64Range(0, int64(time.Second)).Draw(t, "reachable")),
		}
		p := defaultPolicy(t, c, rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		h := history(t)
		class := rapid.SampledFrom([]Class{Transient, Path, Bug}).Draw(t, "class")
		d := p.Decide(h, Failure{Class: class}, 0)
		limit := c.Max
		if h.Reachable {
			limit = c.ReachableMax
			if limit == 0 {
				limit = time.Second
			}
		}
		if d.Action != Restart || d.Delay < 0 || d.Delay > limit {
			t.Fatalf("%s after %s, limit %s", d.Action, d.Delay, limit)
		}
		if h.Healthy && h.Flaps <= 1 && d.Delay != 0 {
			t.Fatalf("the first retry after a healthy spell waits %s", d.Delay)
		}
	})
}

func TestCeilingNeverFalls(t *testing.T) {
	p := defaultPolicy(t, DefaultConfig{}, largest{})
	rapid.Check(t, func(t *rapid.T) {
		h := history(t)
		worse := h
		if rapid.Bool().Draw(t, "failure or flap") {
			worse.Failures++
		} else {
			worse.Flaps++
		}
		before, after := p.Decide(h, Failure{}, 0), p.Decide(worse, Failure{}, 0)
		if after.Delay < before.Delay {
			t.Fatalf("%+v waits %s, %+v only %s", h, before.Delay, worse, after.Delay)
		}
		if Probation(worse) < Probation(h) || Probation(h) < 250*ms || Probation(worse) > 5*time.Second {
			t.Fatalf("probations %s, %s", Probation(h), Probation(worse))
		}
	})
}

func TestJitterVaries(t *testing.T) {
	p := defaultPolicy(t, DefaultConfig{}, rand.NewPCG(1, 2))
	const draws = 1000
	seen := map[time.Duration]bool{}
	var sum time.Duration
	for range draws {
		d := p.Decide(History{Failures: 100}, Failure{}, 0)
		seen[d.Delay] = true
		sum += d.Delay
	}
	assert.Greater(t, len(seen), draws*9/10)
	assert.InDelta(t, 2.5, (sum / draws).Seconds(), 0.25, "full jitter is uniform over the whole range")
}

func TestSameSeedSameDirectives(t *testing.T) {
	decide := func() (ds []Directive) {
		p := defaultPolicy(t, DefaultConfig{}, rand.NewPCG(7, 9))
		for i := range 50 {
			ds = append(ds, p.Decide(History{Failures: i}, Failure{}, 0))
		}
		return ds
	}
	assert.Equal(t, decide(), decide())
}

func TestPolicyFunc(t *testing.T) {
	var p Policy = PolicyFunc(func(h History, f Failure, now time.Duration) Directive {
		return Directive{Action: Reroute, Reason: fmt.Sprint(h.Failures, f.Class, now)}
	})
	assert.Equal(t, Directive{Action: Reroute, Reason: "3 bug 1s"},
		p.Decide(History{Failures: 3}, Failure{Class: Bug}, time.Second))
}
