package endpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"railyard/endpoint/session"
	"railyard/rma"
)

// shares divide the peer's window among the actors that messages are for. One actor may have as much under way as is free
// beside it: alone half of the window, two of them a third each. So there is room for others, however many are slow.
//
// Owner: Endpoint.mu.
type shares struct {
	// crowded: a sender was told that its target's share is full, since room was last made known.
	crowded bool
	full    uint64 // sends that found no room, of either kind
	by      map[string]*share
}

// share is what one target has under way, in bytes of the window since the session began.
//
// Invariant: processed <= sent.
type share struct{ sent, processed uint64 }

// The peer says how far a target is in a system message to a target that no actor can be: the total, then the target's name.
const (
	toldTarget = "railyard-$told"
	toldType   = "railyard.Told"
)

// A target may always have this part of the window under way, and what it has processed is told in steps of half of that: so
// what is not told yet never holds a sender up.
const (
	dustPart = 128
	tellPart = 2 * dustPart
)

// TellEvery is the step, in bytes, in which a host tells by Processed how far a target is.
func (e *Endpoint) TellEvery() uint64 { return e.m.cfg.Session.Window / tellPart }

// sendShared puts a message into the session unless its target has its share. Called with the lock held.
func (e *Endpoint) sendShared(now time.Duration, m *session.Message, waited bool) error {
	if m.System || !e.m.cfg.Shares || !m.Target.Interned() {
		return e.counted(e.s.Send(now, m))
	}
	c := uint64(len(m.Payload) + len(m.Headers) + session.MessageOverhead)
	sh, _ := m.Target.Value.(*share)
	if sh == nil {
		sh = e.shareOf(m.Target)
	}
	if out := sh.sent - sh.processed; !waited && e.ended == nil &&
		out > e.s.PeerWindow()/dustPart && out+c > e.s.Free() {
		e.shares.crowded = true
		e.s.AwaitRoom()
		return e.counted(fmt.Errorf("message of %d bytes to %s: %d bytes are under way to this actor, its share of the window: %w",
			len(m.Payload), m.Target, out, rma.ErrWindowFull))
	}
	err := e.s.Send(now, m)
	if err == nil {
		sh.sent += c
	}
	return e.counted(err)
}

// TrySend sends in this epoch, without waiting. The error is the endpoint's where it has ended.
func (e *Endpoint) TrySend(m *Outgoing) error {
	err := e.send(m)
	if errors.Is(err, errEnded) {
		return fmt.Errorf("message to %s: %w", m.Target.S, e.Err())
	}
	return err
}

// counted notes for Flow that a message found no room. Called with the lock held.
func (e *Endpoint) counted(err error) error {
	if err != nil && errors.Is(err, rma.ErrWindowFull) {
		e.shares.full++
	}
	return err
}

func (e *Endpoint) shareOf(target *session.Name) *share {
	if e.shares.by == nil {
		e.shares.by = make(map[string]*share)
	}
	sh := new(share)
	e.shares.by[target.S], target.Value = sh, sh
	return sh
}

// Processed tells the peer how many bytes of the window its messages to target have taken and given back here, since the
// session began. It is said as a system message; of several totals the highest counts.
func (e *Endpoint) Processed(target string, total uint64) {
	e.mu.Lock()
	defer e.release()
	if e.ended != nil {
		return
	}
	b := append(binary.AppendUvarint(make([]byte, 0, binary.MaxVarintLen64+len(target)), total), target...)
	// What fails here fails because the session is over, or about to be: then nobody waits for it.
	_ = e.s.Send(e.m.now(), &session.Message{Target: e.s.Intern(toldTarget), Type: e.s.Intern(toldType), System: true, Payload: b})
}

// told takes over what the peer says of one of its actors. What it says too much counts as all.
func (e *Endpoint) told(b []byte) {
	total, n := binary.Uvarint(b)
	if n <= 0 {
		return
	}
	e.mu.Lock()
	sh := e.shares.by[string(b[n:])]
	if sh != nil {
		sh.processed = max(sh.processed, min(total, sh.sent))
	}
	wake := sh != nil && e.shares.crowded
	if wake {
		e.shares.crowded = false
	}
	e.mu.Unlock()
	if wake {
		e.wakeAll(&e.room)
	}
}

// Flow is how full the peer's window is, for dashboards.
type Flow struct {
	// Window is what the peer lets us have under way, in bytes; UnderWay is what of it is not processed yet, as far as it has said.
	Window, UnderWay uint64
	// Full counts sends that found no room: in the window, or in their target's share of it. One that waits may be counted
	// more than once.
	Full uint64
	// Open is the number of operations that have not completed.
	Open int
}

// Flow tells how full the peer's window is.
func (e *Endpoint) Flow() Flow {
	e.mu.Lock()
	defer e.unlock()
	if e.bug != nil {
		return Flow{Window: e.kept.flow.Window, Full: e.shares.full} // nothing is under way any more
	}
	w := e.s.PeerWindow()
	return Flow{Window: w, UnderWay: w - min(w, e.s.Free()), Full: e.shares.full, Open: e.s.Operations()}
}
