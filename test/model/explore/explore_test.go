package explore

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

// counter is a space of the numbers 0 to 9 that may go up, and down to 3 at the least.
func counter(done, bad uint8) Space[uint8] {
	return Space[uint8]{
		Next: func(s *uint8, out func(Action, uint8)) {
			if *s < 9 {
				out(Do("up to %d", *s+1), *s+1)
			}
			if *s > 3 {
				out(Do("down to %d", *s-1), *s-1)
			}
		},
		Broken: func(s *uint8) string {
			if *s == bad {
				return "bad"
			}
			return ""
		},
		Done:  func(s *uint8) bool { return *s == done },
		Limit: 100,
	}
}

func TestRun(t *testing.T) {
	require.Equal(t, Result{States: 10, Complete: true}, Run(counter(9, 99)))
	r := Run(counter(9, 2))
	require.Equal(t, "bad", r.Broken)
	require.Equal(t, "up to 2", r.Trace[1].String())
	require.Len(t, r.Trace, 2)
	r = Run(counter(2, 99)) // from 3 on there is no way back to 2
	require.Contains(t, r.Broken, "stuck")
	require.Len(t, r.Trace, 3)
	sp := counter(2, 99)
	sp.Limit = 5
	require.Equal(t, Result{States: 5}, Run(sp))
}

func TestJudge(t *testing.T) {
	d := Design{Settings: []string{"numbers"}, Mutations: []Mutation{{Name: "bad"}, {Name: "slow", Harmless: "only slower"}},
		Explore: func(_ int, mutation string, limit int) Result {
			bad := uint8(99)
			if mutation == "bad" {
				bad = 5
			}
			sp := counter(9, bad)
			sp.Limit = limit
			return Run(sp)
		}}
	require.Empty(t, d.Judge(100, nil))
	require.Empty(t, d.Judge(Full, nil))
	var out bytes.Buffer
	require.Zero(t, d.Main([]string{"bad"}, &out))
	require.Contains(t, out.String(), "up to 5")
	require.Equal(t, 1, d.Main([]string{"unknown"}, &out))
	require.Contains(t, out.String(), "no mutation unknown")
	d.Mutations = []Mutation{{Name: "slow"}, {Name: "bad", Harmless: "so they say"}}
	require.Equal(t, []string{"nothing catches the mutation slow", "bad breaks a promise, and was taken for harmless (so they say)"},
		d.Judge(Full, nil))
	d.Explore = func(int, string, int) Result { return Result{Broken: "always"} }
	require.Contains(t, d.Judge(100, nil), "the rules break a promise with numbers")
}
