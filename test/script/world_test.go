package script

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/rma"
	"railyard/wire"
)

// world is two ends of a session, a who opened it and b, and the cables between them.
type world struct {
	now    time.Duration
	a, b   *end
	cables []*cable
	joins  []*join // by rail: a handshake that is under way
	said   []string
	timed  bool // lines are given the time
	ended  bool
}

// breach is a promise that does not hold; it ends the page.
type breach string

func (w *world) breach(format string, args ...any) { panic(breach(fmt.Sprintf(format, args...))) }

// say adds a line to what came of the running command.
func (w *world) say(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if w.timed {
		line = fmt.Sprintf("%v %s", w.now, line)
	}
	w.said = append(w.said, line)
}

func (w *world) take() []string {
	said := w.said
	w.said = nil
	return said
}

// end is one end: what an endpoint is to its session, reduced to carrying out effects by hand.
type end struct {
	w       *world
	name    string
	peer    *end
	regions *rma.Table
	s       *session.Session
	areas   []*area
	works   []*work
	links   []*link // by rail: the newest that was attached
	old     []*link // those before
	heard   []string
	sent    int
	taken   int    // messages that its actors have heard, without notifications
	watched bool   // its rails' health is looked at while time goes
	stuck   bool   // its actors take nothing out of their mailboxes
	unspent uint64 // what the mailboxes hold of the peer's window
}

const tick = time.Millisecond

func newWorld() *world { return &world{} }

// tokens is a source of keys that is the same each time.
type tokens struct{ *rand.Rand }

func (r tokens) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return len(b), nil
}

// open makes both ends; two rails unless told otherwise.
func (w *world) open(cfg session.Config, rails int) {
	*w = world{now: tick, said: w.said}
	for i, name := range []string{"a", "b"} {
		cfg.Opener = i == 0
		e := &end{w: w, name: name, links: make([]*link, rails)}
		e.regions = rma.NewTable(tokens{rand.New(rand.NewPCG(uint64(i), 1))}, 0)
		s, err := session.New(cfg, e.regions)
		if err != nil {
			w.breach("the session refuses its settings: %v", err)
		}
		e.s = s
		if i == 0 {
			w.a = e
		} else {
			w.b = e
		}
	}
	w.a.peer, w.b.peer = w.b, w.a
	for range rails {
		w.cables = append(w.cables, &cable{})
	}
	w.joins = make([]*join, rails)
}

func (w *world) ends() []*end { return []*end{w.a, w.b} }

func (e *end) say(format string, args ...any) {
	e.w.say("%s: %s", e.name, fmt.Sprintf(format, args...))
}

// pump carries out what the session asks for, at once and in order; to be called after each call of it.
func (e *end) pump() {
	for e.s.HasEffects() {
		for _, fx := range e.s.Effects(nil) {
			e.effect(fx)
		}
	}
}

func (e *end) effect(fx session.Effect) {
	now := e.w.now
	switch fx.Kind {
	case session.Completed:
		e.completed(fx.Op, fx.Err)
	case session.Offered:
		e.s.Accept(now, fx.Gen, fx.Op)
	case session.Withdrawn:
		e.s.Withdraw(now, fx.Gen, fx.Op)
	case session.Wake:
		l := linkOf(fx.Gen)
		if l.token {
			e.w.breach("%s gave the write token of %s away twice", e.name, l)
		}
		l.token = true
	case session.Killed:
		linkOf(fx.Gen).dead = true
		e.say("%s is cut off: %v", linkOf(fx.Gen), fx.Err)
	case session.Quiet:
		e.say("%s is quiet, %s", linkOf(fx.Gen), e.applied(fx.Gen))
	case session.Settled:
		e.say("%s is settled", linkOf(fx.Gen))
	case session.LaneUp:
		e.say("%s takes work", linkOf(fx.Gen))
	case session.Room:
		e.say("there is room again for messages")
	case session.Undelivered:
		e.say("the message to %s is given up: %s", fx.Message.Target, plainly(fx.Err))
	case session.PeerLeft:
		e.say("the peer says goodbye")
	default:
		e.w.breach("an effect that nobody knows: %d", fx.Kind)
	}
}

// applied tells how many counted frames of a quiet generation were applied here, as the peer will be told.
func (e *end) applied(g *session.Generation) string {
	for _, f := range e.s.Fenced() {
		if f.Rail == g.Lane().ID && f.Generation == g.ID {
			return plural(int(f.Count), "frame") + " applied"
		}
	}
	return "and forgotten"
}

