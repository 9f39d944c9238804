package main

import (
	"fmt"

	"railyard/bench/internal/bars"
	"railyard/bench/internal/cell"
)

// Names of contenders: of their programs, too.
const (
	ours      = "rails"
	raw       = "raw"
	proto     = "proto"
	hollywood = "hollywood"
	grpc      = "grpc"
	nats      = "nats"
)

// contenders are the programs that there are.
var contenders = []string{raw, ours, proto, hollywood, grpc, nats}

// Loads that several rows use.
var (
	put4M     = cell.Spec{Load: cell.Put, Size: 4 << 20, Window: 8, Rails: 1}
	put64K    = cell.Spec{Load: cell.Put, Size: 64 << 10, Window: 16, Rails: 1}
	get4M     = cell.Spec{Load: cell.Get, Size: 4 << 20, Window: 8, Rails: 1}
	putSmall  = cell.Spec{Load: cell.Put, Size: 8, Window: 256, Rails: 1}
	putSingle = cell.Spec{Load: cell.Put, Size: 8, Window: 1, Rails: 1}
	ping64    = cell.Spec{Load: cell.Ping, Size: 64, Rails: 1}
	small     = cell.Spec{Load: cell.Messages, Size: 64, Window: 8192, Senders: 8, Rails: 1}
	kilo      = cell.Spec{Load: cell.Messages, Size: 1 << 10, Window: 8192, Senders: 8, Rails: 1}
	mega      = cell.Spec{Load: cell.Messages, Size: 1 << 20, Window: 4, Senders: 8, Rails: 1}
)

// rows are the loads of the report. Those that share a side of their ratio are near each other: it is measured once a round.
func rows() []bars.Row { return append(putRows(), messageRows()...) }

func putRows() []bars.Row {
	tls := bars.With(put4M, func(s *cell.Spec) { s.TLS = true })
	row := func(load string, s cell.Spec, m bars.Metric, b bars.Bar) bars.Row {
		return bars.Row{Load: load, Ours: side(ours, s), Metric: m, Bars: []bars.Bar{b}}
	}
	list := []bars.Row{
		row("put 4 MiB", put4M, bars.Bandwidth, bars.AtLeast(0.95, raw, put4M)),
		row("put 4 MiB, CPU a GB", put4M, bars.CPU, bars.AtMost(1.15, raw, put4M)),
		row("get 4 MiB", get4M, bars.Bandwidth, bars.AtLeast(0.90, raw, put4M)),
		row("put 4 MiB, checksums", put4M, bars.Bandwidth, bars.AtLeast(0.80, ours, put4M)),
		row("put 4 MiB, TLS", tls, bars.Bandwidth, bars.AtLeast(0.80, raw, tls)),
	}
	list[0].Thorough = true
	list[0].Quoted = "UCX 0.95 of raw without error handling, 0.17 with it"
	list[1].Quoted = "UCX spins"
	list[3].Missing = "rails over TCP carry no checksums"
	for _, n := range []int{2, 4} {
		several := bars.With(put4M, func(s *cell.Spec) { s.Rails = n })
		list = append(list, row(fmt.Sprintf("put 4 MiB, %d rails", n), several, bars.Bandwidth, bars.AtLeast(0.90, ours, put4M)))
	}
	list[len(list)-2].Quoted = "two rails of 2 Gbit/s: UCX 452 MiB/s, 210 with error handling"
	list = append(list,
		row("put 64 KiB", put64K, bars.Bandwidth, bars.AtLeast(1.1, raw, put64K)),
		row("put 8 B, one at a time", putSingle, bars.Median, bars.AtMost(1.6, raw, ping64)),
		row("put 8 B, one at a time, polling", putSingle, bars.Median, bars.AtMost(0.8, raw, ping64)),
	)
	list[len(list)-3].Quoted = "UCX 0.5 of its 4 MiB without error handling, 0.27 with it"
	list[len(list)-2].Quoted = "UCX spins for 18 to 26 us one way"
	list[len(list)-1].Missing = "readers do not poll before they park"
	return list
}

func messageRows() []bars.Row {
	single := bars.With(ping64, func(s *cell.Spec) { s.Procs = 1 })
	busy := bars.With(ping64, func(s *cell.Spec) { s.Beside = put4M.Size })
	rest := bars.AtLeast(0.90, ours, put4M)
	rest.Theirs = &bars.Bandwidth
	return []bars.Row{
		{Load: "ping 64 B", Ours: side(ours, ping64), Metric: bars.Median, Others: others(ping64),
			Bars: []bars.Bar{bars.AtMost(2.5, raw, ping64).Aiming(1.8), bars.AtMost(0.35, proto, ping64)}},
		{Load: "ping 64 B, one processor", Ours: side(ours, single), Metric: bars.Median,
			Bars: []bars.Bar{bars.AtMost(1.8, raw, single).Aiming(1.5)}},
		{Load: "ping 64 B behind puts, p99", Ours: side(ours, busy), Metric: bars.P99,
			Bars: []bars.Bar{bars.AtMost(25, ours, ping64).Aiming(10)}},
		{Load: "puts beside pings", Ours: side(ours, busy), Metric: bars.Beside, Bars: []bars.Bar{rest}},
		{Load: "put 8 B", Ours: side(ours, putSmall), Metric: bars.Rate, Bars: []bars.Bar{bars.AtLeast(0.28, raw, small)},
			Quoted: "UCX 83 to 399 k/s"},
		{Load: "messages 64 B", Ours: side(ours, small), Metric: bars.Rate, Others: others(small),
			Bars: []bars.Bar{bars.AtLeast(0.26, raw, small), bars.AtLeast(2.8, proto, small)}},
		{Load: "messages 1 KiB", Ours: side(ours, kilo), Metric: bars.Rate, Others: others(kilo),
			Bars: []bars.Bar{bars.AtLeast(0.42, raw, kilo), bars.AtLeast(3, proto, kilo)}},
		{Load: "messages 1 MiB", Ours: side(ours, mega), Metric: bars.Bandwidth, Others: others(mega),
			Bars: []bars.Bar{bars.AtLeast(0.42, raw, mega).Aiming(0.6), bars.AtLeast(3.3, proto, mega)}},
	}
}

func side(contender string, s cell.Spec) bars.Side { return bars.Side{Contender: contender, Spec: s} }

// others are those that no bar is against.
func others(s cell.Spec) []bars.Side {
	return []bars.Side{side(hollywood, s), side(grpc, s), side(nats, s)}
}
