package top

import (
	"cmp"
	"slices"
	"time"

	"railyard/snapshot"
)

// trendLength is how many samples of a rail are remembered.
const trendLength = 24

// railKey names a rail among all of a node.
type railKey struct {
	peer string
	rail uint32
}

// Frame is what is shown: a snapshot, and what the ones before it add.
type Frame struct {
	Node  *snapshot.Node
	rails []railLine // trouble first
	// Per second, over all rails.
	out, in, sent, received, operations float64
	puts, gets, messages                snapshot.Times
	seconds                             float64 // since the snapshot before; 0: there is none
}

// railLine is one rail.
type railLine struct {
	snapshot.Rail
	peer, name string
	out, in    float64
	trend      []float64
}

// Memory makes frames of snapshots, one after the other.
type Memory struct {
	before *snapshot.Node
	trends map[railKey][]float64
}

// Frame adds a snapshot.
func (m *Memory) Frame(n *snapshot.Node) *Frame {
	f := &Frame{Node: n}
	old := map[railKey]snapshot.Rail{}
	if b := m.before; b != nil && b.Incarnation == n.Incarnation {
		f.seconds = n.At.Sub(b.At).Seconds()
		for _, e := range b.Endpoints {
			for _, r := range e.Rails {
				old[railKey{e.Peer, r.ID}] = r
			}
		}
	} else {
		m.trends = map[railKey][]float64{}
	}
	trends := map[railKey][]float64{}
	for _, e := range n.Endpoints {
		for _, r := range e.Rails {
			k := railKey{e.Peer, r.ID}
			l := railLine{Rail: r, peer: e.Peer, name: e.Name}
			if was, ok := old[k]; ok {
				l.out, l.in = f.rate(r.BytesOut, was.BytesOut), f.rate(r.BytesIn, was.BytesIn)
			}
			trend := m.trends[k]
			trend = append(trend, l.out+l.in)
			l.trend = trend[max(0, len(trend)-trendLength):]
			trends[k] = l.trend
			f.rails = append(f.rails, l)
		}
	}
	slices.SortStableFunc(f.rails, func(a, b railLine) int {
		return cmp.Or(cmp.Compare(trouble(&b), trouble(&a)), cmp.Compare(a.peer, b.peer), cmp.Compare(a.ID, b.ID))
	})
	m.trends = trends
	if f.seconds > 0 {
		f.compare(m.before)
	}
	m.before = n
	return f
}

// trouble is 1 for a rail that does not work.
func trouble(l *railLine) int {
	if l.Working() {
		return 0
	}
	return 1
}

func (f *Frame) compare(b *snapshot.Node) {
	t, was := f.Node.Totals, b.Totals
	f.out, f.in = f.rate(t.BytesOut, was.BytesOut), f.rate(t.BytesIn, was.BytesIn)
	f.sent, f.received = f.rate(t.MessagesSent, was.MessagesSent), f.rate(t.MessagesReceived, was.MessagesReceived)
	f.operations = f.rate(t.Completed, was.Completed)
	f.puts, f.gets, f.messages = t.Puts.Since(was.Puts), t.Gets.Since(was.Gets), t.Messages.Since(was.Messages)
}

// rate is what a counter did in a second.
func (f *Frame) rate(now, before uint64) float64 {
	if f.seconds <= 0 || now < before {
		return 0
	}
	return float64(now-before) / f.seconds
}

// working counts rails.
func (f *Frame) working() (well, all int) {
	for i := range f.rails {
		well += 1 - trouble(&f.rails[i])
	}
	return well, len(f.rails)
}

// open counts operations.
func (f *Frame) open() (n int) {
	for _, e := range f.Node.Endpoints {
		n += e.Open
	}
	return n
}

func (f *Frame) uptime() time.Duration { return f.Node.At.Sub(f.Node.Started) }
