package top

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"railyard/rail"
	"railyard/snapshot"
)

// Screen is where a frame goes.
type Screen struct {
	Width, Height int // columns and lines; a height of 0 has no end
	Color         bool
	Scroll        int    // rails that are above the screen
	Status        string // in place of "live": what is wrong
}

// The styles, as terminals know them.
const (
	plain  = ""
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	head   = "7"
)

// column is one of the table of rails.
type column struct {
	name  string
	width int
	left  bool
	from  int // the least width of a screen that has it
	cell  func(l *railLine) string
}

var columns = []column{
	{"PEER", 16, true, 0, func(l *railLine) string { return l.name }},
	{"RAIL", 4, false, 0, func(l *railLine) string { return fmt.Sprint(l.ID) }},
	{"STATE", 10, true, 0, func(l *railLine) string { return l.State.String() }},
	{"OUT", 9, false, 0, func(l *railLine) string { return rate(l.out) }},
	{"IN", 9, false, 0, func(l *railLine) string { return rate(l.in) }},
	{"RTT", 7, false, 0, func(l *railLine) string { return span(time.Duration(l.RoundTrip) * time.Microsecond) }},
	{"FLIGHT", 8, false, 0, func(l *railLine) string { return size(float64(l.InFlight)) }},
	{"ABLE TO", 9, false, 110, func(l *railLine) string { return rate(l.Rate) }},
	{"WEIGHT", 6, false, 110, func(l *railLine) string { return fmt.Sprintf("%.0f%%", 100*l.Weight) }},
	{"LOST", 5, false, 80, func(l *railLine) string { return fmt.Sprint(l.Restarts) }},
	{"GEN", 5, false, 110, func(l *railLine) string { return fmt.Sprint(l.Generation) }},
	{"FOR", 7, false, 120, func(l *railLine) string { return span(time.Duration(l.Since) * time.Millisecond) }},
	{"TREND", trendLength, true, 150, func(l *railLine) string { return trend(l.trend) }},
	{"LOCAL", 21, true, 180, func(l *railLine) string { return l.Local }},
	{"REMOTE", 21, true, 130, func(l *railLine) string { return l.Remote }},
	{"WHY", 0, true, 200, func(l *railLine) string { return l.Reason }},
}

// Lines draws a frame: exactly Height lines, none of them wider than the screen.
func Lines(f *Frame, s Screen) []string {
	d := &drawing{Screen: s}
	d.top(f)
	below := d.below(f)
	d.table(f, len(below)+1)
	for _, l := range below {
		d.styled(l.style, l.text)
	}
	if s.Height > 0 {
		for len(d.lines) < s.Height-1 {
			d.styled(plain, "")
		}
		d.lines = d.lines[:s.Height-1]
		d.styled(dim, "q quit   up, down, page up, page down: rails   space: pause")
	}
	return d.lines
}

// drawing is lines in the making.
type drawing struct {
	Screen
	lines []string
}

type styledLine struct{ style, text string }

// styled adds a line in one style.
func (d *drawing) styled(style, text string) {
	text = clip(clean(text), d.Width)
	if d.Color && style != plain && text != "" {
		text = "\x1b[" + style + "m" + text + "\x1b[0m"
	}
	d.lines = append(d.lines, strings.TrimRight(text, " "))
}

func (d *drawing) top(f *Frame) {
	n := f.Node
	status, style := "live", green
	if d.Status != "" {
		status, style = d.Status, red
	}
	title := fmt.Sprintf("railyard %s  %s  up %s  version %s", n.Name, n.Address, span(f.uptime()), n.Version)
	d.styled(bold, title)
	well, all := f.working()
	d.styled(style, fmt.Sprintf("%s  %s  %d peers, %d of %d rails work, %d regions", n.At.Format("15:04:05"), status,
		len(n.Endpoints), well, all, n.Regions.Live))
	d.styled(plain, fmt.Sprintf("out %s  in %s  messages out %s/s in %s/s  done %s/s  open %d", rate(f.out), rate(f.in),
		count(f.sent), count(f.received), count(f.operations), f.open()))
	times := make([]string, 0, 3)
	for _, t := range []struct {
		name  string
		times snapshot.Times
	}{{"puts", f.puts}, {"gets", f.gets}, {"messages", f.messages}} {
		p50, ok := t.times.Quantile(0.5)
		p99, _ := t.times.Quantile(0.99)
		text := t.name + " -"
		if ok {
			text = fmt.Sprintf("%s %s / %s", t.name, span(p50), span(p99))
		}
		times = append(times, text)
	}
	d.styled(plain, "half / 99% within: "+strings.Join(times, ", "))
	d.styled(plain, "")
}

