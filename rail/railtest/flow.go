package railtest

import (
	"errors"
	"io"
	"syscall"
	"time"
)

// pair is one connection: a flow for each direction, by the cable's own indices.
type pair struct {
	flows [2]*flow
	gone  int // ends that are over
}

// flow is one direction of a connection: a ring of bytes of which some have arrived and the rest is in flight.
//
// Owner: the cable's mu.
//
// Invariant: read <= arrived <= written <= read + len(ring).
//
// Invariant: marks are in the order of end and of at; the last byte of the last mark is written-1.
type flow struct {
	cable *cable
	way   int
	peer  *flow // the other direction
	size  int   // the ring's length once it is allocated

	ring                   []byte
	read, arrived, written uint64
	marks                  []mark
	timer                  *time.Timer

	// readErr is what the reader gets after what has arrived; writeErr what the writer gets.
	readErr, writeErr error
	// deaf: the reading end is over, so nothing arrives any more.
	deaf bool
	// full: the writer has been told that there is no room, and waits for some.
	full bool

	readable, writable chan struct{} // capacity 1
}

// mark is a piece in flight: the bytes before end arrive at that time; then, if fin is set, the stream's end.
type mark struct {
	end uint64
	at  time.Time
	fin error
}

func newFlow(c *cable, way, size int) *flow {
	return &flow{
		cable: c, way: way, size: size,
		readable: make(chan struct{}, 1), writable: make(chan struct{}, 1),
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// take moves what has arrived into bufs. 0 and nil: nothing there yet.
func (f *flow) take(bufs ...[]byte) (int, error) {
	f.cable.mu.Lock()
	defer f.cable.mu.Unlock()
	total := 0
	for _, b := range bufs {
		for len(b) > 0 && f.read < f.arrived {
			at := int(f.read % uint64(len(f.ring)))
			end := min(len(f.ring), at+int(f.arrived-f.read))
			n := copy(b, f.ring[at:end])
			b = b[n:]
			f.read += uint64(n)
			total += n
		}
	}
	if free := f.size - int(f.written-f.read); f.full && free*3 >= f.size {
		f.full = false
		signal(f.writable)
	}
	if total == 0 {
		return 0, f.readErr
	}
	return total, nil
}

// put takes as much of bufs as there is room for. Fewer bytes than given, and nil: writable will be signaled.
func (f *flow) put(bufs ...[]byte) (int, error) {
	f.cable.mu.Lock()
	defer f.cable.mu.Unlock()
	if f.writeErr != nil {
		return 0, f.writeErr
	}
	if f.ring == nil {
		f.ring = make([]byte, f.size)
	}
	total := 0
	for _, b := range bufs {
		for len(b) > 0 {
			room := f.size - int(f.written-f.read)
			if room == 0 {
				f.full = true
				break
			}
			at := int(f.written % uint64(f.size))
			n := copy(f.ring[at:min(f.size, at+room)], b)
			b = b[n:]
			f.written += uint64(n)
			total += n
		}
	}
	if total > 0 {
		f.launch(total)
	}
	return total, nil
}

// launch sends the last n bytes on their way.
func (f *flow) launch(n int) {
	way := &f.cable.way[f.way]
	if !way.stalled && way.rate == 0 && way.delay == 0 && len(f.marks) == 0 && !f.deaf {
		f.arrived = f.written
		signal(f.readable)
		return
	}
	now := time.Now()
	piece := n
	if way.rate > 0 {
		piece = max(1<<10, way.rate/200) // 5 ms of the rate: bytes trickle in, as they would from a card
	}
	for n > 0 {
		step := min(piece, n)
		n -= step
		if way.busy.Before(now) {
			way.busy = now
		}
		if way.rate > 0 {
			way.busy = way.busy.Add(time.Duration(step) * time.Second / time.Duration(way.rate))
		}
		f.push(mark{end: f.written - uint64(n), at: way.busy.Add(way.delay)})
	}
	f.arrive()
}

// push queues a mark; none overtakes another.
func (f *flow) push(m mark) {
	if k := len(f.marks); k > 0 && m.at.Before(f.marks[k-1].at) {
		m.at = f.marks[k-1].at
	}
	f.marks = append(f.marks, m)
}

// arrive delivers the marks whose time has come, and arms the timer for the next one.
func (f *flow) arrive() {
	now := time.Now()
	for len(f.marks) > 0 && f.passes(f.marks[0]) {
		if wait := f.marks[0].at.Sub(now); wait > 0 {
			f.arm(wait)
			return
		}
		f.deliver()
	}
}

// passes says whether the way is open for a mark: a stall keeps bytes, a black hole resets as well.
func (f *flow) passes(m mark) bool {
	way := &f.cable.way[f.way]
	if errors.Is(m.fin, syscall.ECONNRESET) {
		return !way.hidden
	}
	return !way.stalled && !f.deaf
}

// deliver makes the first mark arrive.
func (f *flow) deliver() {
	m := f.marks[0]
	f.marks = f.marks[1:]
	f.arrived = m.end
	if m.fin != nil {
		f.fail(m.fin, nil)
		f.peer.fail(nil, syscall.EPIPE)
	}
	signal(f.readable)
}

// arriveAll delivers all marks that the faults let pass, whatever their time.
func (f *flow) arriveAll() {
	for len(f.marks) > 0 && f.passes(f.marks[0]) {
		f.deliver()
	}
}

func (f *flow) arm(wait time.Duration) {
	if f.timer != nil {
		f.timer.Reset(wait)
		return
	}
	f.timer = time.AfterFunc(wait, func() {
		f.cable.mu.Lock()
		defer f.cable.mu.Unlock()
		f.arrive()
	})
}

// lose drops what is in flight.
func (f *flow) lose() {
	f.marks = nil
	f.written = f.arrived
	if f.timer != nil {
		f.timer.Stop()
	}
}

// fail sets what the two ends get from now on, unless they got something before, and wakes them. nil: no change.
func (f *flow) fail(reader, writer error) {
	if reader != nil && f.readErr == nil {
		f.readErr = reader
		signal(f.readable)
	}
	if writer != nil && f.writeErr == nil {
		f.writeErr = writer
		signal(f.writable)
	}
}

// close is the writing end's death: it drops the flow's bytes and sends a reset, or, as a zombie, lets them arrive
// and the end of the stream after them.
func (f *flow) close() {
	f.fail(nil, syscall.EPIPE)
	fin := mark{at: time.Now().Add(f.cable.way[f.way].delay), fin: io.EOF}
	if !f.cable.zombie {
		f.lose()
		fin.fin = syscall.ECONNRESET
	}
	fin.end = f.written
	f.push(fin)
	f.arrive()
}

// inFlight is how many bytes have been written and have not arrived.
func (f *flow) inFlight() int {
	f.cable.mu.Lock()
	defer f.cable.mu.Unlock()
	return int(f.written - f.arrived)
}
