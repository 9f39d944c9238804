package perf

// maxAhead bounds how many numbers beyond the first missing one are remembered.
const maxAhead = 1 << 16

// once counts numbers that must each come one time, in any order: puts of one window end in any.
type once struct {
	next    uint64              // all below have come
	ahead   map[uint64]struct{} // those beyond that have come; at most maxAhead
	landed  uint64              // different numbers
	doubled uint64
}

func (o *once) saw(n uint64) {
	if _, known := o.ahead[n]; known || n < o.next {
		o.doubled++
		return
	}
	o.landed++
	if n != o.next {
		if len(o.ahead) == maxAhead { // so many are missing that the test has failed anyway
			o.landed--
			return
		}
		if o.ahead == nil {
			o.ahead = map[uint64]struct{}{}
		}
		o.ahead[n] = struct{}{}
		return
	}
	for o.next++; ; o.next++ {
		if _, known := o.ahead[o.next]; !known {
			return
		}
		delete(o.ahead, o.next)
	}
}
