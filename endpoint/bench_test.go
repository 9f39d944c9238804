package endpoint

import (
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rail/railtest"
	"railyard/rma"
)

// BenchmarkSendAndWrite is the way of a small message through the endpoint's lock: sent, planned, written, acknowledged.
func BenchmarkSendAndWrite(b *testing.B) {
	g := newGround(b, railtest.KindPipe, 1)
	node := launch(b, g, g.near)
	e, err := node.create(b.Context(), "peer:1", false, func(*Endpoint) {})
	require.NoError(b, err)
	mine := benchLink(e)
	s, err := session.New(session.Config{Opener: true}, rma.NewTable(nil, 0))
	require.NoError(b, err)
	theirs := s.Lane(0).Attach(0, 3, nil)
	there := end{fill: func(out *rma.Gather) bool { return theirs.Fill(0, out) },
		wrote: func(out *rma.Gather, n int) error { return theirs.Wrote(0, out, n) },
		want:  func(in *rma.Scatter) error { return theirs.Want(0, in) }, got: gives(s, theirs)}
	here := end{fill: mine.Fill, wrote: mine.Wrote, want: mine.Want, got: mine.Got}
	m := &Outgoing{Target: NewRef("target"), Type: NewRef("type"), Payload: make([]byte, 64)}
	var out, back rma.Gather
	var fx []session.Effect
	b.ReportAllocs()
	for b.Loop() {
		if err := e.send(m); err != nil {
			b.Fatal(err)
		}
		move(b, here, there, &out)
		s.Tick(1 << 40)
		fx = s.Effects(fx)
		move(b, there, here, &back)
	}
}

// BenchmarkIdleLink is what a look for work costs that finds none.
func BenchmarkIdleLink(b *testing.B) {
	g := newGround(b, railtest.KindPipe, 1)
	node := launch(b, g, g.near)
	e, err := node.create(b.Context(), "peer:1", false, func(*Endpoint) {})
	require.NoError(b, err)
	l := benchLink(e)
	var out rma.Gather
	b.ReportAllocs()
	for b.Loop() {
		if l.Fill(&out) {
			_ = l.Wrote(&out, out.Size())
		}
	}
}

// end is one end's half of a connection.
type end struct {
	fill  func(*rma.Gather) bool
	wrote func(*rma.Gather, int) error
	want  func(*rma.Scatter) error
	got   func(*rma.Scatter, int) error
}

// gives takes what comes, and gives the window back.
func gives(s *session.Session, g *session.Generation) func(in *rma.Scatter, n int) error {
	return func(in *rma.Scatter, n int) error {
		d, err := g.Got(0, in, n)
		for len(d) > 0 && err == nil {
			for i := range d {
				s.Consumed(0, d[i].Cost)
			}
			d, err = g.Delivered(0)
		}
		return err
	}
}

// move brings all that one end has to say to the other.
func move(b *testing.B, from, to end, out *rma.Gather) {
	for from.fill(out) {
		for _, buf := range out.Bufs {
			for len(buf) > 0 {
				var in rma.Scatter
				if err := to.want(&in); err != nil {
					b.Fatal(err)
				}
				n := copy(in.First, buf)
				n += copy(in.Then, buf[n:])
				buf = buf[n:]
				if err := to.got(&in, n); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := from.wrote(out, out.Size()); err != nil {
			b.Fatal(err)
		}
	}
}

func benchLink(e *Endpoint) *link {
	l := &link{e: e}
	l.g = e.s.Lane(0).Attach(e.m.now(), 3, &carrier{e: e, generation: 3, conn: idleConn{}, link: l})
	return l
}
