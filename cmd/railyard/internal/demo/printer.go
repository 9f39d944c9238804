package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"railyard/internal/clock"
	"railyard/internal/load"
	"railyard/rail"
)

// Screen is where a run is shown.
type Screen struct {
	Out io.Writer
	// Width gives the columns of the terminal; 0: Out is no terminal.
	Width func() int
}

const (
	// narrowest is the width that the table needs; below it lines are printed one after the other.
	narrowest = 72
	drawEvery = 250 * time.Millisecond
	lineEvery = 2 * time.Second
	maxLog    = 8 // lines below the table
)

// printer shows a run: as JSON, as a table that is drawn again and again, or as plain lines. Safe from any goroutine.
type printer struct {
	screen Screen
	json   bool
	start  time.Duration

	mu sync.Mutex
	// Owner: mu.
	banner []string // table: lines above it
	log    []string // table: the latest lines
	drawn  int      // table: lines on the screen
	rows   []string // table: as last drawn
	lastly time.Duration
}

func newPrinter(s Screen, asJSON bool) *printer {
	return &printer{screen: s, json: asJSON, start: clock.Now()}
}

func (p *printer) table() bool { return !p.json && p.screen.Width() >= narrowest }

// say tells a human what happens.
func (p *printer) say(format string, args ...any) {
	if p.json {
		return
	}
	p.line(fmt.Sprintf(format, args...))
}

func (p *printer) line(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	line := fmt.Sprintf("%6.1fs  %s", (clock.Now() - p.start).Seconds(), text)
	if !p.table() {
		fmt.Fprintln(p.screen.Out, line)
		return
	}
	if p.log = append(p.log, line); len(p.log) > maxLog {
		p.log = p.log[1:]
	}
	p.drawLocked()
}

// announce says where the page is, for as long as the run lasts.
func (p *printer) announce(url string) {
	text := []string{"The page is at " + url, "Ctrl-C stops the load, counts, and ends the demo."}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table() {
		p.banner = []string{text[0], text[1], ""}
		p.drawLocked()
		return
	}
	for _, line := range text {
		fmt.Fprintln(p.screen.Out, line)
	}
}

// record prints a complete cut.
func (p *printer) record(r Record) {
	if p.json {
		p.encode(r)
		return
	}
	p.line(describe(r))
}

func describe(r Record) string {
	// What matters most comes first: a table clips the rest.
	text := fmt.Sprintf("rail %d %s: detected %s, gap %.0f ms, back %s; %.1f kB in flight", r.Rail, r.Cut,
		since(r.DetectedMs), r.GapMs, since(r.RejoinMs), float64(r.InFlight)/1e3)
	if r.GapOf != "" {
		text += ", worst: " + r.GapOf
	}
	return text
}

func since(ms *float64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("after %.0f ms", *ms)
}

func (p *printer) encode(v any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	encoder := json.NewEncoder(p.screen.Out)
	encoder.SetEscapeHTML(false) // causes have arrows
	_ = encoder.Encode(v)        // nobody to tell: the screen is gone
}

