package session

import (
	"bytes"
	"time"

	"railyard/wire"
)

// Verdict is what a hello means for the node that hears it.
type Verdict uint8

// The verdicts.
const (
	// Joins: the hello is of the session that is there.
	Joins Verdict = iota + 1
	// Opens: there is no session with the node; the hello opens one.
	Opens
	// Replaces: the session that is there is over; it ends, with all that is fenced of it, and then the hello opens one.
	Replaces
	// Yields: of two first sessions at once the hello's wins; ours, of which nothing was applied, becomes it.
	Yields
	// Busy: of two first sessions at once ours wins.
	Busy
	// Alive: the session that is there is still heard of.
	Alive
	// Stale: the hello may be that of a life before the one that the session is with.
	Stale
	// Unknown: the hello is of a session that is not there, or has ended there.
	Unknown
)

// Standing is how a node stands with the sender of a hello that echoes its challenge.
type Standing struct {
	// Ours: the hello's session is one that is here. First: it opens a session. Ended: one that has ended here; the peer may
	// still live in it.
	Ours, First, Ended bool
	// There: another session with its node is here. Agreed: its peer has taken part in it; Opener: we began it; Lower: our
	// address is the lower of both; Silent: no rail of it is heard (Session.Silent).
	There, Agreed, Opener, Lower, Silent bool
	// Fresh: the session that is here was agreed on before we sent the challenge that the hello echoes.
	Fresh bool
}

// Judge decides on a hello (rules 7 and 8). A hello proves that its sender lived after it was challenged, and no more: one that was
// challenged before another session was agreed on may be dead since.
func (s Standing) Judge() Verdict {
	switch {
	case s.Ours:
		return Joins
	case !s.First, s.Ended:
		return Unknown
	case !s.There:
		return Opens
	case !s.Agreed && s.Opener && s.Lower:
		return Busy
	case !s.Agreed && s.Opener:
		return Yields
	case !s.Silent:
		return Alive
	case !s.Fresh:
		return Stale
	}
	return Replaces
}

// Greeting is what a challenge means for the endpoint whose dial has met it.
type Greeting uint8

// The greetings.
const (
	// Meant: it is the incarnation that the session is with, or there is none yet.
	Meant Greeting = iota + 1
	// Stranger: it is another incarnation, and the one that the session is with is still heard.
	Stranger
	// Restarted: it is another incarnation, and the session is over.
	Restarted
)

// Greet decides on a challenge by the incarnation in it. Known is the incarnation that the session is with, if it is agreed.
func (s *Session) Greet(agreed bool, known, said wire.NodeID) Greeting {
	switch {
	case !agreed || known == said:
		return Meant
	case !s.Silent():
		return Stranger
	}
	return Restarted
}

// Echoes tells whether the hello is one to this challenge, and no older one's (rule 8).
func Echoes(c *wire.Challenge, h *wire.Hello) bool {
	return bytes.Equal(h.GetChallenge(), c.GetNonce())
}

// Silent tells whether no rail is heard: each connection is cut off or under suspicion.
func (s *Session) Silent() bool {
	for _, l := range s.lanes {
		if l != nil && l.current != nil && !l.current.fenced && !l.current.suspect {
			return false
		}
	}
	return true
}

// SilentSince is since when the session has been silent; 0: from its beginning. It has a meaning only while Silent.
func (s *Session) SilentSince() time.Duration { return s.silentAt }

// hush notes when the session falls silent.
func (s *Session) hush() {
	silent := s.Silent()
	if silent && s.heardOf {
		s.silentAt = s.now
	}
	s.heardOf = !silent
}

// Still tells whether the session is over and no socket call or delivery of it is in progress: nothing of it is applied any
// more. Before that the next epoch with the same node must not begin (rule 8).
func (s *Session) Still() bool {
	if s.closed == nil {
		return false
	}
	for _, l := range s.lanes {
		if l == nil {
			continue
		}
		for _, g := range l.gens {
			if !g.quiet {
				return false
			}
		}
	}
	return true
}