// kinds are the ends of an operation by the names that the pages use.
var kinds = []struct {
	err  error
	name string
}{
	{rma.ErrCanceled, "canceled"}, {rma.ErrRevoked, "revoked"}, {rma.ErrOutcomeUnknown, "outcome unknown"},
	{rma.ErrBounds, "out of bounds"}, {rma.ErrRights, "no right"}, {rma.ErrUnknownRegion, "unknown region"},
	{rma.ErrPeerRestarted, "peer restarted"}, {rma.ErrEndpointDown, "endpoint down"}, {rma.ErrShutdown, "shut down"},
	{rma.ErrWindowFull, "window full"}, {rma.ErrTooLarge, "too large"}, {rma.ErrMalformed, "malformed"},
}

// plainly names an error by its kind: its words may change without changing the story.
func plainly(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.name
		}
	}
	return fmt.Sprint(err)
}

// pass lets d of time go by: deadlines are kept, health is looked at, and what can move does.
func (w *world) pass(d time.Duration) {
	w.timed = true
	defer func() { w.timed = false }()
	for stop := w.now + d; w.now < stop; {
		w.now += tick
		for _, c := range w.cables {
			c.refill()
		}
		for _, e := range w.ends() {
			e.look()
			e.keep()
		}
		for w.reads() { // what was written earlier: a millisecond is how long a byte travels
			continue
		}
		for w.writes() {
			continue
		}
	}
}

// keep does what the session's deadline asks for.
func (e *end) keep() {
	if at := e.s.Deadline(); at != 0 && at <= e.w.now {
		e.s.Tick(e.w.now)
		e.pump()
	}
}

// look has the health of each rail judged, where the page asked for that.
func (e *end) look() {
	if !e.watched {
		return
	}
	now := e.w.now
	for _, l := range e.links {
		if l == nil || l.dead {
			continue
		}
		v := l.gen.Vitals()
		woken := v.Busy && !l.busy // work begins: a look that was far away comes at once
		l.busy = v.Busy
		if now < l.lookAt && !woken {
			continue
		}
		a := l.pulse.Assess(now, rail.Vitals{Heard: v.Heard, Answered: v.Answered, OldestPing: v.OldestPing,
			Acked: v.AckedBytes, InFlight: v.InFlight, RTT: v.RoundTrip, Jitter: v.Jitter, Busy: v.Busy})
		l.lookAt = a.Next
		if a.SendBeat {
			e.s.Beat(now, l.gen)
		}
		switch bad := a.Verdict == rail.Unhealthy; {
		case bad && !l.gen.Suspect():
			e.say("%s is suspect: %v", l, a.Cause)
			e.s.Suspect(now, l.gen, a.Cause)
		case !bad && l.gen.Suspect():
			e.say("%s has answered and is trusted again", l)
			e.s.Trust(now, l.gen)
		}
		e.pump()
	}
}

// show tells what an end's session says of itself.
func (e *end) show() {
	for i, l := range e.links {
		if l == nil {
			e.say("rail %d has never been up", i)
			continue
		}
		state := "up"
		switch {
		case l.gen.Fenced():
			state = "down"
		case l.gen.Suspect():
			state = "suspect"
		case !l.gen.Usable():
			state = "waits for older generations"
		}
		e.say("%s is %s, %s in flight", l, state, size(int(l.gen.BytesInFlight())))
	}
	if open := e.open(); len(open) > 0 {
		e.say("open: %s", strings.Join(open, ", "))
	}
	z := e.s.Sizes()
	var kept []string
	for _, n := range []struct {
		n    int
		name string
	}{
		{z.Cancels, "cancel unanswered"}, {z.Owed, "request owed"}, {z.Pending, "message waits"}, {z.Held, "message held"},
		{z.Tombs, "tombstone"}, {z.Tracked, "notification record"}, {z.Serving, "get served"}, {z.Refusals, "refusal to tell"},
		{z.Unsettled, "generation unsettled"}, {z.Assemblies, "large message in parts"},
	} {
		if n.n > 0 {
			kept = append(kept, plural(n.n, n.name))
		}
	}
	if len(kept) > 0 {
		e.say("keeps %s", strings.Join(kept, ", "))
	}
}

// open names the operations that have not completed.
func (e *end) open() []string {
	var open []string
	for _, k := range e.works {
		if k.ends == 0 {
			open = append(open, string(k.letter))
		}
	}
	slices.Sort(open)
	return open
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	first, rest, more := strings.Cut(what, " ")
	if more && !strings.HasSuffix(first, "s") && (first == "message" || first == "request" || first == "refusal" ||
		first == "generation" || first == "get" || first == "cancel") {
		return fmt.Sprintf("%d %ss %s", n, first, rest)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (w *world) rail(id wire.RailID) *cable { return w.cables[id] }
