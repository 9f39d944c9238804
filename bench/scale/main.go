// Scale measures what grows with the number of endpoints, rails, regions, open operations and actors: nothing should that is on the
// way of a put or a message. It exits with 1 where a bar is missed.
//
//	go run -C bench ./scale [--rounds 5] [--time 2s] [--only LOAD] [--json] [--markdown FILE]
//
// A thousand nodes in one process need some GB of memory, most of it for their actor systems.
package main

import (
	"fmt"

	"railyard/bench/internal/bars"
	"railyard/bench/internal/cell"
)

// ours is the only contender: it is compared with itself.
const ours = "rails"

// The numbers that must not matter.
const (
	crowd   = 1000
	regions = 100_000
	open    = 100_000
	few     = 1000 // operations open, where there are few
	targets = 1_000_000
)

var (
	memory = bars.Metric{Of: func(r cell.Result) float64 { return r.Weight / 1024 },
		Format: func(v float64) string { return fmt.Sprintf("%.1f KiB", v) }}
	cores = bars.Metric{Of: func(r cell.Result) float64 { return r.Cores },
		Format: func(v float64) string { return fmt.Sprintf("%.1f %% of a core", v*100) }}
)

func main() {
	bars.Program{Name: "scale", Contenders: []string{ours}, Rows: rows(crowd, regions, targets)}.Main()
}

func rows(crowd, regions, targets int) []bars.Row {
	// Idle endpoints have two rails each, so the node that they are connected to has two as well.
	idle := cell.Spec{Load: cell.Idle, Size: 1, Rails: 2, Crowd: crowd}
	put := cell.Spec{Load: cell.Put, Size: 4 << 20, Window: 8, Rails: 1}
	twice := bars.With(put, func(s *cell.Spec) { s.Rails = 2 })
	single := cell.Spec{Load: cell.Put, Size: 8, Window: 1, Rails: 1}
	small := cell.Spec{Load: cell.Put, Size: 8, Window: few, Rails: 1}
	messages := cell.Spec{Load: cell.Messages, Size: 64, Window: 8192, Senders: 8, Rails: 1}
	amid := func(s *cell.Spec) { s.Crowd = crowd }
	among := func(s *cell.Spec) { s.Regions = regions }
	side := func(s cell.Spec) bars.Side { return bars.Side{Contender: ours, Spec: s} }
	return []bars.Row{
		{Load: "idle, memory a rail", Ours: side(idle), Metric: memory, Bars: []bars.Bar{{Limit: 64, AtMost: true}}},
		{Load: "idle, CPU of both ends", Ours: side(idle), Metric: cores, Bars: []bars.Bar{{Limit: 0.10, AtMost: true}}},
		{Load: fmt.Sprintf("put 4 MiB beside %d idle endpoints", crowd), Ours: side(bars.With(twice, amid)), Metric: bars.Bandwidth,
			Bars: []bars.Bar{bars.AtLeast(0.95, ours, twice)}},
		{Load: fmt.Sprintf("put 4 MiB among %d regions", regions), Ours: side(bars.With(put, among)), Metric: bars.Bandwidth,
			Bars: []bars.Bar{bars.AtLeast(0.95, ours, put)}},
		{Load: fmt.Sprintf("put 8 B, one at a time, among %d regions", regions), Ours: side(bars.With(single, among)),
			Metric: bars.Median, Bars: []bars.Bar{bars.AtMost(1.05, ours, single)}},
		{Load: fmt.Sprintf("put 8 B, %d open", open), Ours: side(bars.With(small, func(s *cell.Spec) { s.Window = open })),
			Metric: bars.Rate, Bars: []bars.Bar{bars.AtLeast(0.90, ours, small)}},
		{Load: fmt.Sprintf("messages 64 B, %d PIDs used", targets),
			Ours:   side(bars.With(messages, func(s *cell.Spec) { s.Targets = targets })),
			Metric: bars.Rate, Bars: []bars.Bar{bars.AtLeast(0.90, ours, messages)}},
	}
}
