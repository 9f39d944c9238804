package bars

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"time"

	"railyard/bench/internal/cell"
)

// Books hold what was measured: for each side, a result a round.
type Books struct {
	Programs string // folder of the contenders' programs
	Papers   *cell.Papers
	Profiles string // folder for profiles; empty: none
	Log      io.Writer

	results map[Side][]cell.Result
	failed  map[Side]error
	repeats map[string]*Books // of loads that were measured once more: what counts for them
}

// NewBooks are empty ones of the same measurement.
func NewBooks(like Books) *Books {
	like.results, like.failed, like.repeats = map[Side][]cell.Result{}, map[Side]error{}, map[string]*Books{}
	return &like
}

// sidesOf lists what rows need, each side once, in the order of the rows.
func sidesOf(list []Row) []Side {
	var all []Side
	add := func(s Side) {
		if s.Contender != "" && !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	for _, r := range list {
		if r.Missing != "" {
			continue
		}
		add(r.Ours)
		for _, b := range r.Bars {
			add(b.Against)
		}
		for _, s := range r.Others {
			add(s)
		}
	}
	return all
}

// Round measures each side once. Every other round goes backwards, so that what drifts meets all alike. A side that has failed
// is left out from then on: it would fail again, and slowly.
func (b *Books) Round(ctx context.Context, sides []Side, d time.Duration) error {
	if len(sides) > 0 && len(b.results[sides[0]])%2 == 1 {
		sides = slices.Clone(sides)
		slices.Reverse(sides)
	}
	for _, s := range sides {
		if b.failed[s] != nil {
			continue
		}
		r, err := cell.Run(ctx, cell.Cell{
			Program: filepath.Join(b.Programs, s.Contender), Spec: s.Spec, Time: d,
			Papers: b.Papers, Stderr: b.Log, Profiles: b.Profiles,
		})
		if ctx.Err() != nil {
			return fmt.Errorf("stopped: %w", context.Cause(ctx))
		}
		if err != nil {
			b.failed[s] = fmt.Errorf("%s, %s: %w", s.Contender, s.Spec, err)
			fmt.Fprintf(b.Log, "%v\n", b.failed[s])
			continue
		}
		b.results[s] = append(b.results[s], r)
	}
	return nil
}

// measure takes all rounds. Those that only thorough rows have come last.
func (b *Books) measure(ctx context.Context, list []Row, o Options) error {
	thorough := sidesOf(slices.DeleteFunc(slices.Clone(list), func(r Row) bool { return !r.Thorough }))
	sides := sidesOf(list)
	all := o.Rounds
	if len(thorough) > 0 {
		all += o.Rounds * 4 / 5
	}
	for round := range all {
		these := sides
		if round >= o.Rounds {
			these = thorough
		}
		fmt.Fprintf(b.Log, "round %d of %d, %d measurements\n", round+1, all, len(these))
		if err := b.Round(ctx, these, o.Time); err != nil {
			return err
		}
	}
	return b.again(ctx, list, all, o.Time)
}

// again measures thorough rows that missed once more, in books of their own, which then count.
func (b *Books) again(ctx context.Context, list []Row, rounds int, d time.Duration) error {
	for _, r := range list {
		if !r.Thorough || !slices.ContainsFunc(r.Bars, func(x Bar) bool { return !b.reaches(r, x) }) {
			continue
		}
		fmt.Fprintf(b.Log, "%s missed: once more\n", r.Load)
		second := NewBooks(*b)
		b.repeats[r.Load] = second
		for range rounds {
			if err := second.Round(ctx, sidesOf([]Row{r}), d); err != nil {
				return err
			}
		}
	}
	return nil
}

// Value is the median over all rounds; not a number where there is none.
func (b *Books) Value(s Side, of Metric) float64 {
	if b.failed[s] != nil {
		return math.NaN()
	}
	var all []float64
	for _, r := range b.results[s] {
		all = append(all, of.Of(r))
	}
	return middle(all)
}

// ratio is the median of the ratios of each round; where the bar is against nobody, of the values.
func (b *Books) ratio(r Row, x Bar) (float64, error) {
	if err := errors.Join(b.failed[r.Ours], b.failed[x.Against]); err != nil {
		return math.NaN(), err
	}
	var all []float64
	mine, other := b.results[r.Ours], b.results[x.Against]
	if x.Against.Contender == "" {
		return b.Value(r.Ours, r.Metric), nil
	}
	for i := range min(len(mine), len(other)) {
		all = append(all, r.Metric.Of(mine[i])/r.theirs(x).Of(other[i]))
	}
	if len(all) == 0 {
		return math.NaN(), errors.New("not one round was measured")
	}
	return middle(all), nil
}

// reaches tells whether a row's bar was measured, and is reached.
func (b *Books) reaches(r Row, x Bar) bool {
	ratio, err := b.ratio(r, x)
	return err == nil && x.Holds(ratio)
}

// middle is the median, of which a half is averaged; not a number of nothing.
func middle(all []float64) float64 {
	if len(all) == 0 {
		return math.NaN()
	}
	sorted := slices.SortedFunc(slices.Values(all), cmp.Compare[float64])
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
