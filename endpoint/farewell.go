package endpoint

import (
	"railyard/rma"
	"railyard/wire"
)

// farewell is how a connection says goodbye in the place of a session that had a bug: behind what is left of the frames that were begun.
//
// Invariant: what is left refers to memory of operations, none of which ends before the connection is closed (windUp).
//
// Owner: Endpoint.mu.
type farewell struct {
	left []leftover
	// said: the goodbye is among what was written, or left. failed: it cannot be said, because nobody knows what is left.
	said, failed bool
}

// leftover is a piece of a plan that was not written; region is where it lies, nil: in memory of an operation or of the session.
type leftover struct {
	b      []byte
	region *rma.Region
}

// keep notes what is left of a plan of which n bytes were written.
func (f *farewell) keep(out *rma.Gather, n int) {
	f.left = f.left[:0]
	pins := out.Pins
	for i, b := range out.Bufs {
		p := leftover{}
		if len(pins) > 0 && pins[0].Index == i {
			if !pins[0].Padded {
				p.region = pins[0].Region
			}
			pins = pins[1:]
		}
		if n < len(b) {
			p.b = b[n:]
			f.left = append(f.left, p)
		}
		n = max(n-len(b), 0)
	}
}

// say plans the rest of what was begun, and the goodbye behind it. False: there is nothing more to say.
func (f *farewell) say(l *link, out *rma.Gather) bool {
	out.Reset()
	if l.torn && len(f.left) == 0 && !f.said { // the session knows, if it still knows anything
		err := safely(func() error {
			l.g.Rest(func(b []byte, region *rma.Region) { f.left = append(f.left, leftover{b, region}) })
			return nil
		})
		f.failed = err != nil || len(f.left) == 0
	}
	if f.failed {
		return false
	}
	for _, p := range f.left {
		if p.region != nil {
			out.AddPinned(p.b, p.region)
		} else {
			out.Add(p.b)
		}
	}
	f.left = nil
	if !f.said {
		f.said = true
		out.Add((&wire.Goodbye{}).Append(nil))
	}
	return out.Size() > 0
}
