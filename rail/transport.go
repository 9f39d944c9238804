package rail

import (
	"errors"

	"github.com/asynkron/protoactor-go/actor"
	"go.uber.org/zap"

	"railyard/wire"
)

// transport is the actor that holds one generation's connection. It dials (or was given an accepted connection),
// attaches it to the session, offers the endpoint's operations to its lane, and fails when the stream does.
//
// Owner: its rail, which gives each of its lives a line through the carrier.
//
// Invariant: Receive never blocks; what blocks runs under Config.Track and answers by message.
type transport struct {
	cfg     *Config
	carrier *carrier
	line    *line
}

// Receive implements actor.Actor.
func (t *transport) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Put:
		if t.own(m.Lane, m.Generation) {
			t.cfg.Joiner.Offer(m.Lane, m.Generation, m.Op)
		}
	case *Get:
		if t.own(m.Lane, m.Generation) {
			t.cfg.Joiner.Offer(m.Lane, m.Generation, m.Op)
		}
	case *Serve:
		if t.own(m.Lane, m.Generation) {
			t.cfg.Joiner.Offer(m.Lane, m.Generation, m.Op)
		}
	case *Cancel:
		if t.own(m.Lane, m.Generation) {
			t.cfg.Joiner.Withdraw(m.Lane, m.Generation, m.Op)
		}
	case *actor.Started:
		t.start(ctx)
	case *renewed:
		if m.line != t.line && m.line == t.carrier.line.Load() {
			t.start(ctx)
		}
	case *dialed:
		if m.line == t.line {
			t.carry(ctx, m.link)
		}
	case *broken:
		t.broken(ctx, m)
	case *fail:
		if m.line == t.line {
			t.fail(m.failure)
		}
	case *actor.Stopping, *actor.Restarting:
		if t.line != nil {
			t.line.end(t.line.failure(ErrStopped))
		}
	case *actor.Stopped:
	default:
		t.cfg.Logger.Warn("transport does not know this message: is it sent as a pointer?",
			zap.String("peer", t.cfg.Peer), zap.Uint16("rail", uint16(t.cfg.ID)), zap.Any("message", m))
	}
}

// own tells whether a message is for the generation that this transport holds now. Those for one before stay in the
// mailbox over a restart; the session has taken their work back.
func (t *transport) own(lane wire.RailID, g wire.Generation) bool {
	return t.line != nil && lane == t.cfg.ID && g == t.line.generation
}

// start begins the life that the rail has prepared.
func (t *transport) start(ctx actor.Context) {
	t.line = t.carrier.line.Load()
	if link := t.carrier.accepted; link != nil {
		t.carry(ctx, link)
		return
	}
	l, root, self := t.line, ctx.ActorSystem().Root, ctx.Self()
	t.cfg.Track(func() {
		link, err := l.dial()
		switch {
		case l.over():
			// Whoever ended it knows why.
		case err != nil:
			root.Send(self, &broken{line: l, cause: err})
		default:
			root.Send(self, &dialed{line: l, link: link})
		}
	})
}

// carry puts the connection to work.
func (t *transport) carry(ctx actor.Context, link Link) {
	l, root, self := t.line, ctx.ActorSystem().Root, ctx.Self()
	if l.over() {
		return
	}
	t.cfg.Joiner.Attach(t.cfg.ID, l.generation, self, l.conn)
	if !l.run(link, func(err error) { root.Send(self, &broken{line: l, cause: err}) }) {
		return
	}
	ctx.Send(ctx.Parent(), &carrying{line: l})
}

// broken ends this life: as a failure for the rail to judge, or quietly where the candidate was not needed.
func (t *transport) broken(ctx actor.Context, m *broken) {
	if m.line != t.line || t.line.over() {
		return
	}
	if errors.Is(m.cause, ErrNotNeeded) {
		t.line.end(m.cause)
		ctx.Send(ctx.Parent(), &withdrawn{line: t.line})
		return
	}
	f := t.line.failure(m.cause)
	t.line.end(f)
	t.fail(f)
}

// fail hands the failure to the supervisor, the rail. A panic with a typed failure is how protoactor is told.
func (t *transport) fail(f error) { panic(f) }
