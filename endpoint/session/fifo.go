package session

// fifo is a queue on one slice that gives its memory back when it runs empty.
// Bounds are its owners': every list in a generation is bounded by the window or by MaxOpen.
type fifo[T any] struct {
	s    []T
	head int
}

func (f *fifo[T]) len() int { return len(f.s) - f.head }

func (f *fifo[T]) push(v T) { f.s = append(f.s, v) }

func (f *fifo[T]) front() *T { return &f.s[f.head] }

func (f *fifo[T]) at(i int) *T { return &f.s[f.head+i] }

func (f *fifo[T]) pop() T {
	var zero T
	v := f.s[f.head]
	f.s[f.head] = zero
	f.head++
	switch {
	case f.head == len(f.s):
		f.s, f.head = f.s[:0], 0
		if cap(f.s) > 4096 {
			f.s = nil
		}
	case f.head > 256 && f.head > len(f.s)/2:
		n := copy(f.s, f.s[f.head:])
		clear(f.s[n:])
		f.s, f.head = f.s[:n], 0
	}
	return v
}

func (f *fifo[T]) all() []T { return f.s[f.head:] }

func (f *fifo[T]) reset() { f.s, f.head = nil, 0 }
