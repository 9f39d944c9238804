package load

import "fmt"

// Counters are what one side, or both together, have counted.
type Counters struct {
	Sent      uint64 `json:"sent"`
	Delivered uint64 `json:"delivered"`
	Doubled   uint64 `json:"doubled"`
	Reordered uint64 `json:"reordered"`

	Puts      uint64 `json:"puts"`
	Completed uint64 `json:"completed"`
	Canceled  uint64 `json:"canceled"`
	Revoked   uint64 `json:"revoked"`
	// Unknown are the puts of which nobody can say any more what became of them: the other node died (Config.Mortal).
	Unknown uint64 `json:"unknown,omitempty"`
	// Checked are the completed puts whose bytes the target has seen, or could not because of a revoke.
	Checked uint64 `json:"checked"`
	// PutBytes are the bytes of the completed puts.
	PutBytes uint64 `json:"put_bytes"`

	Corrupted      uint64 `json:"corrupted"`
	LateWrites     uint64 `json:"late_writes"`
	EndpointErrors uint64 `json:"endpoint_errors"`
}

// Add gives the sum of two sides.
func (c Counters) Add(o Counters) Counters {
	return Counters{
		Sent: c.Sent + o.Sent, Delivered: c.Delivered + o.Delivered,
		Doubled: c.Doubled + o.Doubled, Reordered: c.Reordered + o.Reordered,
		Puts: c.Puts + o.Puts, Completed: c.Completed + o.Completed,
		Canceled: c.Canceled + o.Canceled, Revoked: c.Revoked + o.Revoked, Unknown: c.Unknown + o.Unknown,
		Checked: c.Checked + o.Checked, PutBytes: c.PutBytes + o.PutBytes,
		Corrupted: c.Corrupted + o.Corrupted, LateWrites: c.LateWrites + o.LateWrites,
		EndpointErrors: c.EndpointErrors + o.EndpointErrors,
	}
}

// Lost are the messages that were sent and never came.
func (c Counters) Lost() uint64 {
	if c.Delivered >= c.Sent {
		return 0
	}
	return c.Sent - c.Delivered
}

// Broken names the promises that the sum of both sides, taken when everything has come to rest, shows to be
// broken; none: all were kept.
func (c Counters) Broken() []string {
	var broken []string
	note := func(bad bool, format string, args ...any) {
		if bad {
			broken = append(broken, fmt.Sprintf(format, args...))
		}
	}
	note(c.Lost() > 0, "lost: %d of %d messages never came", c.Lost(), c.Sent)
	note(c.Delivered > c.Sent, "invented: %d messages came, %d were sent", c.Delivered, c.Sent)
	note(c.Doubled > 0, "doubled: %d arrivals of what had come already", c.Doubled)
	note(c.Reordered > 0, "reordered: %d messages came behind a later one", c.Reordered)
	note(c.Corrupted > 0, "corrupted: %d messages or puts were not what was sent", c.Corrupted)
	note(c.LateWrites > 0, "late_writes: %d times memory that had been given back was written", c.LateWrites)
	note(c.EndpointErrors > 0, "endpoint_errors: the application saw %d failures", c.EndpointErrors)
	ended := c.Completed + c.Canceled + c.Revoked
	note(c.Puts != ended, "puts: %d were started, %d ended as completed, canceled or revoked", c.Puts, ended)
	note(c.Checked != c.Completed, "notify: of %d completed puts the target was told of %d", c.Completed, c.Checked)
	note(c.Sent == 0 || c.Completed == 0, "load: %d messages and %d puts are no load", c.Sent, c.Completed)
	return broken
}
