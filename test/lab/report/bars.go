package main

import (
	"fmt"
	"strings"
	"time"

	"railyard/test/lab"
)

const ms = time.Millisecond

// never is what MPTCP took where it did not do it at all.
const never = lab.Never

// bar is the most that a figure may be, and what MPTCP took where it was set; 0: it is no measure here.
type bar struct{ limit, mptcp time.Duration }

// limits of the three figures.
type bars struct{ stall, full, back bar }

// row is one cut of the table.
type row struct {
	name, about string
	cuts        []lab.Cut
	hold        time.Duration
	bars        bars
	// alone: nothing is compared with, and only the way back is judged.
	alone bool
}

// shaped is a rail's rate in the table, in bits a second.
const shaped = 200e6

// rows of the table. Host A puts, host B is the target.
var rows = []row{
	{name: "blackhole", about: "black hole", cuts: []lab.Cut{{Kind: lab.BlackHole}}, hold: 4 * time.Second,
		bars: bars{bar{200 * ms, 221 * ms}, bar{350 * ms, 935 * ms}, bar{1000 * ms, 2571 * ms}}},
	{name: "blackhole60", about: "black hole of 60 s", cuts: []lab.Cut{{Kind: lab.BlackHole}}, hold: 60 * time.Second,
		bars: bars{back: bar{1000 * ms, 0}}, alone: true},
	{name: "linkdown", about: "link down, far end", cuts: []lab.Cut{{Kind: lab.LinkDown, Where: lab.B}}, hold: 4 * time.Second,
		bars: bars{bar{150 * ms, 199 * ms}, bar{350 * ms, 755 * ms}, bar{1000 * ms, 1012 * ms}}},
	{name: "reset", about: "reset", cuts: []lab.Cut{{Kind: lab.Reset}}, hold: 4 * time.Second,
		bars: bars{bar{40 * ms, 40 * ms}, bar{100 * ms, 236 * ms}, bar{1000 * ms, never}}},
	{name: "data", about: "one way, data lost", cuts: []lab.Cut{{Kind: lab.OneWay, Where: lab.A}}, hold: 4 * time.Second,
		bars: bars{bar{200 * ms, 74 * ms}, bar{350 * ms, 238 * ms}, bar{1000 * ms, 2661 * ms}}},
	{name: "acks", about: "one way, acks lost", cuts: []lab.Cut{{Kind: lab.OneWay, Where: lab.B}}, hold: 4 * time.Second,
		bars: bars{bar{200 * ms, 160 * ms}, bar{350 * ms, 871 * ms}, bar{1000 * ms, 2462 * ms}}},
	{name: "slow", about: "slow to 5 %", cuts: []lab.Cut{{Kind: lab.Slow, Rate: shaped / 20}}, hold: 4 * time.Second,
		bars: bars{bar{50 * ms, 0}, bar{500 * ms, 0}, bar{1000 * ms, 0}}},
}

// scaled is the limit on a machine where MPTCP took so long. What MPTCP does not do, here or there, is no excuse.
func (b bar) scaled(here time.Duration) time.Duration {
	if b.mptcp <= 0 || here <= b.mptcp {
		return b.limit
	}
	return time.Duration(float64(b.limit) * float64(here) / float64(b.mptcp))
}

// figure is one measured value and its limit.
type figure struct{ value, limit, mptcp time.Duration }

func (f figure) met() bool { return f.value != lab.Never && f.value <= f.limit }

func (f figure) String() string {
	mark := ""
	if !f.met() {
		mark = " !"
	}
	return fmt.Sprintf("%s/%s (%s)%s", millis(f.value), millis(f.limit), millis(f.mptcp), mark)
}

func millis(d time.Duration) string {
	if d == lab.Never {
		return "never"
	}
	return fmt.Sprintf("%.0f", float64(d)/float64(ms))
}

// zeros count what must not be: puts that failed, that the target was not told of, or more than once, bytes that were wrong,
// endpoints that were given up, and lives that rails lost though they were well.
type zeros struct{ failed, lost, doubled, wrong, ended, falsely int }

// attempt is the outcome of all runs of one row.
type attempt struct {
	stall, full, back, longest figure
	zeros
	alone  bool
	broken []string // runs that did not come to a figure
}

func (a attempt) met() bool {
	ok := a.back.met() && a.sound() && len(a.broken) == 0
	return ok && (a.alone || a.stall.met() && a.full.met() && a.longest.met())
}

// sound tells whether the zeros are zero: they have no second attempt.
func (a attempt) sound() bool { return a.zeros == zeros{} }

// String is a line of the table.
func (a attempt) String() string {
	stall, full, longest := a.stall.String(), a.full.String(), a.longest.String()
	if a.alone {
		stall, full, longest = "", "", ""
	}
	verdict := "met"
	if !a.met() {
		verdict = "MISSED"
	}
	line := fmt.Sprintf("%-20s %-20s %-22s %-18s %3d %3d %3d %3d %3d %3d  %s", stall, full, a.back.String(), longest, a.failed, a.lost,
		a.doubled, a.wrong, a.ended, a.falsely, verdict)
	for _, b := range a.broken {
		line += "\n    " + strings.ReplaceAll(b, "\n", "\n    ")
	}
	return line
}

// heading of the table; each figure is measured/limit (MPTCP), in milliseconds.
var heading = fmt.Sprintf("%-20s %-20s %-20s %-22s %-18s %3s %3s %3s %3s %3s %3s", "cut", "stall", "full rate", "back in use",
	"longest put", "err", "los", "dbl", "bad", "end", "fls")
