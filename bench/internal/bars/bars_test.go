package bars

import (
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/bench/internal/cell"
)

var (
	put4M = cell.Spec{Load: cell.Put, Size: 4 << 20, Window: 8, Rails: 1}
	get4M = cell.Spec{Load: cell.Get, Size: 4 << 20, Window: 8, Rails: 1}
)

// testBooks have rails at 90, 200, 300 MB/s and raw at 100 in every round.
func testBooks() *Books {
	b := NewBooks(Books{Log: io.Discard})
	for _, mb := range []float64{90, 200, 300} {
		mine, theirs := Side{"rails", put4M}, Side{"raw", put4M}
		b.results[mine] = append(b.results[mine], cell.Result{MBps: mb})
		b.results[theirs] = append(b.results[theirs], cell.Result{MBps: 100})
	}
	return b
}

func testRow(b Bar) Row {
	return Row{Load: "put", Ours: Side{"rails", put4M}, Metric: Bandwidth, Bars: []Bar{b}, Quoted: "so said X"}
}

func TestBarsFail(t *testing.T) {
	b := testBooks()
	for name, c := range map[string]struct {
		row  Row
		ok   bool
		text string
	}{
		"reached":        {testRow(AtLeast(2, "raw", put4M)), true, "ok"},
		"missed":         {testRow(AtLeast(2.01, "raw", put4M)), false, "FAILS"},
		"at most":        {testRow(AtMost(2, "raw", put4M)), true, "ok"},
		"more":           {testRow(AtMost(1.99, "raw", put4M)), false, "FAILS"},
		"no feature":     {Row{Load: "x", Bars: []Bar{AtLeast(0.1, "raw", put4M)}, Missing: "not built"}, false, "FAILS: missing: not built"},
		"never measured": {testRow(AtLeast(0, "raw", get4M)), false, "FAILS: not one round was measured"},
	} {
		t.Run(name, func(t *testing.T) {
			lines := b.Lines([]Row{c.row})
			require.Len(t, lines, 1)
			assert.Equal(t, c.ok, lines[0].OK)
			assert.Equal(t, c.text, lines[0].verdict())
		})
	}
	b.failed[Side{"raw", put4M}] = errors.New("it fell over")
	lines := b.Lines([]Row{testRow(AtLeast(0, "raw", put4M))})
	assert.False(t, lines[0].OK)
	assert.Equal(t, "FAILS: it fell over", lines[0].verdict())
}

func TestRatioIsOfEachRound(t *testing.T) {
	b := NewBooks(Books{})
	mine, theirs := Side{"rails", put4M}, Side{"raw", put4M}
	// The machine halves its speed in the middle: the ratio stays.
	for _, speed := range []float64{1000, 1000, 500} {
		b.results[mine] = append(b.results[mine], cell.Result{MBps: 0.9 * speed})
		b.results[theirs] = append(b.results[theirs], cell.Result{MBps: speed})
	}
	b.results[theirs] = append(b.results[theirs], cell.Result{MBps: 1}) // a round that ours has not had
	ratio, err := b.ratio(testRow(Bar{}), AtLeast(0.9, "raw", put4M))
	require.NoError(t, err)
	assert.InDelta(t, 0.9, ratio, 1e-9)
}

func TestMiddle(t *testing.T) {
	assert.True(t, math.IsNaN(middle(nil)))
	assert.InDelta(t, 2.0, middle([]float64{3, 1, 2}), 0)
	assert.InDelta(t, 2.5, middle([]float64{4, 1, 2, 3}), 0)
}

func TestRepeatCounts(t *testing.T) {
	b := testBooks()
	second := NewBooks(Books{})
	second.results[Side{"rails", put4M}] = []cell.Result{{MBps: 500}}
	second.results[Side{"raw", put4M}] = []cell.Result{{MBps: 100}}
	b.repeats["put"] = second
	lines := b.Lines([]Row{testRow(AtLeast(3, "raw", put4M))})
	assert.True(t, lines[0].OK)
	assert.Equal(t, "500 MB/s", lines[0].Ours)
}

func TestEachSideOnce(t *testing.T) {
	assert.Len(t, sidesOf([]Row{testRow(AtLeast(1, "raw", put4M)), testRow(AtLeast(1, "raw", put4M))}), 2)
	assert.Empty(t, sidesOf([]Row{{Ours: Side{"rails", put4M}, Missing: "not built"}}), "what is missing is not measured")
}

func TestBarAgainstNobody(t *testing.T) {
	b := testBooks()
	lines := b.Lines([]Row{testRow(Bar{Limit: 200, AtMost: true}), testRow(Bar{Limit: 199, AtMost: true})})
	assert.True(t, lines[0].OK)
	assert.False(t, lines[1].OK)
	assert.InDelta(t, 200, *lines[0].Ratio, 0, "the value itself")
	assert.Equal(t, "-", lines[0].Theirs)
}

func TestPageIsFilled(t *testing.T) {
	const begin, end = "<!-- x -->", "<!-- /x -->"
	file := filepath.Join(t.TempDir(), "page.md")
	require.NoError(t, os.WriteFile(file, []byte("before\n"+begin+"\nold\n"+end+"\nafter\n"), 0o600))
	text := markdown(testBooks().Lines([]Row{testRow(AtLeast(2, "raw", put4M))}), currentSettings(Options{Rounds: 3, Time: time.Second}))
	require.NoError(t, fillPage(file, "x", text))
	b, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.True(t, strings.HasPrefix(string(b), "before\n"+begin+"\n3 rounds of 1 s each, "))
	assert.Contains(t, string(b), "| put | 200 MB/s | raw | 100 MB/s | 2.00 | >= 2 | ok | quoted: so said X |\n"+end+"\nafter\n")
	assert.NotContains(t, string(b), "old")
	require.NoError(t, os.WriteFile(file, []byte("no place"), 0o600))
	require.ErrorContains(t, fillPage(file, "x", text), begin)
}

func TestWrongUsage(t *testing.T) {
	p := Program{Name: "x", Rows: []Row{testRow(Bar{})}}
	for _, args := range [][]string{{"--nothing"}, {"x"}, {"--rounds", "0"}, {"--time", "-1s"}, {"--only", "nothing"}} {
		err := p.Run(t.Context(), args, io.Discard)
		require.ErrorIs(t, err, ErrUsage, args)
		assert.NotContains(t, err.Error(), "\n")
	}
}

func TestOnlyWhatIsAskedFor(t *testing.T) {
	p := Program{Rows: []Row{{Load: "put 4 MiB"}, {Load: "put 4 MiB, TLS"}, {Load: "get"}}, Extra: &Extra{Load: "put curve"}}
	some, err := p.choose("put 4")
	require.NoError(t, err)
	assert.Len(t, some.Rows, 2)
	assert.Nil(t, some.Extra)
	some, err = p.choose("put curve")
	require.NoError(t, err)
	assert.Empty(t, some.Rows)
	assert.NotNil(t, some.Extra)
	all, err := p.choose("")
	require.NoError(t, err)
	assert.Len(t, all.Rows, 3)
	assert.NotNil(t, all.Extra)
}

func TestMissedBarsFail(t *testing.T) {
	require.NoError(t, outcome{Lines: []Line{{OK: true}}}.verdict())
	require.EqualError(t, outcome{Lines: []Line{{OK: true}, {}}}.verdict(), "1 of 2 bars are missed")
}
