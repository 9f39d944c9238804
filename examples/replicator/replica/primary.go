package replica

import (
	"slices"
	"time"
)

// step takes what only a primary cares for.
func (p *primary) step(in Input) {
	switch in := in.(type) {
	case Write:
		p.write(in)
	case Read:
		p.read(in)
	case ReadDone:
		p.readDone(in.Op)
	case Flush:
		p.flushes = append(p.flushes, answerable{in.Op, p.newest(), true})
		p.answer()
	case Withdraw:
		p.withdraw(in.Ops)
	case Verify:
		for _, peer := range p.peers {
			peer.verify()
		}
	case PutDone:
		if peer := p.stream(in.Stream); peer != nil {
			peer.putDone(in)
		}
	case Dirtied:
		if peer := p.stream(in.Stream); peer != nil {
			peer.dirt(in.Extents, true)
		}
	case Loaded:
		if peer := p.stream(in.Stream); peer != nil {
			peer.loaded(in)
		}
	case ExtentRead:
		if peer := p.stream(in.Stream); peer != nil {
			peer.extentRead(in)
		}
	}
}

// newest is the record that a flush waits for. Writes in the queue have not been answered, so it need not wait for them.
func (p *primary) newest() uint64 { return p.m.last.Sequence }

// told takes a member's message, if it is about what goes on with it.
func (p *primary) told(from Name, message Message) {
	var peer *peer
	for _, x := range p.peers {
		if x.name == from {
			peer = x
		}
	}
	if peer == nil {
		return
	}
	now := func(epoch, stream uint64) bool {
		return epoch == p.epoch && stream == peer.number && peer.stage >= welcoming
	}
	switch msg := message.(type) {
	case Stand:
		if msg.Epoch == p.epoch {
			peer.stand, peer.retry = msg, 0
			p.consider()
			peer.goOn()
		}
	case Pong:
		if msg.Epoch == p.epoch {
			peer.grant = max(peer.grant, msg.Sent)
			p.readAll()
		}
	case Welcome:
		if now(msg.Epoch, msg.Stream) {
			peer.welcome(msg)
		}
	case Dirt:
		if now(msg.Epoch, msg.Stream) {
			peer.dirt(msg.Extents, false)
		}
	case Ack:
		if now(msg.Epoch, msg.Stream) {
			peer.ack(msg)
		}
	case Differs:
		if now(msg.Epoch, msg.Stream) {
			p.differs++
			peer.repair(msg.Extent)
		}
	case Broken:
		if now(msg.Epoch, msg.Stream) {
			peer.open()
		}
	}
}

func (p *primary) stream(s Stream) *peer {
	for _, peer := range p.peers {
		if peer.name == s.Peer && peer.number == s.Number && s.Epoch == p.epoch {
			return peer
		}
	}
	return nil
}

func (p *primary) upDown(n Name) {
	for _, peer := range p.peers {
		if peer.name == n {
			peer.abandon()
			peer.stand, peer.retry = Stand{}, 0
			peer.goOn()
		}
	}
}

func (p *primary) tick() {
	late := p.m.now-p.ticked > p.m.set.Stall/2 // it was stopped itself, and has no right to judge anybody
	p.ticked = p.m.now
	for _, peer := range p.peers {
		if late {
			peer.moved = p.m.now
		}
		peer.tick()
	}
	p.consider()
	p.settle()
	p.pump()
	p.readAll()
}

// Writes

func (p *primary) write(w Write) {
	if w.Offset > p.m.set.Size || w.Length > p.m.set.Size-w.Offset || !w.Zero && int64(w.Length) > p.m.set.Staging/2 {
		p.m.emit(Answer{w.Op, ErrRange})
		return
	}
	p.queue = append(p.queue, w)
	p.drain()
}

// drain gives writes their numbers, in the order in which they came, until one has to wait.
func (p *primary) drain() {
	began := false
	for len(p.queue) > 0 && p.phase == open && p.unacked <= p.m.set.Pending && !p.copying(p.queue[0]) {
		w := p.queue[0]
		p.queue = p.queue[1:]
		p.sequence(w)
		p.writes = append(p.writes, answerable{w.Op, p.m.last.Sequence, w.Durable})
		began = true
	}
	if began {
		p.pump()
	}
}

// copying tells whether an extent that is being read for a copy would change.
func (p *primary) copying(w Write) bool {
	e := p.m.set.Extent
	return slices.ContainsFunc(p.peers, func(x *peer) bool {
		return x.reading && Header{Offset: w.Offset, Length: w.Length}.overlaps(x.extent*e, e)
	})
}

// sequence makes a write the next record of the log.
func (p *primary) sequence(w Write) {
	m := p.m
	h := Header{Epoch: p.epoch, Volume: m.set.Volume, Sequence: m.last.Sequence + 1, ID: w.Op,
		Zero: w.Zero, Offset: w.Offset, Length: w.Length}
	rec := Record{h, w.Data}
	m.append(Append{Record: rec})
	p.recent = append(p.recent, rec)
	p.bytes += len(w.Data)
	p.unacked += len(w.Data)
}

// record finds one of the newest records.
func (p *primary) record(sequence uint64) (Record, bool) {
	if len(p.recent) == 0 || sequence < p.recent[0].Header.Sequence {
		return Record{}, false
	}
	return p.recent[sequence-p.recent[0].Header.Sequence], true
}

// after gives the newest records behind one of them.
func (p *primary) after(sequence uint64) []Record {
	if len(p.recent) == 0 || sequence < p.recent[0].Header.Sequence {
		return p.recent
	}
	return p.recent[min(sequence+1-p.recent[0].Header.Sequence, uint64(len(p.recent))):]
}

