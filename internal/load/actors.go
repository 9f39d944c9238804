package load

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/rma"
)

// Messages inside one side.
type (
	opened struct{ plots *Plots } // the other side can be told of the memory
	tick   struct{}
	finish struct{}
	forgo  struct{} // what the other side had under way will not be told of
)

// lookEvery is how often the target looks whether a slot's time is over.
const lookEvery = 50 * time.Millisecond

// sink receives what the other side's source of the same pair sends.
type sink struct {
	side   *Side
	pair   int
	stream string
	from   string // the source's name
	ledger Ledger
}

func newSink(s *Side, pair int) *sink {
	return &sink{
		side: s, pair: pair, stream: fmt.Sprintf("pair %d to %s", pair, s.config.Name),
		from: fmt.Sprintf("%s-source-%d", s.config.OtherName, pair),
	}
}

func (k *sink) Receive(ctx actor.Context) {
	m, ok := ctx.Message().(*Numbered)
	if !ok {
		return
	}
	s := k.side
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.quiet {
		s.gaps.Beat(k.stream, s.config.Now())
	}
	sender := ctx.Sender()
	if int(m.Pair) != k.pair || m.Sum != sumOf(m) || sender == nil || sender.Id != k.from {
		s.counters.Corrupted++
		s.noteLocked("corrupted: message %d of pair %d from %v at sink %d", m.Sequence, m.Pair, sender, k.pair)
		return
	}
	before := k.ledger
	arrival := k.ledger.Take(m.Sequence)
	s.counters.Delivered += k.ledger.Delivered - before.Delivered
	s.counters.Doubled += k.ledger.Doubled - before.Doubled
	s.counters.Reordered += k.ledger.Reordered - before.Reordered
	s.holes += (k.ledger.next - before.next) - (k.ledger.Delivered - before.Delivered)
	if s.config.Arrived != nil {
		s.config.Arrived(k.pair, k.ledger.next)
	}
	switch arrival {
	case InOrder, Ahead:
	case Reordered:
		s.noteLocked("reordered: message %d of pair %d came behind a later one", m.Sequence, m.Pair)
	case Doubled:
		s.noteLocked("doubled: message %d of pair %d came again", m.Sequence, m.Pair)
	}
}

// sumOf is the checksum that a numbered message must carry.
func sumOf(m *Numbered) uint32 {
	var head [12]byte
	binary.LittleEndian.PutUint32(head[:], m.Pair)
	binary.LittleEndian.PutUint64(head[4:], m.Sequence)
	return Sum(head[:]) ^ Sum(m.Padding)
}

// targetActor keeps the Target.
type targetActor struct {
	side *Side
	stop func()
	last Target // the counters as they were before the message
}

func (a *targetActor) Receive(ctx actor.Context) {
	s, t := a.side, a.side.target
	now := s.config.Now()
	var err error
	switch m := ctx.Message().(type) {
	case *actor.Started:
		a.stop = tickTo(ctx.ActorSystem(), ctx.Self())
	case *actor.Stopping:
		a.stop()
	case opened:
		ctx.Send(s.other("initiator"), m.plots)
	case *Landed:
		ctx.Send(s.other("initiator"), t.Landed(m))
	case *TookBack:
		t.TookBack(m)
	case *Revoke:
		err = t.Revoke(m, now)
	case *Full:
		t.Full(m, now)
	case tick:
		var plots []*Plot
		plots, err = t.Due(now)
		for _, p := range plots {
			ctx.Send(s.other("initiator"), p)
		}
	case forgo:
		t.Forgo()
		defer ctx.Respond(forgo{})
	case finish:
		t.Finish()
		defer ctx.Respond(finish{})
	}
	if err != nil {
		s.Fault("%v", err)
	}
	a.publish()
}

// publish adds what the target has found since the last message to the side's counters.
func (a *targetActor) publish() {
	s, t := a.side, a.side.target
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counters.Corrupted += t.Corrupted - a.last.Corrupted
	s.counters.Doubled += t.Doubled - a.last.Doubled
	s.counters.LateWrites += t.LateWrites - a.last.LateWrites
	for _, note := range t.Notes[len(a.last.Notes):] {
		s.noteLocked("%s", note)
	}
	a.last = *t
}

// tickTo sends ticks to an actor until the result is called.
func tickTo(system *actor.ActorSystem, pid *actor.PID) (stop func()) {
	ticker := time.NewTicker(lookEvery)
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				system.Root.Send(pid, tick{})
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// initiatorActor hears from the target.
type initiatorActor struct{ side *Side }

func (a *initiatorActor) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *Plots:
		for _, p := range m.Plots {
			a.introduce(p)
		}
	case *Plot:
		a.introduce(m)
	case *Checked:
		a.side.checked(m)
	}
}

func (a *initiatorActor) introduce(p *Plot) {
	s := a.side
	var key rma.Key
	if err := key.UnmarshalBinary(p.Key); err != nil {
		s.Fault("the key of slot %d cannot be read: %v", p.Slot, err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.layout.Introduce(p.Slot, p.Life, key) {
		s.counters.Doubled++
		s.noteLocked("doubled: life %d of slot %d was introduced before", p.Life, p.Slot)
	}
}

// checked notes that the target has seen a completed put.
func (s *Side) checked(m *Checked) {
	s.mu.Lock()
	place, ok := s.pending[m.Put]
	if !ok || place.Slot != m.Slot || place.Life != m.Life {
		s.counters.Doubled++
		s.noteLocked("doubled: the target has seen put %d, which was not open", m.Put)
		s.mu.Unlock()
		return
	}
	s.counters.Checked++
	s.mu.Unlock()
	s.settle(m.Put)
}

// settle says that both sides know the end of a put, and hands the slot back if that was the last one.
func (s *Side) settle(put uint64) {
	s.mu.Lock()
	place, ok := s.pending[put]
	delete(s.pending, put)
	var full *Place
	if ok {
		full = s.layout.Settle(place.Slot, place.Life)
	}
	s.mu.Unlock()
	s.handBack(full)
}

func (s *Side) handBack(full *Place) {
	if full != nil {
		s.system.Root.Send(s.other("target"), &Full{Slot: full.Slot, Life: full.Life})
	}
}
