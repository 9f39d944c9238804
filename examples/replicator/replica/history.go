package replica

import "slices"

// Position is where a log ends: the epoch and the number of its last record. The zero Position: an empty log.
type Position struct{ Epoch, Sequence uint64 }

// Before orders logs: of two whole members the one that is not before the other has all that the other has that was
// acknowledged.
func (p Position) Before(o Position) bool {
	return p.Epoch < o.Epoch || p.Epoch == o.Epoch && p.Sequence < o.Sequence
}

// Era says that the records from First on are of an epoch, up to the next era.
type Era struct{ Epoch, First uint64 }

// History is the eras of a log, rising in both fields. What is older than its first era is not known any more.
type History []Era

// maxEras bounds a history: a member that was away for longer is filled anew.
const maxEras = 1024

// with gives the history after a record of an epoch at sequence; added tells whether that began an era.
func (h History) with(epoch, sequence uint64) (next History, added bool) {
	if n := len(h); n > 0 && h[n-1].Epoch == epoch {
		return h, false
	}
	next = append(slices.Clone(h), Era{epoch, sequence})
	return next[max(0, len(next)-maxEras):], true
}

// until gives the history of the records up to sequence.
func (h History) until(sequence uint64) History {
	for len(h) > 0 && h[len(h)-1].First > sequence {
		h = h[:len(h)-1]
	}
	return h
}

// era finds the era of a record.
func (h History) era(sequence uint64) (Era, bool) {
	h = h.until(sequence)
	if len(h) == 0 {
		return Era{}, false
	}
	return h[len(h)-1], true
}

// common is the number of the last record that two logs share; 0: none that they know of. A record is the same where its
// epoch and its number are, and then so is all before it.
func common(a History, lastA uint64, b History, lastB uint64) uint64 {
	s := min(lastA, lastB)
	for s > 0 {
		x, known := a.era(s)
		y, also := b.era(s)
		switch {
		case !known || !also:
			return 0
		case x.Epoch == y.Epoch:
			return s
		case x.Epoch > y.Epoch:
			s = x.First - 1
		default:
			s = y.First - 1
		}
	}
	return 0
}