func (p *primary) pump() {
	for _, peer := range p.peers {
		peer.pump()
	}
}

// advance looks how far the log is at a quorum, and answers what waited for that.
func (p *primary) advance() {
	if p.phase < opening {
		return
	}
	commit, hard := p.reached(nil)
	for _, rec := range p.after(p.commit) {
		if rec.Header.Sequence > commit {
			break
		}
		p.unacked -= len(rec.Data)
	}
	p.commit, p.hard = max(p.commit, commit), max(p.hard, hard)
	if p.phase == opening && p.opened() {
		p.phase = open
	}
	p.forget()
	p.answer()
	p.drain()
	p.readAll()
}

// opened: all that earlier epochs have acknowledged is at a quorum again, and no other log can be ahead of this one.
func (p *primary) opened() bool {
	if p.m.set.Level == LevelA {
		memory, _ := p.quorum(nil)
		return memory >= p.first && p.commit >= p.first
	}
	return p.commit >= p.first
}

// forget drops records from memory that members who are behind can have from the log.
func (p *primary) forget() {
	n := 0
	for n < len(p.recent) && p.bytes > p.m.set.Window && p.recent[n].Header.Sequence <= p.commit {
		p.bytes -= len(p.recent[n].Data)
		n++
	}
	p.recent = p.recent[n:]
}

func (p *primary) answer() {
	p.writes = p.answered(p.writes)
	p.flushes = p.answered(p.flushes)
	p.seen = p.answered(p.seen)
}

// answered answers what can be, and gives the rest.
func (p *primary) answered(list []answerable) []answerable {
	if p.phase != open {
		return list
	}
	rest := list[:0]
	for _, a := range list {
		if a.sequence > p.commit || a.hard && a.sequence > p.hard {
			rest = append(rest, a)
			continue
		}
		p.m.emit(Answer{a.op, nil})
	}
	return rest
}

// withdraw takes back what has not begun. The rest is carried out: it has its place in the order, before all that comes later.
func (p *primary) withdraw(ops []uint64) {
	p.queue = slices.DeleteFunc(p.queue, func(w Write) bool {
		gone := slices.Contains(ops, w.Op)
		if gone {
			p.m.emit(Answer{w.Op, ErrCanceled})
		}
		return gone
	})
	p.reads = slices.DeleteFunc(p.reads, func(r Read) bool {
		gone := slices.Contains(ops, r.Op)
		if gone {
			p.m.emit(Answer{r.Op, ErrCanceled})
		}
		return gone
	})
	p.drain()
}

// Reads

func (p *primary) read(r Read) {
	if r.Offset > p.m.set.Size || r.Length > p.m.set.Size-r.Offset {
		p.m.emit(Answer{r.Op, ErrRange})
		return
	}
	p.reads = append(p.reads, r)
	p.readAll()
}

// readAll begins the reads that wait, if no later primary can have acknowledged anything yet.
func (p *primary) readAll() {
	if len(p.reads) == 0 || p.phase != open || !p.leaseHeld() {
		return
	}
	for _, r := range p.reads {
		p.reading = append(p.reading, r)
		p.m.emit(ReadImage(r))
	}
	p.reads = nil
}

// readDone answers a read, once all that it may have seen is acknowledged: else it might be read and then lost.
func (p *primary) readDone(op uint64) {
	at := slices.IndexFunc(p.reading, func(r Read) bool { return r.Op == op })
	if at < 0 {
		return
	}
	r := p.reading[at]
	p.reading = slices.Delete(p.reading, at, at+1)
	var upTo uint64
	for _, rec := range p.after(p.commit) {
		if rec.Header.overlaps(r.Offset, r.Length) {
			upTo = rec.Header.Sequence
		}
	}
	p.seen = append(p.seen, answerable{op, upTo, false})
	p.seen = p.answered(p.seen)
}

// quorum gives the newest records that are in the memory and on the disks of a quorum of those that count, one of them left out.
func (p *primary) quorum(but *peer) (memory, disk uint64) {
	m := p.m
	var appended, durable []uint64
	if m.roster.Has(m.set.Self) {
		appended, durable = append(appended, m.appended), append(durable, m.durable)
	}
	for _, peer := range p.peers {
		if peer != but && peer.counts() {
			appended, durable = append(appended, peer.appended), append(durable, peer.durable)
		}
	}
	q := m.roster.Quorum()
	if len(appended) < q {
		return 0, 0
	}
	slices.Sort(appended)
	slices.Sort(durable)
	return appended[len(appended)-q], durable[len(durable)-q]
}

// reached gives what can be acknowledged as written and as flushed. Only what the own image has can be: reads come from there.
func (p *primary) reached(but *peer) (commit, hard uint64) {
	memory, disk := p.quorum(but)
	switch p.m.set.Level {
	case LevelA:
		return p.m.durable, p.m.durable
	case LevelB:
		return min(memory, p.m.appended), min(disk, p.m.appended)
	case LevelC:
	}
	disk = min(disk, p.m.appended)
	return disk, disk
}

// leaseHeld tells whether a quorum of those that count has promised no later epoch until now.
func (p *primary) leaseHeld() bool {
	n := 1
	for _, peer := range p.peers {
		if peer.inSync() && peer.grant > 0 && p.m.now < peer.grant+leaseTerm(p.m.set.Lease) {
			n++
		}
	}
	return n >= p.m.roster.Quorum()
}

// leaseTerm is what of a lease its holder relies on: clocks run at different speeds.
func leaseTerm(lease time.Duration) time.Duration { return lease * 9 / 10 }
