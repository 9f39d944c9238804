package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"railyard/bench/internal/bars"
	"railyard/bench/internal/cell"
)

// The curve: bandwidth of puts over their size, each size the double of the one before.
const (
	curveName   = "put curve"
	curveFrom   = 8
	curveTo     = 1 << 30
	curveRounds = 3
	curveBar    = 0.90 // of the bandwidth at half the size, at the least
	slowest     = 1e9  // bytes a second that large puts are given time for
	enough      = 6    // of them
)

// curve measures, and draws where a file is given.
type curve struct{ svg string }

func (c *curve) extra() *bars.Extra {
	return &bars.Extra{
		Load:    curveName,
		Flags:   func(f *flag.FlagSet) { f.StringVar(&c.svg, "svg", "", "") },
		Measure: c.measure,
	}
}

// point is one size of the curve, in 10^6 bytes a second; 0 where that failed.
type point struct {
	Size int64   `json:"size"`
	Ours float64 `json:"ours_MBps"`
	Raw  float64 `json:"raw_MBps"`
}

// curveSpec keeps about as many bytes under way at every size.
func curveSpec(size int64) cell.Spec {
	const underWay, most, least = 32 << 20, 256, 2
	return cell.Spec{Load: cell.Put, Size: size, Window: int(min(most, max(least, underWay/size))), Rails: 1}
}

// measure goes through all sizes round by round, each for a quarter of the time that a row has, or for a few operations.
func (c *curve) measure(ctx context.Context, b *bars.Books, o bars.Options) ([]bars.Line, any, error) {
	rounds := min(o.Rounds, curveRounds)
	for round := range rounds {
		fmt.Fprintf(b.Log, "%s, round %d of %d\n", curveName, round+1, rounds)
		for size := int64(curveFrom); size <= curveTo; size *= 2 {
			sides := []bars.Side{side(ours, curveSpec(size)), side(raw, curveSpec(size))}
			long := time.Duration(float64(size) * enough / slowest * float64(time.Second))
			if err := b.Round(ctx, sides, max(o.Time/4, long)); err != nil {
				return nil, nil, err
			}
		}
	}
	known := func(contender string, size int64) float64 {
		return max(0, b.Value(side(contender, curveSpec(size)), bars.Bandwidth))
	}
	var points []point
	for size := int64(curveFrom); size <= curveTo; size *= 2 {
		points = append(points, point{size, known(ours, size), known(raw, size)})
	}
	if c.svg != "" {
		if err := os.WriteFile(c.svg, []byte(draw(points)), 0o644); err != nil {
			return nil, nil, fmt.Errorf("the curve cannot be written: %w", err)
		}
	}
	return []bars.Line{curveLine(points)}, points, nil
}

// curveLine is the curve's bar.
func curveLine(points []point) bars.Line {
	i, ratio := cliff(points)
	here, before := points[i], points[i-1]
	bar := bars.Bar{Limit: curveBar}
	return bars.Line{
		Load: fmt.Sprintf("%s, %s to %s", curveName, cell.Bytes(points[0].Size), cell.Bytes(points[len(points)-1].Size)),
		Ours: fmt.Sprintf("%s at %s", bars.Megabytes(here.Ours), cell.Bytes(here.Size)), Against: "rails, half the size",
		Theirs: bars.Megabytes(before.Ours), Ratio: &ratio, Bar: bar.String(), OK: bar.Holds(ratio),
	}
}

// cliff finds the point that is slowest against the one before it, and the ratio of the two.
func cliff(points []point) (at int, ratio float64) {
	for i := 1; i < len(points); i++ {
		r := 0.0 // a size that failed is as bad as can be
		if points[i].Ours > 0 && points[i-1].Ours > 0 {
			r = points[i].Ours / points[i-1].Ours
		}
		if at == 0 || r < ratio {
			at, ratio = i, r
		}
	}
	return at, ratio
}
