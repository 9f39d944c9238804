// Page serves the admin page of a node that is not there: as many peers and rails as wanted, with made-up figures that move. It is what
// the page is measured with where a demo has too few rails. It ends with its standard input.
package main

import (
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"time"

	"railyard/admin"
	"railyard/rail"
	"railyard/snapshot"
)

func main() {
	peers := flag.Int("peers", 200, "peers of the node")
	rails := flag.Int("rails", 5, "rails to each")
	flag.Parse()
	m := maker{peers: *peers, rails: *rails, began: time.Now()}
	page, err := admin.Start(admin.Config{Address: "127.0.0.1:0", Look: m.look})
	if err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
	fmt.Println(page.URL())
	_, _ = io.Copy(io.Discard, os.Stdin) // until whoever started it has ended
	if err := page.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "page:", err)
		os.Exit(1)
	}
}

// maker makes snapshots up.
type maker struct {
	peers, rails int
	began        time.Time
}

func (m *maker) look() snapshot.Node {
	now := time.Now()
	passed := now.Sub(m.began).Seconds()
	n := snapshot.Node{At: now, Started: m.began, Name: "made-up", Address: "127.0.0.1:7400", Incarnation: "1", Version: "test",
		Listening: []string{"127.0.0.1:7400"}, Endpoints: []snapshot.Endpoint{}, Events: []snapshot.Event{},
		Failovers: []snapshot.Failover{}}
	n.Totals.Puts, n.Totals.Gets, n.Totals.Messages = times(passed), times(passed), times(passed)
	for p := range m.peers {
		host := fmt.Sprintf("%d.%d:7400", p/250, p%250+1)
		e := snapshot.Endpoint{Peer: "10.0." + host, Name: fmt.Sprintf("node-%03d", p), Window: 64 << 20, UnderWay: uint64(p) << 18,
			MessagesSent: uint64(1000 * passed), MessagesReceived: uint64(900 * passed), Rails: []snapshot.Rail{}}
		for i := range m.rails {
			carried := uint64(passed * 1e6 * (2 + math.Sin(passed/5+float64(i+p))))
			r := snapshot.Rail{ID: uint32(i), Kind: "tcp", Local: fmt.Sprintf("10.%d.0.1:7400", i+1),
				Remote: fmt.Sprintf("10.%d.%s", i+1, host), State: rail.Up, Generation: 3, Weight: 1, Rate: 1.25e9,
				RoundTrip: int64(120 + 30*i), InFlight: 65536, Since: int64(passed * 1000), BytesOut: carried, BytesIn: carried / 3}
			if p%40 == 7 && i == 1 {
				r.State, r.Reason, r.Weight = rail.Down, "no answer for 120 ms", 0
			}
			n.Totals.BytesOut += r.BytesOut
			n.Totals.BytesIn += r.BytesIn
			e.Rails = append(e.Rails, r)
		}
		n.Endpoints = append(n.Endpoints, e)
	}
	return n
}

func times(passed float64) snapshot.Times {
	t := snapshot.Times{Buckets: make([]uint64, 24)}
	t.Buckets[8], t.Buckets[12] = uint64(500*passed), uint64(10*passed)
	return t
}