// summary prints the last line.
func (p *printer) summary(s Summary) {
	if p.json {
		p.encode(s)
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.screen.Out
	fmt.Fprintf(out, "\n%d messages sent, %d delivered, %d lost, %d doubled, %d reordered (%.0f/s)\n",
		s.Sent, s.Delivered, s.Lost, s.Doubled, s.Reordered, s.MsgsPerS)
	fmt.Fprintf(out, "%d puts: %d completed, %d canceled, %d revoked; %d corrupted, %d late writes (%.1f MB/s)\n",
		s.Puts, s.Completed, s.Canceled, s.Revoked, s.Corrupted, s.LateWrites, s.PutMBps)
	fmt.Fprintf(out, "%d cuts: worst gap %.0f ms, %.0f ms where no rail was left; worst rejoin %.0f ms\n",
		s.Cuts, s.MaxGapMs, s.MaxGapAllMs, s.MaxRejoinMs)
	for _, note := range s.Notes {
		fmt.Fprintln(out, " ", note)
	}
	if len(s.Broken) == 0 {
		fmt.Fprintf(out, "every promise was kept; the application saw %d errors\n", s.EndpointErrors)
	}
	for _, b := range s.Broken {
		fmt.Fprintln(out, "BROKEN", b)
	}
}

// view is what the table shows.
type view struct {
	rails  []railView
	total  load.Counters
	msgs   float64 // per second
	putMBs float64
}

type railView struct {
	number  int
	state   string
	address string
	out, in float64 // MB/s
	rtt     time.Duration
	flight  uint64
	reason  string
}

// rows gives the table's lines, none longer than width.
func (v view) rows(width int) []string {
	rows := []string{fmt.Sprintf("%-4s %-10s %-21s %9s %9s %8s %9s  %s",
		"rail", "state", "cable", "out MB/s", "in MB/s", "rtt", "in flight", "why")}
	for _, r := range v.rails {
		rows = append(rows, fmt.Sprintf("%-4d %-10s %-21s %9.1f %9.1f %8s %9d  %s", r.number, r.state, r.address,
			r.out, r.in, r.rtt.Round(10*time.Microsecond), r.flight, r.reason))
	}
	t := v.total
	rows = append(rows, "",
		fmt.Sprintf("messages %.0f/s  sent %d  delivered %d  doubled %d  reordered %d", v.msgs, t.Sent, t.Delivered,
			t.Doubled, t.Reordered),
		fmt.Sprintf("puts %.1f MB/s  %d  completed %d  canceled %d  revoked %d  corrupted %d  late %d", v.putMBs, t.Puts,
			t.Completed, t.Canceled, t.Revoked, t.Corrupted, t.LateWrites), "")
	for i, row := range rows {
		rows[i] = clip(row, width)
	}
	return rows
}

func clip(row string, width int) string {
	if r := []rune(row); len(r) > width {
		return string(r[:width])
	}
	return row
}

// draw shows a view.
func (p *printer) draw(v view) {
	if p.json {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.table() {
		p.rows = v.rows(p.screen.Width() - 1)
		p.drawLocked()
		return
	}
	if now := clock.Now(); now-p.lastly >= lineEvery {
		p.lastly = now
		states := make([]string, 0, len(v.rails))
		for _, r := range v.rails {
			states = append(states, fmt.Sprintf("%d %s", r.number, r.state))
		}
		fmt.Fprintf(p.screen.Out, "%6.1fs  %.0f messages/s, puts %.1f MB/s, rails: %s\n", (now - p.start).Seconds(),
			v.msgs, v.putMBs, strings.Join(states, ", "))
	}
}

func (p *printer) drawLocked() {
	var b strings.Builder
	if p.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA\x1b[J", p.drawn) // up to the table's first line, and clear from there
	}
	width := p.screen.Width() - 1
	p.drawn = 0
	for _, row := range slices.Concat(p.banner, p.rows, p.log) {
		b.WriteString(clip(row, width) + "\n")
		p.drawn++
	}
	_, _ = io.WriteString(p.screen.Out, b.String()) // nobody to tell: the screen is gone
}

// show draws the run until ctx ends.
func (r *run) show(ctx context.Context) {
	if r.options.JSON {
		return
	}
	var before view
	carried := make([][2]uint64, len(r.cables))
	last := clock.Now()
	for sleep(ctx, drawEvery) == nil {
		b, err := r.b.ask(ctx, request{Do: doReport})
		if err != nil {
			return
		}
		a := r.a.report(0, 0)
		now := clock.Now()
		seconds := (now - last).Seconds()
		v := view{total: a.Counters.Add(b.Report.Counters)}
		v.msgs = float64(v.total.Delivered-before.total.Delivered) / seconds
		v.putMBs = float64(v.total.PutBytes-before.total.PutBytes) / seconds / 1e6
		for i, c := range r.cables {
			toTarget, toSource := c.Carried()
			row := railView{number: i, address: c.Addr(), state: "unknown",
				out: float64(toTarget-carried[i][0]) / seconds / 1e6, in: float64(toSource-carried[i][1]) / seconds / 1e6}
			carried[i] = [2]uint64{toTarget, toSource}
			row.take(a.Rails, func(s rail.Status) bool { return r.railOf(s.Local, s.Remote) == i })
			v.rails = append(v.rails, row)
		}
		r.printer.draw(v)
		r.live.see(v.total, a.Holes+b.Report.Holes)
		before, last = v, now
	}
}

// take fills in what the node says of the rail.
func (v *railView) take(rails []rail.Status, is func(rail.Status) bool) {
	for _, s := range rails {
		if is(s) {
			v.state, v.rtt, v.flight, v.reason = s.State.String(), s.RoundTrip, s.BytesInFlight, s.Reason
		}
	}
}
