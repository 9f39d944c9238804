package endpoint

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rail/railtest"
	"railyard/rma"
)

// idleConn is a connection whose bytes the test moves by hand.
type idleConn struct{ rail.Conn }

func (idleConn) Kick()                {}
func (idleConn) WriteNow()            {}
func (idleConn) Kill()                {}
func (idleConn) Unacked() (int, bool) { return 0, false }

// No kind of rail registers memory yet: a peer that asks for a key is refused, and its put goes as chunks.
func TestAQuestionForAKeyIsRefused(t *testing.T) {
	g := newGround(t, railtest.KindPipe, 1)
	node := launch(t, g, g.near)
	e, err := node.create(t.Context(), "peer:1", false, func(*Endpoint) {})
	require.NoError(t, err)
	region := node.register(t, 1<<20, rma.RemoteWrite)
	mine := &link{e: e}
	mine.g = e.s.Lane(0).AttachOneSided(0, 3, &carrier{e: e, generation: 3, conn: idleConn{}, link: mine})

	s, err := session.New(session.Config{Opener: true}, rma.NewTable(nil, 0))
	require.NoError(t, err)
	theirs := s.Lane(0).AttachOneSided(0, 3, nil)
	op := &session.Op{Kind: session.Put, Region: region.Key().Region(), Token: region.Key().Token(), Data: slices.Repeat([]byte{7}, 1<<20)}
	s.Start(0, op)
	var ended []error
	for range 1000 {
		for _, f := range s.Effects(nil) {
			switch f.Kind {
			case session.Offered:
				s.Accept(0, f.Gen, f.Op)
			case session.Completed:
				ended = append(ended, f.Err)
			default:
			}
		}
		feed(t, func(out *rma.Gather) bool { return theirs.Fill(0, out) }, mine,
			func(out *rma.Gather, n int) error { return theirs.Wrote(0, out, n) })
		feed(t, mine.Fill, hand{theirs}, mine.Wrote)
	}
	require.Equal(t, []error{nil}, ended)
	require.Equal(t, op.Data, region.Bytes())
	require.Zero(t, e.Stats().Refused)
}

// hand is a generation's reading half without an endpoint around it.
type hand struct{ g *session.Generation }

func (h hand) Want(in *rma.Scatter) error { return h.g.Want(0, in) }
func (h hand) Got(in *rma.Scatter, n int) error {
	_, err := h.g.Got(0, in, n)
	return err
}

// feed moves one plan from a writing half to a reading one.
func feed(t *testing.T, fill func(*rma.Gather) bool, to interface {
	Want(in *rma.Scatter) error
	Got(in *rma.Scatter, n int) error
}, wrote func(*rma.Gather, int) error) {
	t.Helper()
	var out rma.Gather
	if !fill(&out) {
		return
	}
	require.Empty(t, out.Places, "a key was told")
	bytes := slices.Concat(out.Bufs...)
	require.NoError(t, wrote(&out, len(bytes)))
	for len(bytes) > 0 {
		var in rma.Scatter
		require.NoError(t, to.Want(&in))
		n := copy(in.First, bytes)
		n += copy(in.Then, bytes[n:])
		require.NoError(t, to.Got(&in, n))
		bytes = bytes[n:]
	}
}
