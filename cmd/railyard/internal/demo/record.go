package demo

import (
	"sync"
	"time"

	"railyard/cmd/railyard/internal/cable"
	"railyard/cmd/railyard/internal/units"
	"railyard/internal/load"
)

const (
	// settle is how long after the rejoin a cut still answers for standstills.
	settle = 300 * time.Millisecond
	// rejoinWait is how long a healed rail may take to come back before that counts as a broken promise.
	rejoinWait = 10 * time.Second
	// carriedEnough is more than a handshake and a few heartbeats: the rail carries work.
	carriedEnough = 16 << 10
)

// Record is what is printed of one cut of one rail. Times are in milliseconds; null: it did not happen.
type Record struct {
	Cut       string `json:"cut"` // how
	Rail      int    `json:"rail"`
	RailsLeft int    `json:"rails_left"` // rails that were whole at that moment; 0: everything had to wait
	InFlight  uint64 `json:"in_flight_bytes"`
	// DetectedMs is from the cut until either node took the rail for suspect or down; DetectedBy says how.
	DetectedMs *float64 `json:"detected_ms"`
	DetectedBy string   `json:"detected_by"`
	// GapMs is the worst standstill of a single actor pair or put behind the cut; GapOf says whose.
	GapMs float64 `json:"gap_ms"`
	GapOf string  `json:"gap_of"`
	// RejoinMs is from the heal until the rail carried bytes again.
	RejoinMs *float64 `json:"rejoin_ms"`
	// Local and Remote are the devices that the framework named when it detected the cut, Cause is what it said.
	Local  string  `json:"local"`
	Remote string  `json:"remote"`
	Cause  string  `json:"cause"`
	CutMs  float64 `json:"cut_ms"` // how long the rail was cut
}

// cut is a Record in the making.
type cut struct {
	record   Record
	at       time.Duration
	healed   time.Duration // 0: not yet
	works    bool          // the node counts the rail among those that work
	mark     uint64        // bytes that the cable had carried when it began to work
	rejoined time.Duration // 0: not yet
	end      time.Duration // of the time that the cut answers for
	late     bool          // it was healed and did not come back
}

// seen is one rail at a moment.
type seen struct {
	works   bool   // up, or in probation
	carried uint64 // bytes that its cable has handed over
}

// book keeps the cuts that are not yet complete. Safe from any goroutine.
//
// Invariant: at most one open cut a rail.
type book struct {
	mu   sync.Mutex
	open []*cut // nil: none; by rail
}

func newBook(rails int) *book { return &book{open: make([]*cut, rails)} }

// begin notes a cut that is about to be made. The result is the rail's earlier one, if that was still open: it ends here.
func (b *book) begin(c *cut) (superseded *cut) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.open[c.record.Rail]; old != nil {
		old.end = c.at
		superseded = old
	}
	b.open[c.record.Rail] = c
	return superseded
}

// struck notes what the cut hit.
func (b *book) struck(c *cut, at time.Duration, blow cable.Blow) {
	b.mu.Lock()
	defer b.mu.Unlock()
	c.at = at
	c.record.InFlight = blow.InFlight
}

// healed notes that a rail's cable is whole again.
func (b *book) healed(rail int, now time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.open[rail]; c != nil && c.healed == 0 {
		c.healed = now
	}
}

// cutOf gives a copy of what is known of a rail's open cut; nil: none is open.
func (b *book) cutOf(rail int) *cut {
	b.mu.Lock()
	defer b.mu.Unlock()
	if c := b.open[rail]; c != nil {
		return &cut{at: c.at, record: c.record}
	}
	return nil
}

// isOpen tells whether a rail has a cut that is not complete.
func (b *book) isOpen(rail int) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.open[rail] != nil
}

// look takes note of the rails and gives the cuts that are complete, which are forgotten.
func (b *book) look(now time.Duration, rails []seen) []*cut {
	b.mu.Lock()
	defer b.mu.Unlock()
	var complete []*cut
	for i, c := range b.open {
		if c == nil || c.healed == 0 {
			continue
		}
		c.look(now, rails[i])
		if c.end != 0 && now >= c.end {
			complete = append(complete, c)
			b.open[i] = nil
		}
	}
	return complete
}

func (c *cut) look(now time.Duration, rail seen) {
	switch {
	case c.rejoined != 0 || c.end != 0:
	case !rail.works:
		c.works = false
		if now-c.healed > rejoinWait {
			c.late, c.end = true, now
		}
	case !c.works:
		c.works, c.mark = true, rail.carried
	case rail.carried-c.mark >= carriedEnough:
		c.rejoined = now
		c.end = now + settle
	case now-c.healed > rejoinWait: // it works, they say, and carries nothing
		c.late, c.end = true, now
	}
}

// complete fills in what the two halves have to say about the time of the cut. ofRail tells whether a sign is about
// the cut's rail.
func (c *cut) complete(halves []report, ofRail func(sign) bool) Record {
	r := c.record
	var first *sign
	for _, h := range halves {
		r.worst(h.Worst)
		for _, s := range h.Signs {
			if (s.Kind != "RailSuspect" && s.Kind != "RailDown") || s.At < c.at || !ofRail(s) {
				continue
			}
			if first == nil || s.At < first.At {
				first = &s
			}
		}
	}
	if first != nil {
		r.DetectedMs, r.DetectedBy = millis(first.At-c.at), first.Kind
		r.Local, r.Remote, r.Cause = first.Local, first.Remote, first.Cause
	}
	if c.rejoined != 0 {
		r.RejoinMs = millis(max(c.rejoined-c.healed, 0))
	}
	until := c.healed
	if until == 0 {
		until = c.end
	}
	r.CutMs = units.Millis(until - c.at)
	return r
}

func (r *Record) worst(s load.Span) {
	if gap := units.Millis(s.Length()); gap > r.GapMs {
		r.GapMs, r.GapOf = gap, s.Stream
	}
}

func millis(d time.Duration) *float64 {
	v := units.Millis(d)
	return &v
}
