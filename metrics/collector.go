package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"railyard/rail"
	"railyard/snapshot"
)

// Collector gives the metrics of what a node is, rather than of what happens to it: rails, windows, operations. Register it beside a
// Watcher. look is asked at each scrape: actors.Node.Snapshot.
func Collector(look func() snapshot.Node) prometheus.Collector { return &collector{look} }

type collector struct{ look func() snapshot.Node }

var (
	ofPeer = []string{"peer"}
	ofRail = []string{"peer", "rail", "local", "remote"}

	buildInfo = describe("railyard_build_info", "One, with what the program was built of.", "version", "go_version")
	startTime = describe("railyard_start_time_seconds", "When the node was started, in seconds since 1970.")
	messages  = describe("railyard_messages_total", "Messages to and from other nodes.", "direction")
	total     = describe("railyard_bytes_total", "Bytes that rails carried: payload, headers and repetitions.", "direction")
	ended     = describe("railyard_operations_total", "Puts, gets and flushes that have ended.", "result")
	putTime   = describe("railyard_put_seconds", "How long puts took, from start to completion, in seconds.")
	getTime   = describe("railyard_get_seconds", "How long gets took, from start to completion, in seconds.")
	sendTime  = describe("railyard_message_seconds",
		"How long messages took until the peer had them, in seconds: a sample, one at a time on each rail.")
	regions      = describe("railyard_regions", "Registered regions.")
	regionsLimit = describe("railyard_regions_limit", "The most regions that may be registered.")
	endpoints    = describe("railyard_endpoints", "Peers.")
	rails        = describe("railyard_rails", "Rails in each state.", "state")

	window     = describe("railyard_window_bytes", "What a peer lets this node have under way, in bytes.", ofPeer...)
	windowUsed = describe("railyard_window_used_bytes", "What of it the peer's actors have not processed, in bytes.", ofPeer...)
	windowFull = describe("railyard_window_full_total", "Sends that found no room.", ofPeer...)
	open       = describe("railyard_operations_open", "Puts, gets and flushes that have not ended.", ofPeer...)

	railUp       = describe("railyard_rail_up", "Whether the rail takes work (up or in probation): 1 or 0.", ofRail...)
	railBytes    = describe("railyard_rail_bytes_total", "Bytes that the rail carried.", append(ofRail[:4:4], "direction")...)
	railInFlight = describe("railyard_rail_in_flight_bytes", "Bytes sent and not acknowledged.", ofRail...)
	railTrip     = describe("railyard_rail_round_trip_seconds", "Smoothed round trip, in seconds.", ofRail...)
	railRate     = describe("railyard_rail_rate_bytes_per_second", "What the rail was measured to be able to carry.", ofRail...)
	railWeight   = describe("railyard_rail_weight", "The part of its fair share that the rail is given, 0 to 1.", ofRail...)
	railLost     = describe("railyard_rail_restarts_total", "Generations of the rail that were lost.", ofRail...)
)

var described = []*prometheus.Desc{buildInfo, startTime, messages, total, ended, putTime, getTime, sendTime, regions, regionsLimit,
	endpoints, rails, window, windowUsed, windowFull, open, railUp, railBytes, railInFlight, railTrip, railRate, railWeight, railLost}

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc(name, help, labels, nil)
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range described {
		to <- d
	}
}

// scrape is where one collection goes.
type scrape chan<- prometheus.Metric

func (s scrape) gauge(d *prometheus.Desc, value float64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (s scrape) counter(d *prometheus.Desc, value uint64, labels ...string) {
	s <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
}

// times makes a histogram; its last bucket has no limit.
func (s scrape) times(d *prometheus.Desc, t snapshot.Times) {
	buckets, below := make(map[float64]uint64, len(t.Buckets)), uint64(0)
	for i, n := range t.Buckets {
		below += n
		if i < len(t.Buckets)-1 {
			buckets[snapshot.Limit(i).Seconds()] = below
		}
	}
	s <- prometheus.MustNewConstHistogram(d, below, t.Sum.Seconds(), buckets)
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(to chan<- prometheus.Metric) {
	n, s := c.look(), scrape(to)
	build := snapshot.ThisBuild()
	s.gauge(buildInfo, 1, build.Version, build.Go)
	s.gauge(startTime, float64(n.Started.UnixMilli())/1000)
	t := n.Totals
	s.counter(messages, t.MessagesSent, "out")
	s.counter(messages, t.MessagesReceived, "in")
	s.counter(total, t.BytesOut, "out")
	s.counter(total, t.BytesIn, "in")
	s.counter(ended, t.Completed, "completed")
	s.counter(ended, t.Canceled, "canceled")
	s.counter(ended, t.Refused, "refused")
	s.times(putTime, t.Puts)
	s.times(getTime, t.Gets)
	s.times(sendTime, t.Messages)
	s.gauge(regions, float64(n.Regions.Live))
	s.gauge(regionsLimit, float64(n.Regions.Limit))
	s.gauge(endpoints, float64(len(n.Endpoints)))
	states := make(map[rail.State]int)
	for i := range n.Endpoints {
		s.endpoint(&n.Endpoints[i], states)
	}
	for state := rail.Connecting; state <= rail.Probation; state++ {
		s.gauge(rails, float64(states[state]), state.String())
	}
}

func (s scrape) endpoint(e *snapshot.Endpoint, states map[rail.State]int) {
	s.gauge(window, float64(e.Window), e.Peer)
	s.gauge(windowUsed, float64(e.UnderWay), e.Peer)
	s.counter(windowFull, e.Full, e.Peer)
	s.gauge(open, float64(e.Open), e.Peer)
	for i := range e.Rails {
		r := &e.Rails[i]
		states[r.State]++
		of := []string{e.Peer, strconv.FormatUint(uint64(r.ID), 10), r.Local, r.Remote}
		up := 0.0
		if r.Working() {
			up = 1
		}
		s.gauge(railUp, up, of...)
		s.counter(railBytes, r.BytesOut, append(of[:4:4], "out")...)
		s.counter(railBytes, r.BytesIn, append(of[:4:4], "in")...)
		s.gauge(railInFlight, float64(r.InFlight), of...)
		s.gauge(railTrip, float64(r.RoundTrip)/1e6, of...)
		s.gauge(railRate, r.Rate, of...)
		s.gauge(railWeight, r.Weight, of...)
		s.counter(railLost, r.Restarts, of...)
	}
}
