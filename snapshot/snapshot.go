package snapshot

import (
	"encoding/json"
	"time"

	"railyard/rail"
)

// Node is one node at one moment.
type Node struct {
	At      time.Time `json:"at"`
	Started time.Time `json:"started"`
	// Name is for people; Address is in the node's PIDs; Incarnation names this start of it.
	Name        string `json:"name"`
	Address     string `json:"address"`
	Incarnation string `json:"incarnation"`
	Version     string `json:"version"`
	// Listening are the addresses that peers dial, one a local device.
	Listening []string `json:"listening"`

	Totals    Totals     `json:"totals"`
	Regions   Regions    `json:"regions"`
	Endpoints []Endpoint `json:"endpoints"`

	// Events and Failovers are the newest ones, the oldest of them first. They are filled in by
	// whoever keeps a Log.
	Events    []Event    `json:"events"`
	Failovers []Failover `json:"failovers"`
	// Panels are what the application shows beside all this, by name.
	Panels map[string]json.RawMessage `json:"panels,omitempty"`
}

// Totals count what the node has done since its start, with all peers, those that are gone included.
type Totals struct {
	MessagesSent     uint64 `json:"messages_sent"`
	MessagesReceived uint64 `json:"messages_received"`
	// Completed counts puts, gets and flushes that ended well; Canceled those taken back; Refused those that the peer refused
	// (revoked, out of bounds, without the right).
	Completed uint64 `json:"operations_completed"`
	Canceled  uint64 `json:"operations_canceled"`
	Refused   uint64 `json:"operations_refused"`
	BytesOut  uint64 `json:"bytes_out"`
	BytesIn   uint64 `json:"bytes_in"`
	// Retired counts lost generations of rails, ReroutedBytes what other rails carried in their place.
	Retired       uint64 `json:"generations_retired"`
	ReroutedBytes uint64 `json:"rerouted_bytes"`

	Puts     Times `json:"put_times"`
	Gets     Times `json:"get_times"`
	Messages Times `json:"message_times"`
}

// Times counts how long things took: Buckets[i] holds those of less than 2^i microseconds and at least half of that; the last
// bucket all that took longer, too.
type Times struct {
	Buckets []uint64      `json:"buckets"`
	Sum     time.Duration `json:"sum_ns"`
}

// Limit is the time below which all of a bucket lie.
func Limit(bucket int) time.Duration { return time.Microsecond << bucket }

// Count is the number of things timed.
func (t Times) Count() (n uint64) {
	for _, k := range t.Buckets {
		n += k
	}
	return n
}

// Since gives what has been timed since an earlier snapshot of the same node.
func (t Times) Since(before Times) Times {
	if len(before.Buckets) != len(t.Buckets) {
		return t
	}
	d := Times{Buckets: make([]uint64, len(t.Buckets)), Sum: t.Sum - before.Sum}
	for i, n := range t.Buckets {
		if n < before.Buckets[i] { // another life of the node
			return t
		}
		d.Buckets[i] = n - before.Buckets[i]
	}
	return d
}

// Quantile gives a time that the part q (0 to 1) of what was timed did not exceed, to a factor of two; false: nothing was timed.
func (t Times) Quantile(q float64) (time.Duration, bool) {
	n := t.Count()
	if n == 0 {
		return 0, false
	}
	rank, seen := q*float64(n), uint64(0)
	for i, k := range t.Buckets {
		if seen += k; k > 0 && float64(seen) >= rank {
			return Limit(i), true
		}
	}
	return Limit(len(t.Buckets) - 1), true
}

// Regions is the node's registered memory.
type Regions struct {
	Live  int `json:"live"`
	Limit int `json:"limit"`
}

// Endpoint is one peer.
type Endpoint struct {
	Peer string `json:"peer"` // its address
	Name string `json:"name"`
	// Window is what the peer lets us have under way, in bytes; UnderWay what of it its actors have not processed; Full how often
	// a send found no room.
	Window   uint64 `json:"window_bytes"`
	UnderWay uint64 `json:"under_way_bytes"`
	Full     uint64 `json:"window_full"`
	// Open is the number of operations that have not completed.
	Open             int    `json:"operations_open"`
	MessagesSent     uint64 `json:"messages_sent"`
	MessagesReceived uint64 `json:"messages_received"`
	Completed        uint64 `json:"operations_completed"`
	Rails            []Rail `json:"rails"`
}

// Rail is one path to a peer.
type Rail struct {
	ID     uint32     `json:"rail"`
	Kind   string     `json:"kind"`
	Local  string     `json:"local"`
	Remote string     `json:"remote"`
	State  rail.State `json:"state"`
	// Reason says why it is not up.
	Reason     string `json:"reason,omitempty"`
	Generation uint64 `json:"generation"`
	Restarts   uint64 `json:"restarts"`
	// Weight is the share of its fair part that it is given, 0 to 1: below 1 in probation.
	Weight   float64 `json:"weight"`
	InFlight uint64  `json:"in_flight_bytes"`
	// Rate is the measured ability in bytes a second, not what it carries at the moment: that is the difference of two BytesOut.
	Rate      float64 `json:"rate_bytes_per_s"`
	RoundTrip int64   `json:"round_trip_us"`
	Since     int64   `json:"since_ms"` // how long it has been in State
	BytesOut  uint64  `json:"bytes_out"`
	BytesIn   uint64  `json:"bytes_in"`
}

// OfRail makes a Rail of its status.
func OfRail(s rail.Status) Rail {
	return Rail{
		ID: uint32(s.ID), Kind: s.Kind, Local: s.Local, Remote: s.Remote, State: s.State, Reason: s.Reason,
		Generation: s.Generation, Restarts: s.Restarts, Weight: s.Weight, InFlight: s.BytesInFlight, Rate: s.Rate,
		RoundTrip: s.RoundTrip.Microseconds(), Since: s.Since.Milliseconds(), BytesOut: s.BytesOut, BytesIn: s.BytesIn,
	}
}

// Working tells whether the rail takes work.
func (r *Rail) Working() bool { return r.State == rail.Up || r.State == rail.Probation }
