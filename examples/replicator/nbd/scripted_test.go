package nbd

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// scripted is memory that does what a test says: it fails, or holds its calls until the test lets them go on.
type scripted struct {
	*Memory

	mu     sync.Mutex
	err    error
	ended  []uint64
	active map[uint64]int // calls in progress, by connection; of writes alone

	calls chan *call // nil: nothing is held
}

// call is one that is held.
type call struct {
	ctx    context.Context
	write  Write
	length int64
	goOn   chan error
}

// holding is a device that holds every read and write.
func holding() *scripted {
	return &scripted{Memory: NewMemory(testSize), calls: make(chan *call), active: make(map[uint64]int)}
}

func (d *scripted) fail(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.err = err
}

// hold waits for the test, or for the end of the connection, which is the error then.
func (d *scripted) hold(ctx context.Context, w Write, length int64) error {
	d.mu.Lock()
	err := d.err
	d.mu.Unlock()
	if err != nil || d.calls == nil {
		return err
	}
	c := &call{ctx: ctx, write: w, length: length, goOn: make(chan error, 1)}
	select {
	case d.calls <- c:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-c.goOn:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *scripted) note(conn uint64, by int) {
	if d.active != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.active[conn] += by
	}
}

func (d *scripted) ReadAt(ctx context.Context, p []byte, offset int64) error {
	if err := d.hold(ctx, Write{Offset: offset}, int64(len(p))); err != nil {
		return err
	}
	return d.Memory.ReadAt(ctx, p, offset)
}

func (d *scripted) WriteAt(ctx context.Context, w Write) error {
	d.note(w.Conn, 1)
	defer d.note(w.Conn, -1)
	if err := d.hold(ctx, w, int64(len(w.Data))); err != nil {
		return err
	}
	return d.Memory.WriteAt(ctx, w)
}

func (d *scripted) Flush(context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}

func (d *scripted) Prefetch(ctx context.Context, _, _ int64) error { return d.Flush(ctx) }

func (d *scripted) Trim(ctx context.Context, r Range) error { return d.WriteZeroes(ctx, r) }

func (d *scripted) WriteZeroes(ctx context.Context, r Range) error {
	if err := d.hold(ctx, Write{Conn: r.Conn, Cookie: r.Cookie, Offset: r.Offset}, r.Length); err != nil {
		return err
	}
	return d.Memory.WriteZeroes(ctx, r)
}

// Ended panics where a call is in progress: the server has promised that none is.
func (d *scripted) Ended(conn uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active[conn] != 0 {
		panic("a connection has ended with calls in progress")
	}
	d.ended = append(d.ended, conn)
}

func (d *scripted) hasEnded(conn uint64) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, e := range d.ended {
		if e == conn {
			return true
		}
	}
	return false
}

// next gives the next call that is held.
func (d *scripted) next(t testing.TB) *call {
	t.Helper()
	select {
	case c := <-d.calls:
		return c
	case <-time.After(patience):
		require.FailNow(t, "the device was not called")
		return nil
	}
}

// none sees that nothing calls for a little while. A call that comes too late is missed; one that comes is always wrong.
func (d *scripted) none(t testing.TB) {
	t.Helper()
	select {
	case c := <-d.calls:
		require.FailNow(t, "the device was called", "%+v", c.write)
	case <-time.After(20 * time.Millisecond):
	}
}

// rest gives everything up to the end of the connection.
func (c *client) rest() []byte {
	b, _ := io.ReadAll(c.conn)
	return b
}
