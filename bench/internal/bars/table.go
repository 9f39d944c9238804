package bars

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"text/tabwriter"
)

// Line is one bar, as it is printed.
type Line struct {
	Load    string   `json:"load"`
	Ours    string   `json:"ours"`
	Against string   `json:"against"`
	Theirs  string   `json:"theirs"`
	Others  []string `json:"others,omitempty"`
	Ratio   *float64 `json:"ratio"` // nil: it could not be measured
	Bar     string   `json:"bar"`
	OK      bool     `json:"ok"`
	Why     string   `json:"why,omitempty"` // it is not ok, beside the ratio
}

// Lines makes the table.
func (b *Books) Lines(list []Row) []Line {
	var all []Line
	for _, r := range list {
		from := b
		if second := b.repeats[r.Load]; second != nil {
			from = second
		}
		for i, x := range r.Bars {
			l := Line{Load: r.Load, Bar: x.String()}
			if i == 0 {
				l.Others = from.others(r)
			}
			from.fill(&l, r, x)
			all = append(all, l)
		}
	}
	return all
}

func (b *Books) fill(l *Line, r Row, x Bar) {
	l.Ours, l.Against, l.Theirs = "-", x.Against.Contender, "-"
	if x.Against.Contender == r.Ours.Contender && r.Missing == "" {
		l.Against += ", " + x.Against.Spec.String()
	}
	if r.Missing != "" {
		l.Why = "missing: " + r.Missing
		return
	}
	l.Ours = show(b.Value(r.Ours, r.Metric), r.Metric)
	if x.Against.Contender != "" {
		l.Theirs = show(b.Value(x.Against, r.theirs(x)), r.theirs(x))
	}
	ratio, err := b.ratio(r, x)
	if err != nil {
		l.Why = strings.ReplaceAll(err.Error(), "\n", "; ")
		return
	}
	l.OK = x.Holds(ratio)
	if !math.IsNaN(ratio) && !math.IsInf(ratio, 0) {
		l.Ratio = &ratio
	}
}

// others writes down everybody else's values.
func (b *Books) others(r Row) []string {
	var all []string
	if r.Missing == "" {
		for _, s := range r.Others {
			all = append(all, s.Contender+" "+show(b.Value(s, r.Metric), r.Metric))
		}
	}
	if r.Quoted != "" {
		all = append(all, "quoted: "+r.Quoted)
	}
	return all
}

func show(v float64, m Metric) string {
	if math.IsNaN(v) {
		return "failed"
	}
	return m.Format(v)
}

func (l Line) ratio() string {
	if l.Ratio == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *l.Ratio)
}

func (l Line) verdict() string {
	switch {
	case l.OK:
		return "ok"
	case l.Why != "":
		return "FAILS: " + l.Why
	}
	return "FAILS"
}

var heads = []string{"load", "ours", "against", "theirs", "ratio", "bar", "ok", "others"}

func (l Line) columns() []string {
	return []string{l.Load, l.Ours, l.Against, l.Theirs, l.ratio(), l.Bar, l.verdict(), strings.Join(l.Others, ", ")}
}

// printTable is for people.
func printTable(out io.Writer, lines []Line) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, strings.Join(heads, "\t"))
	for _, l := range lines {
		fmt.Fprintln(w, strings.Join(l.columns(), "\t"))
	}
	_ = w.Flush()
}

// markdown is the same for a page.
func markdown(lines []Line, s settings) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n| %s |\n|%s\n", s, strings.Join(heads, " | "), strings.Repeat("---|", len(heads)))
	for _, l := range lines {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(l.columns(), " | "))
	}
	return b.String()
}

// fillPage puts text into the page's section of that name, which lies between two comments.
func fillPage(file, section, text string) error {
	begin, end := "<!-- "+section+" -->", "<!-- /"+section+" -->"
	old, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("the page to fill: %w", err)
	}
	before, rest, begins := strings.Cut(string(old), begin)
	_, after, ends := strings.Cut(rest, end)
	if !begins || !ends {
		return fmt.Errorf("%s has no %s … %s to fill", file, begin, end)
	}
	if err := os.WriteFile(file, []byte(before+begin+"\n"+text+end+after), 0o644); err != nil {
		return fmt.Errorf("filling the page: %w", err)
	}
	return nil
}
