package perf

import (
	"context"
	"sync"
	"time"

	"railyard/actors"
	"railyard/rail"
)

// Trouble is one thing that happened to a rail, or to the endpoint, during a test, as this side saw it.
type Trouble struct {
	At         int64  `json:"unix_ns"`
	Kind       string `json:"kind"` // of rail.EventKind
	Local      string `json:"local,omitempty"`
	Remote     string `json:"remote,omitempty"`
	Generation uint64 `json:"generation,omitempty"`
	Cause      string `json:"cause,omitempty"`
	InFlight   uint64 `json:"in_flight_bytes,omitempty"`
	OutageUS   int64  `json:"outage_us,omitempty"`
	Missed     uint64 `json:"missed,omitempty"` // events before this one that are not in the list
}

// maxTrouble bounds what is kept of it; what comes later is only counted.
const maxTrouble = 4096

// diary writes down what happens to the rails.
//
// Owner: mu, until the goroutine has been joined.
type diary struct {
	mu    sync.Mutex
	lives uint64
	all   []Trouble
}

// keep writes the node's events down until ctx ends. The first rail's coming up is no trouble.
func (d *diary) keep(ctx context.Context, node *actors.Node) {
	for e := range node.Events().Subscribe(ctx) {
		d.write(e)
	}
}

func (d *diary) write(e rail.Event) {
	switch e.Kind {
	case rail.RailUp, rail.EndpointUp, rail.DeviceLink:
		return
	default:
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if e.Kind == rail.RailDown {
		d.lives++
	}
	if len(d.all) >= maxTrouble {
		d.all[len(d.all)-1].Missed += 1 + e.Missed
		return
	}
	t := Trouble{At: e.At.UnixNano(), Kind: e.Kind.String(), Local: e.Local, Remote: e.Remote, Generation: uint64(e.Generation),
		InFlight: e.InFlight, OutageUS: int64(e.Outage / time.Microsecond), Missed: e.Missed}
	if e.Cause != nil {
		t.Cause = e.Cause.Error()
	}
	d.all = append(d.all, t)
}

// tell adds what has been written so far to a result.
func (d *diary) tell(r *Result) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r.Lives, r.Trouble = d.lives, append([]Trouble(nil), d.all...)
}
