package script

import (
	"railyard/endpoint/session"
	"railyard/rail"
	"railyard/wire"
)

// join is a handshake under way: hello, answer, confirm, and its arrival. What a socket would carry lies in it.
type join struct {
	dialer   *end
	rail     wire.RailID
	gen      wire.Generation
	told     []wire.Retired // the dialer's list of fenced generations
	back     []wire.Retired // the acceptor's
	answered bool
	there    *pipe // set by the confirm: from the dialer
	here     *pipe // and to it
}

// dial is the dialer's first step: older generations are fenced, the hello says which are unsettled.
func (w *world) dial(e *end, id int) bool {
	lane := e.s.Lane(wire.RailID(id))
	j := &join{dialer: e, rail: wire.RailID(id), gen: lane.NextGeneration()}
	if !lane.Reserve(j.gen) {
		e.say("may not dial rail %d", id)
		return false
	}
	if !j.fence(e) {
		return false
	}
	j.told = e.s.Fenced()
	w.joins[id] = j
	return true
}

// fence cuts off what is older; the join cannot go on while one of its socket calls is in progress.
func (j *join) fence(e *end) bool {
	quiet := e.s.Lane(j.rail).FenceOlder(e.w.now, j.gen, session.ErrReplaced)
	e.pump()
	if !quiet {
		e.say("the join of rail %d waits: a socket call of the old connection is in progress", j.rail)
	}
	return quiet
}

// answer is the acceptor's step.
func (w *world) answer(id int) bool {
	j := w.joined(id)
	e := j.dialer.peer
	if !e.s.Lane(j.rail).Reserve(j.gen) {
		e.say("refuses generation %d of rail %d", j.gen, id)
		w.joins[id] = nil
		return false
	}
	if !j.fence(e) {
		return false
	}
	back, err := e.s.ExchangeFenced(w.now, j.told)
	e.pump()
	if err != nil {
		w.breach("%s refuses the hello on rail %d: %v", e.name, id, err)
	}
	j.back, j.answered = back, true
	return true
}

// confirm is the dialer's last step: it attaches the new generation. False: it is over already, and the acceptor hears
// nothing.
func (w *world) confirm(id int) bool {
	j := w.joined(id)
	if !j.answered {
		w.breach("the join of rail %d is not answered", id)
	}
	told, err := j.dialer.s.ExchangeFenced(w.now, j.back)
	j.dialer.pump()
	if err != nil {
		w.breach("%s refuses the answer on rail %d: %v", j.dialer.name, id, err)
	}
	j.told, j.there, j.here = told, &pipe{room: 1 << 20}, &pipe{room: 1 << 20}
	if !j.attach(j.dialer, j.here, j.there) {
		w.joins[id] = nil
		return false
	}
	return true
}

// accept is the acceptor's last step: the confirm has come.
func (w *world) accept(id int) {
	j := w.joined(id)
	if j.there == nil {
		w.breach("the join of rail %d is not confirmed", id)
	}
	w.joins[id] = nil
	e := j.dialer.peer
	if _, err := e.s.ExchangeFenced(w.now, j.told); err != nil {
		w.breach("%s refuses the confirm on rail %d: %v", e.name, id, err)
	}
	e.pump()
	j.attach(e, j.there, j.here)
}

func (w *world) joined(id int) *join {
	if w.joins[id] == nil {
		w.breach("no join of rail %d is under way", id)
	}
	return w.joins[id]
}

// attach opens the generation at one end. False: it is over already.
func (j *join) attach(e *end, in, out *pipe) bool {
	l := &link{e: e, rail: j.rail, in: in, out: out, pulse: rail.NewHealth(rail.HealthConfig{}, e.w.now)}
	l.gen = e.s.Lane(j.rail).Attach(e.w.now, j.gen, l)
	if l.gen == nil {
		e.say("does not take generation %d of rail %d any more", j.gen, j.rail)
		e.pump()
		return false
	}
	if before := e.links[j.rail]; before != nil {
		e.old = append(e.old, before)
	}
	e.links[j.rail] = l
	e.pump()
	return true
}
