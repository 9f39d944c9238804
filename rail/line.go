package rail

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"railyard/supervision"
	"railyard/wire"
)

// line is one generation's hold on the outside: a dial in progress, then its connection. The transport works with
// it, the rail may end it at any time, and so may the goroutine that dials.
//
// Invariant: ended only becomes true, and whoever makes it so kills the connection, has it closed, and reports
// the generation Lost if it was linked. Whoever comes later finds it ended and does the part that is left.
type line struct {
	cfg        *Config
	generation wire.Generation
	// ctx ends with the line: it stops a dial or handshake in progress.
	ctx    context.Context
	cancel context.CancelFunc

	mu sync.Mutex
	// Owner of the rest: mu.
	conn Conn
	// linked: the session counts on exactly one Lost.
	linked, ended bool
	// ran: the pump was started, so that the session may have given it work.
	ran bool
	// inFlight are the bytes that were not acknowledged when the line ended.
	inFlight uint64
}

func newLine(cfg *Config, g wire.Generation) *line {
	ctx, cancel := context.WithCancel(context.Background())
	return &line{cfg: cfg, generation: g, ctx: ctx, cancel: cancel}
}

// acceptedLine is for a generation whose handshake is done.
func acceptedLine(cfg *Config, m *Accepted) *line {
	l := newLine(cfg, m.Generation)
	l.conn, l.linked = m.Conn, true
	return l
}

// known is what can be said of any failure of this line. Only a linked one has lost a generation.
func (l *line) known() supervision.Failure {
	f := supervision.Failure{Rail: fmt.Sprint(l.cfg.ID), Local: l.cfg.Local, Remote: l.cfg.Remote}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.linked {
		f.Generation = uint64(l.generation)
	}
	return f
}

// failure is err as this line's failure.
func (l *line) failure(err error) *supervision.Failure {
	f := l.known()
	f.Class, f.Err, f.At = Classify(err), err, l.cfg.Clock()
	return &f
}

// dial makes the connection and does the handshake. It blocks, and ends within the two timeouts or with the line. The
// link is that of a joined generation, of which the line takes care from then on.
func (l *line) dial() (link Link, err error) {
	defer func() {
		if value := recover(); value != nil {
			link, err = nil, &PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	ctx, done := context.WithTimeout(l.ctx, l.cfg.DialTimeout)
	defer done()
	conn, err := l.cfg.Kind.Dial(ctx, l.cfg.Local, l.cfg.Remote)
	if err != nil {
		return nil, fmt.Errorf("rail cannot connect: %w", err)
	}
	if !l.hold(conn) {
		return nil, ErrStopped
	}
	return l.join(conn)
}

func (l *line) join(conn Conn) (Link, error) {
	ctx, done := context.WithTimeout(l.ctx, l.cfg.HandshakeTimeout)
	defer done()
	// A handshake that ignores its context is woken by the death of its connection.
	awake := context.AfterFunc(ctx, conn.Kill)
	link, err := l.cfg.Joiner.Join(ctx, l.cfg.ID, l.generation, conn)
	killed := !awake()
	if err != nil {
		if killed && l.ctx.Err() == nil && !errors.Is(err, context.DeadlineExceeded) {
			err = fmt.Errorf("%w (%w)", err, context.DeadlineExceeded)
		}
		return nil, fmt.Errorf("rail handshake with %s failed: %w", l.cfg.Remote, err)
	}
	if !l.confirm() {
		return nil, ErrStopped
	}
	if killed {
		return nil, fmt.Errorf("rail handshake with %s came too late, %s is allowed: %w",
			l.cfg.Remote, l.cfg.HandshakeTimeout, context.DeadlineExceeded)
	}
	return link, nil
}

// hold takes conn over; false: the line has ended, and conn with it.
func (l *line) hold(conn Conn) bool {
	l.mu.Lock()
	ended := l.ended
	if !ended {
		l.conn = conn
	}
	l.mu.Unlock()
	if ended {
		conn.Kill()
		l.cfg.Track(conn.Close)
	}
	return !ended
}

// confirm notes that the session has joined the generation; false: the line has ended, and the session knows.
func (l *line) confirm() bool {
	l.mu.Lock()
	ended := l.ended
	l.linked = true
	l.mu.Unlock()
	if ended {
		l.cfg.Joiner.Lost(l.cfg.ID, l.generation, l.failure(ErrStopped))
	}
	return !ended
}

// run starts the pump; false: the line has ended.
func (l *line) run(link Link, lost func(error)) bool {
	// Under the lock, so that Close cannot come between: Run only starts goroutines, and sends nothing.
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return false
	}
	l.ran = true
	l.conn.Run(link, lost)
	return true
}

func (l *line) hasRun() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ran
}

func (l *line) over() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ended
}

// lost notes how many bytes were in flight when the session fenced the generation.
func (l *line) lost(n uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.inFlight = n
}

// loss gives the bytes in flight when the line ended.
func (l *line) loss() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.inFlight
}

// end ends the line, once; cause is why. It does not wait.
func (l *line) end(cause error) {
	l.mu.Lock()
	if l.ended {
		l.mu.Unlock()
		return
	}
	l.ended = true
	conn, linked := l.conn, l.linked
	l.mu.Unlock()

	l.cancel()
	if conn != nil {
		conn.Kill()
		l.cfg.Track(conn.Close)
	}
	if !linked {
		return
	}
	if v, ok := l.cfg.Joiner.Vitals(l.cfg.ID, l.generation); ok {
		l.mu.Lock()
		l.inFlight = v.InFlight
		l.mu.Unlock()
	}
	l.cfg.Joiner.Lost(l.cfg.ID, l.generation, cause)
}
