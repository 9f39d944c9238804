package load

// maxMissing bounds what a ledger remembers of holes; a stream that lost so much has failed anyway.
const maxMissing = 1 << 16

// Ledger checks one stream of numbered messages. The zero value expects number 1.
//
// Invariant: Delivered counts distinct numbers; missing holds the numbers below next that have not come.
type Ledger struct {
	next    uint64 // the highest number that came
	missing map[uint64]struct{}

	Delivered, Doubled, Reordered uint64
}

// Arrival is what a ledger makes of a message.
type Arrival uint8

// The arrivals.
const (
	InOrder   Arrival = iota
	Ahead             // earlier ones are missing, so far
	Reordered         // it had been missing
	Doubled           // it had come before
)

// Take notes a message.
func (l *Ledger) Take(sequence uint64) Arrival {
	switch {
	case sequence == l.next+1:
		l.next = sequence
		l.Delivered++
		return InOrder
	case sequence > l.next:
		if l.missing == nil {
			l.missing = map[uint64]struct{}{}
		}
		for s := l.next + 1; s < sequence && len(l.missing) < maxMissing; s++ {
			l.missing[s] = struct{}{}
		}
		l.next = sequence
		l.Delivered++
		return Ahead
	}
	if _, ok := l.missing[sequence]; ok {
		delete(l.missing, sequence)
		l.Delivered++
		l.Reordered++
		return Reordered
	}
	l.Doubled++
	return Doubled
}
