package replica

import (
	"slices"
	"time"
)

// stage is how far a primary is with a member.
type stage uint8

const (
	away      stage = iota // nothing is known, or it cannot be spoken to; its promise is asked for
	welcoming              // a stream is being opened
	planning               // it has to be filled; what and when is being found out
	running
)

// maxItems bounds the items under way to a member.
const maxItems = maxAhead / 2

// peer is a member as the primary sees it, and the stream to it. The stream is a cursor in the log, with copies of extents in between.
type peer struct {
	p     *primary
	name  Name
	stage stage
	stand Stand // its promise; zero: none yet
	retry time.Duration
	grant time.Duration // when the newest lease that it granted was asked for

	number            uint64 // of the stream
	key               []byte
	ring              ring
	items             uint64 // sent
	taken             uint64
	cursor            uint64 // the record that goes next
	loading           bool   // it is being read from the log
	loadedRecord      *Record
	appended, durable uint64
	whole             bool
	moved             time.Duration // when it last made progress, or had nothing to do

	dropped        bool   // it counts for nothing, until a roster after droppedVersion has it
	droppedVersion uint64 // in force when it was dropped
	tooOld         bool   // what it lacks is not in the log any more

	filler
}

func newPeer(p *primary, n Name) *peer { return &peer{p: p, name: n, moved: p.m.now} }

func (x *peer) id() Stream { return Stream{x.name, x.p.epoch, x.number} }

// inSync: it may be counted on, as far as the roster goes.
func (x *peer) inSync() bool { return !x.dropped && x.p.m.roster.Has(x.name) }

// counts: what it has is worth an acknowledgement.
func (x *peer) counts() bool { return x.inSync() && x.stage == running && x.whole && !x.filling }

// goOn does what is next with a member that waits for nothing.
func (x *peer) goOn() {
	m := x.p.m
	if !slices.Contains(m.up, x.name) || m.now < x.retry {
		return
	}
	switch {
	case x.stand.Epoch != x.p.epoch:
		m.send(x.name, Ask{x.p.epoch})
	case x.p.phase == asking:
		return
	case x.stage == away:
		x.open()
		return
	case x.stage == welcoming:
		m.send(x.name, Open{x.p.epoch, x.number})
	default:
		return
	}
	x.retry = m.now + m.set.Retry
}

// open asks for a new stream in place of what there is.
func (x *peer) open() {
	m := x.p.m
	x.abandon()
	x.number++
	x.stage = welcoming
	x.retry = m.now + m.set.Retry
	m.send(x.name, Open{x.p.epoch, x.number})
}

// abandon ends the stream. None of its staging memory is used again.
func (x *peer) abandon() {
	if x.stage > welcoming {
		x.p.m.emit(Cancel{x.id()})
	}
	x.stage, x.loading, x.loadedRecord = away, false, nil
	x.filler = filler{}
	x.p.drain() // a write may have waited for the reading of an extent
}

// welcome begins a stream, by what the member has.
func (x *peer) welcome(w Welcome) {
	if x.stage != welcoming {
		return
	}
	m := x.p.m
	x.key, x.ring = w.Key, ring{size: w.Size}
	x.items, x.taken, x.appended, x.durable, x.whole = 0, 0, 0, 0, false
	x.moved = m.now
	same := common(m.state.History, m.last.Sequence, w.History, w.Last.Sequence)
	if w.Whole && w.Last.Sequence == same && !x.tooOld {
		x.stage, x.cursor, x.whole = running, same+1, true
		x.pump()
		return
	}
	x.stage = planning
	x.plan = FillMark{Since: same}
	if !w.Whole {
		x.plan = FillMark{Since: min(w.Fill.Since, same), Below: w.Fill.Below, At: min(w.Fill.At, same)}
	}
	x.p.settle()
}

func (x *peer) ack(a Ack) {
	m := x.p.m
	if x.stage < planning || a.Items > x.items {
		return
	}
	if a.Items > x.taken || a.Appended > x.appended || a.Durable > x.durable || x.idle() {
		x.moved = m.now
	}
	if x.stage == planning || x.filling && a.Items == 0 {
		return // it speaks of a log that it is going to give up
	}
	x.taken = max(x.taken, a.Items)
	x.ring.taken(x.taken)
	x.appended, x.durable = max(x.appended, a.Appended), max(x.durable, a.Durable)
	if x.ended > 0 && a.Items >= x.ended && a.Whole {
		x.whole, x.filling, x.ended, x.tooOld = true, false, 0, false
	}
	x.p.settle()
	x.p.advance()
	x.pump()
}

// idle: it has everything there is.
func (x *peer) idle() bool {
	return x.stage == running && x.taken == x.items && x.cursor > x.p.m.last.Sequence && x.durable >= x.p.m.last.Sequence && !x.filling
}

func (x *peer) putDone(d PutDone) {
	if x.stage < planning {
		return
	}
	if !d.Well { // whether it landed or will, nobody knows: its memory is given up, with the stream
		x.open()
		return
	}
	x.ring.completed(d.Item)
	x.pump()
}

// tick opens streams that do not get on anew.
func (x *peer) tick() {
	m := x.p.m
	if x.stand.Epoch == x.p.epoch && slices.Contains(m.up, x.name) {
		m.send(x.name, Ping{x.p.epoch, m.now})
	}
	x.goOn()
	if x.idle() || x.waits() {
		x.moved = m.now
	}
	if x.stalled() && x.stage >= planning {
		x.p.drop(x)
		x.open()
	}
}

// stalled: nothing has moved for too long.
func (x *peer) stalled() bool { return x.p.m.now-x.moved > x.p.m.set.Stall }

// pump sends what there is room for: a copy that is due, else the next record, else nothing.
func (x *peer) pump() {
	for x.stage == running && x.items-x.taken < maxItems {
		if x.copyDue() {
			if !x.sendCopy() {
				return
			}
			continue
		}
		if x.cursor > x.p.m.last.Sequence {
			if !x.nextJob() {
				return
			}
			continue
		}
		rec, ok := x.fetch()
		if !ok || !x.put(Item{Kind: RecordItem, Record: rec.Header}, rec.Data) {
			return
		}
		x.cursor++
		x.loadedRecord = nil
		if x.cursor%fillEvery == 0 {
			x.nextJob()
		}
	}
}

// fetch gives the record at the cursor, from memory or from the log; not ok: it is not there yet.
func (x *peer) fetch() (Record, bool) {
	if rec, ok := x.p.record(x.cursor); ok {
		return rec, true
	}
	if x.loadedRecord != nil {
		return *x.loadedRecord, true
	}
	if !x.loading {
		x.loading = true
		x.p.m.emit(Load{x.id(), x.cursor})
	}
	return Record{}, false
}

func (x *peer) loaded(l Loaded) {
	if !x.loading {
		return
	}
	x.loading = false
	if !l.Found {
		x.tooOld = true
		x.open()
		return
	}
	x.loadedRecord = &l.Record
	x.pump()
}

// put sends an item with its data; not ok: there is no room for them now.
func (x *peer) put(item Item, data []byte) bool {
	item.Epoch, item.Stream, item.Number = x.p.epoch, x.number, x.items+1
	if len(data) == 0 {
		x.items++
		x.p.m.send(x.name, item)
		return true
	}
	at, ok := x.ring.take(item.Number, int64(len(data)))
	if !ok {
		return false
	}
	item.Staged = at
	x.items++
	x.p.m.emit(Put{To: x.name, Key: x.key, Item: item, Data: data})
	return true
}
