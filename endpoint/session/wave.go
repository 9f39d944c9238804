package session

// waves count the messages of ours that are not acknowledged, parted by what waits for all before it: a flush, or a fence. So each of
// these knows when its turn is, and a message costs one addition when it is sent and one subtraction when it has arrived.
//
// Invariant: open has a count for each wave from first on; the first has a message in it, or is the only one.
// Bounds: MaxOpen and one more, which Start sees to.
type waves struct {
	first uint64 // number of the oldest wave that is kept
	open  fifo[int]
}

// join counts one more message, and gives its wave.
func (w *waves) join() uint64 {
	if w.open.len() == 0 {
		w.open.push(0)
	}
	last := w.open.len() - 1
	*w.open.at(last)++
	return w.first + uint64(last)
}

// part begins another wave where there are messages in the last one, and gives its number: who waits for all messages so far waits
// until that wave is the oldest.
func (w *waves) part() uint64 {
	n := w.open.len()
	if n > 0 && *w.open.at(n - 1) > 0 {
		w.open.push(0)
		n++
	}
	return w.first + uint64(max(n, 1)-1)
}

// leave takes a message off its wave: it has arrived, or will never be sent again. True: the oldest wave is another one.
func (w *waves) leave(wave uint64) bool {
	*w.open.at(int(wave - w.first))--
	moved := false
	for w.open.len() > 1 && *w.open.front() == 0 {
		w.open.pop()
		w.first++
		moved = true
	}
	return moved
}

// past tells whether all messages before the wave have left.
func (w *waves) past(wave uint64) bool { return w.first >= wave }

// left notes that a message of ours is at the peer, or is given up, and starts what has waited for that.
func (s *Session) left(wave uint64) {
	if s.waves.leave(wave) {
		s.advanceOpen()
	}
}
