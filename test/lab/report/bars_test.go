package main

import (
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/test/lab"
)

func TestABarGrowsWithWhatMPTCPTakesHere(t *testing.T) {
	b := bar{limit: 200 * ms, mptcp: 100 * ms}
	assert.Equal(t, 200*ms, b.scaled(50*ms), "a faster machine is no reason for a lower one")
	assert.Equal(t, 400*ms, b.scaled(200*ms))
	assert.Equal(t, 200*ms, b.scaled(lab.Never))
	assert.Equal(t, 200*ms, bar{limit: 200 * ms, mptcp: never}.scaled(time.Hour))
	assert.Equal(t, 200*ms, bar{limit: 200 * ms}.scaled(time.Hour))
}

func TestWhatAnAttemptNeeds(t *testing.T) {
	met := figure{value: 5, limit: 5}
	missed := figure{value: 6, limit: 5}
	good := attempt{stall: met, full: met, back: met, longest: met}
	assert.True(t, good.met())
	for name, harm := range map[string]func(*attempt){
		"stall": func(a *attempt) { a.stall = missed }, "full": func(a *attempt) { a.full = missed },
		"back": func(a *attempt) { a.back = figure{value: lab.Never, limit: 5} }, "longest": func(a *attempt) { a.longest = missed },
		"failed": func(a *attempt) { a.failed = 1 }, "wrong": func(a *attempt) { a.wrong = 1 }, "ended": func(a *attempt) { a.ended = 1 },
		"falsely": func(a *attempt) { a.falsely = 1 }, "lost": func(a *attempt) { a.lost = 1 }, "doubled": func(a *attempt) { a.doubled = 1 },
		"broken": func(a *attempt) { a.broken = []string{"no"} },
	} {
		a := good
		harm(&a)
		assert.False(t, a.met(), name)
		assert.Contains(t, a.String(), "MISSED", name)
	}
	assert.True(t, attempt{alone: true, back: met, stall: missed}.met(), "only the way back is judged")
}

func TestFlags(t *testing.T) {
	o, err := parse([]string{"--runs", "1", "--cut", "blackhole", "--no-mptcp"}, io.Discard)
	require.NoError(t, err)
	assert.Equal(t, options{runs: 1, attempts: 3, cut: "blackhole", list: "cuts", time: 30 * time.Minute, noMPTCP: true}, o)
	for _, bad := range [][]string{{"--cut", "black"}, {"--cut", "black, linkdown"}, {"--runs", "0"}, {"--list", "x"}, {"--time", "1s"}, {"x"}, {"--y"}} {
		_, err := parse(bad, io.Discard)
		assert.ErrorIs(t, err, errUsage, "%v", bad)
	}
}