// table draws the rails that there is room for.
func (d *drawing) table(f *Frame, reserved int) {
	var names strings.Builder
	for _, c := range d.columns() {
		names.WriteString(pad(c.name, c.width, c.left) + " ")
	}
	d.styled(head, pad(names.String(), d.Width, true))
	rows := f.rails[min(max(d.Scroll, 0), len(f.rails)):]
	hidden := 0
	if d.Height > 0 {
		room := max(1, d.Height-len(d.lines)-reserved-1)
		if len(rows) > room {
			hidden = len(rows) - room + 1
			rows = rows[:room-1]
		}
	}
	for i := range rows {
		d.row(&rows[i])
	}
	if hidden > 0 {
		d.styled(dim, fmt.Sprintf("… and %d rails more", hidden))
	}
}

// columns are those that fit.
func (d *drawing) columns() (list []column) {
	for _, c := range columns {
		if d.Width >= c.from {
			list = append(list, c)
		}
	}
	return list
}

func (d *drawing) row(l *railLine) {
	style := plain
	switch l.State {
	case rail.Down:
		style = red
	case rail.Suspect, rail.Probation:
		style = yellow
	case rail.Connecting:
		style = dim
	case rail.Up:
	}
	var b strings.Builder
	for _, c := range d.columns() {
		text := clean(c.cell(l))
		if c.width > 0 {
			text = pad(clip(text, c.width), c.width, c.left)
		}
		b.WriteString(text + " ")
	}
	d.styled(style, b.String())
}

// below are the failovers and the events: a third of the screen, or the newest ten of each.
func (d *drawing) below(f *Frame) []styledLine {
	room := 10
	if d.Height > 0 {
		room = max(2, d.Height/6)
	}
	list := []styledLine{{plain, ""}, {head, pad("FAILOVERS, the newest first", d.Width, true)}}
	for i := range min(room, len(f.Node.Failovers)) {
		o := &f.Node.Failovers[len(f.Node.Failovers)-1-i]
		gap, away, style := "gap open", "still away", red
		if o.GapMs != nil {
			gap = "gap " + span(milliseconds(*o.GapMs))
		}
		switch {
		case o.OutageMs != nil:
			away, style = "away "+span(milliseconds(*o.OutageMs)), plain
		case o.Ended:
			away, style = "ended", plain
		}
		list = append(list, styledLine{style, fmt.Sprintf("%s rail %d to %s: %s, %s rerouted, %s: %s",
			o.At.Format("15:04:05"), o.Rail, o.Peer, gap, size(float64(o.Rerouted)), away, o.Cause)})
	}
	list = append(list, styledLine{head, pad("EVENTS, the newest first", d.Width, true)})
	for i := range min(room, len(f.Node.Events)) {
		e := &f.Node.Events[len(f.Node.Events)-1-i]
		text := e.At.Format("15:04:05") + " " + e.Kind
		if e.Peer != "" {
			text += " " + e.Peer
		}
		if e.Generation > 0 {
			text += fmt.Sprintf(" rail %d", e.Rail)
		}
		if e.Cause != "" {
			text += ": " + e.Cause
		}
		list = append(list, styledLine{plain, text})
	}
	return list
}

// clean makes text of what somebody else has named: a terminal obeys control characters.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, text)
}

func clip(text string, width int) string {
	r := []rune(text)
	if len(r) <= width {
		return text
	}
	if width < 2 {
		return string(r[:max(width, 0)])
	}
	return string(r[:width-1]) + "…"
}

func pad(text string, width int, left bool) string {
	blanks := strings.Repeat(" ", max(0, width-len([]rune(text))))
	if left {
		return text + blanks
	}
	return blanks + text
}

// trend draws samples as bars, the highest of them full.
func trend(samples []float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	highest := 0.0
	for _, v := range samples {
		highest = max(highest, v)
	}
	all := []rune(bars)
	var b strings.Builder
	for _, v := range samples {
		i := 0
		if highest > 0 {
			i = int(v / highest * float64(len(all)-1))
		}
		b.WriteRune(all[i])
	}
	return b.String()
}
