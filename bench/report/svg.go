package main

import (
	"fmt"
	"math"
	"strings"

	"railyard/bench/internal/cell"
)

// The picture's measures, in pixels.
const (
	width, height          = 860, 480
	left, right, top, foot = 90, 30, 50, 60
)

// picture draws bandwidth over size; both axes are logarithmic.
type picture struct {
	strings.Builder
	low, high float64 // bandwidths at the foot and at the top: powers of ten
}

// draw makes an SVG of the curve.
func draw(points []point) string {
	p := &picture{low: math.Inf(1), high: 1}
	for _, pt := range points {
		for _, v := range []float64{pt.Ours, pt.Raw} {
			if v > 0 {
				p.low, p.high = min(p.low, v), max(p.high, v)
			}
		}
	}
	p.low = math.Pow(10, math.Floor(math.Log10(min(p.low, p.high/10))))
	p.high = math.Pow(10, math.Ceil(math.Log10(p.high)))
	fmt.Fprintf(p, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" `, width, height)
	p.WriteString(`font-family="sans-serif" font-size="13">` + "\n")
	fmt.Fprintf(p, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	fmt.Fprintf(p, `<text x="%d" y="24" font-size="16">Bandwidth of puts over their size, one rail over loopback</text>`+"\n", left)
	p.axes(points)
	p.stroke(points, stroke{"ours", "#0b6e4f", 0, func(pt point) float64 { return pt.Ours }})
	p.stroke(points, stroke{"raw TCP", "#b8480d", 1, func(pt point) float64 { return pt.Raw }})
	p.WriteString("</svg>\n")
	return p.String()
}

func (p *picture) x(size int64) float64 {
	return left + (width-left-right)*math.Log2(float64(size)/curveFrom)/math.Log2(float64(curveTo)/curveFrom)
}

func (p *picture) y(v float64) float64 {
	return height - foot - (height-top-foot)*math.Log10(v/p.low)/math.Log10(p.high/p.low)
}

func (p *picture) axes(points []point) {
	grid := `<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" stroke="#ddd"/><text x="%.1f" y="%.1f" text-anchor="%s">%s</text>` + "\n"
	for v := p.low; v <= p.high*1.01; v *= 10 {
		y := p.y(v)
		fmt.Fprintf(p, grid, float64(left), y, float64(width-right), y, float64(left-8), y+4, "end", fmt.Sprintf("%g MB/s", v))
	}
	for i, pt := range points {
		if i%3 == 0 {
			x := p.x(pt.Size)
			fmt.Fprintf(p, grid, x, float64(top), x, float64(height-foot), x, float64(height-foot+20), "middle", cell.Bytes(pt.Size))
		}
	}
}

// stroke is one line of the picture.
type stroke struct {
	name, color string
	place       int // of its name, from below
	of          func(point) float64
}

// stroke draws a line and its name. What was not measured is a gap.
func (p *picture) stroke(points []point, c stroke) {
	step := "M"
	var path strings.Builder
	for _, pt := range points {
		v := c.of(pt)
		if v <= 0 {
			step = "M"
			continue
		}
		fmt.Fprintf(&path, "%s%.1f %.1f", step, p.x(pt.Size), p.y(v))
		step = "L"
	}
	fmt.Fprintf(p, `<path d="%s" fill="none" stroke="%s" stroke-width="2"/>`+"\n", path.String(), c.color)
	fmt.Fprintf(p, `<text x="%d" y="%d" fill="%s">%s</text>`+"\n", width-right-120, height-foot-30-20*c.place, c.color, c.name)
}
