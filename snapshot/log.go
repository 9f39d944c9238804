package snapshot

import (
	"slices"
	"sync"
	"time"

	"railyard/rail"
	"railyard/wire"
)

// Event is one fact of a node's event log.
type Event struct {
	// Sequence counts the log's events from 1 on: a hole says that some were not shown.
	Sequence   uint64    `json:"sequence"`
	At         time.Time `json:"at"`
	Kind       string    `json:"kind"`
	Peer       string    `json:"peer,omitempty"`
	Rail       uint32    `json:"rail"`
	Local      string    `json:"local,omitempty"`
	Remote     string    `json:"remote,omitempty"`
	Generation uint64    `json:"generation,omitempty"`
	Cause      string    `json:"cause,omitempty"`
	GapMs      float64   `json:"gap_ms,omitempty"`
	OutageMs   float64   `json:"outage_ms,omitempty"`
	InFlight   uint64    `json:"in_flight_bytes,omitempty"`
	Rerouted   uint64    `json:"rerouted_bytes,omitempty"`
	Missed     uint64    `json:"missed,omitempty"`
}

// Failover is one loss of a rail, from when it was noticed to when it was back.
type Failover struct {
	At         time.Time `json:"at"`
	Peer       string    `json:"peer"`
	Rail       uint32    `json:"rail"`
	Local      string    `json:"local"`
	Remote     string    `json:"remote"`
	Generation uint64    `json:"generation"`
	Cause      string    `json:"cause"`
	InFlight   uint64    `json:"in_flight_bytes"`
	// GapMs is how long what the rail carried stood still; null until other rails carry it. Rerouted is what they carry again.
	GapMs    *float64 `json:"gap_ms"`
	Rerouted uint64   `json:"rerouted_bytes"`
	// OutageMs is how long the rail was away; null while it is.
	OutageMs *float64 `json:"outage_ms"`
	// Ended: the endpoint ended before the rail was back.
	Ended bool `json:"ended,omitempty"`
}

// over says that nothing more will come of it.
func (f *Failover) over() bool { return f.Ended || f.GapMs != nil && f.OutageMs != nil }

// How much a Log keeps, and shows at a time.
const (
	keptEvents    = 1000
	keptFailovers = 500

	ShownEvents    = 60
	ShownFailovers = 30
)

// Log keeps the newest events of a node and makes failovers of them. Safe from any goroutine; the zero value is empty.
//
// Invariant: failovers are in the order in which the rails were lost; of one rail at most one is open.
type Log struct {
	mu        sync.Mutex
	sequence  uint64
	events    []Event
	failovers []*Failover
	open      map[railName]*Failover
}

type railName struct {
	peer string
	rail wire.RailID
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Take adds an event.
func (l *Log) Take(e rail.Event) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.sequence++
	entry := Event{
		Sequence: l.sequence, At: e.At, Kind: e.Kind.String(), Peer: e.Peer, Rail: uint32(e.Rail), Local: e.Local, Remote: e.Remote,
		Generation: uint64(e.Generation), GapMs: milliseconds(e.Gap), OutageMs: milliseconds(e.Outage),
		InFlight: e.InFlight, Rerouted: e.Rerouted, Missed: e.Missed,
	}
	if e.Cause != nil {
		entry.Cause = e.Cause.Error()
	}
	if len(l.events) == keptEvents {
		l.events = l.events[:copy(l.events, l.events[keptEvents/4:])]
	}
	l.events = append(l.events, entry)
	l.follow(e, entry)
}

// follow sees failovers through.
func (l *Log) follow(e rail.Event, entry Event) {
	if e.Missed > 0 { // among what was missed may be the end of any of them
		l.endAll("")
	}
	name := railName{e.Peer, e.Rail}
	f := l.open[name]
	switch e.Kind {
	case rail.RailDown:
		if f != nil {
			f.Ended = true
		}
		l.begin(name, entry)
	case rail.RailRetired:
		if f != nil && f.Generation == entry.Generation {
			f.GapMs, f.Rerouted = &entry.GapMs, entry.Rerouted
			l.settle(name, f)
		}
	case rail.RailRejoined:
		if f != nil {
			f.OutageMs = &entry.OutageMs
			l.settle(name, f)
		}
	case rail.RailEnded, rail.RailGaveUp:
		if f != nil {
			f.Ended = true
			delete(l.open, name)
		}
	case rail.EndpointDown:
		l.endAll(e.Peer)
	default: // no part of a failover
	}
}

func (l *Log) begin(name railName, e Event) {
	f := &Failover{At: e.At, Peer: e.Peer, Rail: e.Rail, Local: e.Local, Remote: e.Remote, Generation: e.Generation,
		Cause: e.Cause, InFlight: e.InFlight}
	if l.open == nil {
		l.open = make(map[railName]*Failover)
	}
	l.open[name] = f
	if len(l.failovers) == keptFailovers {
		l.failovers = l.failovers[:copy(l.failovers, l.failovers[keptFailovers/4:])]
	}
	l.failovers = append(l.failovers, f)
}

func (l *Log) settle(name railName, f *Failover) {
	if f.over() {
		delete(l.open, name)
	}
}

// endAll gives up what is open with a peer; "": with all of them.
func (l *Log) endAll(peer string) {
	for name, f := range l.open {
		if peer == "" || name.peer == peer {
			f.Ended = true
			delete(l.open, name)
		}
	}
}

// Fill puts the newest events and failovers into a snapshot.
func (l *Log) Fill(n *Node) {
	l.mu.Lock()
	defer l.mu.Unlock()
	n.Events = slices.Clone(l.events[max(0, len(l.events)-ShownEvents):])
	if n.Events == nil {
		n.Events = []Event{}
	}
	n.Failovers = make([]Failover, 0, ShownFailovers)
	for _, f := range l.failovers[max(0, len(l.failovers)-ShownFailovers):] {
		n.Failovers = append(n.Failovers, *f)
	}
}

// Follow takes events until the channel is closed.
func (l *Log) Follow(events <-chan rail.Event) {
	for e := range events {
		l.Take(e)
	}
}
