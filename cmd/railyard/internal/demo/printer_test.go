package demo

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rail"
)

func screen(width int) (*bytes.Buffer, Screen) {
	out := &bytes.Buffer{}
	return out, Screen{Out: out, Width: func() int { return width }}
}

var sample = Record{Cut: "reset", Rail: 1, RailsLeft: 2, InFlight: 2048, DetectedMs: millis(1500 * time.Microsecond),
	GapMs: 12.5, GapOf: "pair 3 to b", RejoinMs: millis(100 * ms), Cause: "a -> b"}

func TestJSONPrintsObjectsOnly(t *testing.T) {
	out, s := screen(200)
	p := newPrinter(s, true)
	p.say("nobody hears this")
	p.draw(view{})
	p.record(sample)
	p.record(Record{})
	p.summary(Summary{Broken: []string{}})
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	var r map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &r))
	for _, field := range []string{
		"cut", "rail", "in_flight_bytes", "detected_ms", "gap_ms", "rejoin_ms", "local", "remote", "cause",
	} {
		assert.Contains(t, r, field)
	}
	assert.InDelta(t, 1.5, r["detected_ms"], 0)
	assert.Contains(t, lines[0], "a -> b")
	require.NoError(t, json.Unmarshal([]byte(lines[1]), &r))
	assert.Nil(t, r["detected_ms"], "what did not happen is null")
	var sum map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[2]), &sum))
	for _, field := range []string{
		"sent", "delivered", "lost", "doubled", "reordered", "puts", "completed", "canceled", "revoked", "corrupted",
		"late_writes", "cuts", "max_gap_ms", "max_rejoin_ms", "endpoint_errors", "msgs_per_s", "put_MBps",
	} {
		assert.Contains(t, sum, field)
	}
}

func TestPlainLinesWithoutATerminal(t *testing.T) {
	for _, width := range []int{0, narrowest - 1} {
		out, s := screen(width)
		p := newPrinter(s, false)
		p.say("cut %v: %s", []int{1}, "reset")
		p.draw(view{rails: []railView{{number: 0, state: "up"}, {number: 1, state: "down"}}, msgs: 4000})
		p.draw(view{}) // too soon for another line
		p.record(sample)
		p.summary(Summary{Sent: 5, Delivered: 4, Lost: 1, Broken: []string{"lost: 1 of 5"}, Notes: []string{"a note"}})
		text := out.String()
		assert.NotContains(t, text, "\x1b")
		assert.Contains(t, text, "cut [1]: reset")
		assert.Contains(t, text, "4000 messages/s, puts 0.0 MB/s, rails: 0 up, 1 down")
		assert.Contains(t, text,
			"rail 1 reset: detected after 2 ms, gap 12 ms, back after 100 ms; 2.0 kB in flight, worst: pair 3 to b")
		assert.Contains(t, text, "BROKEN lost: 1 of 5")
		assert.Contains(t, text, "a note")
	}
	assert.Contains(t, describe(Record{}), "detected never, gap 0 ms, back never")
}

func TestTableFitsTheTerminalAndIsDrawnOver(t *testing.T) {
	out, s := screen(80)
	p := newPrinter(s, false)
	v := view{rails: []railView{
		{number: 0, state: "probation", address: "127.0.0.1:54321", out: 1234.5, in: 1234.5, rtt: 1234 * time.Microsecond,
			flight: 123456789, reason: strings.Repeat("much to say ", 20)},
	}}
	p.draw(v)
	first := strings.Count(out.String(), "\n")
	for range maxLog + 3 {
		p.say("%s", strings.Repeat("x", 200))
	}
	text := out.String()
	for _, line := range strings.Split(text, "\n") {
		if at := strings.LastIndex(line, "\x1b[J"); at >= 0 {
			line = line[at+len("\x1b[J"):]
		}
		assert.Less(t, len([]rune(line)), 80)
	}
	assert.Equal(t, first+maxLog, p.drawn, "old lines leave")
	assert.Contains(t, text, "probation")
	out.Reset()
	p.summary(Summary{Broken: []string{}})
	assert.Contains(t, out.String(), "every promise was kept")
}

func TestRowTakesWhatTheNodeSays(t *testing.T) {
	v := railView{state: "unknown"}
	v.take([]rail.Status{{Local: "x", State: rail.Up}, {Local: "y", State: rail.Down, Reason: "pulled", BytesInFlight: 5}},
		func(s rail.Status) bool { return s.Local == "y" })
	assert.Equal(t, railView{state: "down", reason: "pulled", flight: 5}, v)
}
