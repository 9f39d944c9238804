package main

import (
	"bytes"
	"time"

	"railyard/examples/replicator/replica"
)

// node is a member's machine, through all its incarnations. Owner: the world.
type node struct {
	w       *world
	index   int
	name    replica.Name
	rate    float64 // of its clock
	life    uint64  // counts incarnations
	member  *replica.Member
	thaw    time.Duration // it is stopped until then
	store   *store
	regions map[replica.Stream]*region
	flights []*flight
	asked   map[uint64]*operation // by op
	wiped   bool                  // and not whole since
}

func (n *node) clock() time.Duration { return time.Duration(float64(n.w.now) * n.rate) }

// awake does something in this incarnation, once the node is not stopped.
func (n *node) awake(do func(*node)) {
	if n.member == nil {
		return
	}
	if n.thaw > n.w.now {
		life := n.life
		n.w.after(n.thaw-n.w.now, func() {
			if n.life == life {
				n.awake(do)
			}
		})
		return
	}
	do(n)
}

// soon does something a little later, in this incarnation.
func (n *node) soon(d time.Duration, do func(*node)) {
	life := n.life
	n.w.after(d, func() {
		if n.life == life {
			n.awake(do)
		}
	})
}

func (n *node) start() {
	w := n.w
	n.life++
	n.regions, n.asked = make(map[replica.Stream]*region), make(map[uint64]*operation)
	m, err := replica.New(w.settings(n.name), n.store.state, n.store.last, n.clock())
	if err != nil {
		w.violate("%s does not start: %v", n.name, err)
	}
	n.member = m
	w.note("%s starts at %v, whole %v", n.name, n.store.last, n.store.state.Whole)
	n.step(replica.Agreed{Roster: w.roster})
	for i := range w.nodes {
		if i != n.index {
			w.after(w.upTo(100*time.Millisecond), func() { w.connect(n.index, i) })
		}
	}
	n.beat()
}

func (n *node) beat() {
	n.soon(20*time.Millisecond, func(n *node) {
		n.step(replica.Tick{})
		n.beat()
	})
}

// syncs has everything that is written until a little later safe then.
func (n *node) syncs() {
	if n.store.syncing {
		return
	}
	n.store.syncing = true
	n.soon(n.w.upTo(n.w.slowDisk), func(n *node) {
		n.store.syncing = false
		n.store.sync(n.w.kept)
		n.step(replica.Synced{Ticket: n.store.synced})
	})
}

func (n *node) crash(power bool) {
	w := n.w
	w.tally.Crashes++
	w.note("%s crashes, power lost: %v", n.name, power)
	n.life++
	n.member, n.thaw = nil, 0
	for i := range w.nodes {
		if i != n.index {
			w.cutLink(n.index, i)
		}
	}
	for _, o := range n.asked {
		o.lost = true
	}
	for _, c := range w.clients { // in an order that the seed gives
		for _, o := range c.open {
			if o.lost {
				o.lost = false
				w.after(w.upTo(20*time.Millisecond), func() { o.answered(replica.ErrDeposed, nil) })
			}
		}
	}
	for _, f := range n.flights {
		f.over = true // what is under way may land all the same
	}
	n.flights, n.asked = nil, nil
	n.store.crash(w, power)
}

func (n *node) step(in replica.Input) {
	if n.member == nil {
		return
	}
	for _, e := range n.member.Step(n.clock(), in) {
		n.carryOut(e)
	}
}

// later has a store effect done in its turn.
func (n *node) later(do func(*node)) {
	s := n.store
	s.queue = append(s.queue, func() { do(n) })
	if !s.busy {
		s.busy = true
		n.work()
	}
}

func (n *node) work() {
	n.soon(n.w.upTo(n.w.slowDisk/4), func(n *node) {
		s := n.store
		do := s.queue[0]
		s.queue = s.queue[1:]
		do()
		if len(s.queue) == 0 {
			s.busy = false
			return
		}
		n.work()
	})
}

func (n *node) carryOut(effect replica.Effect) {
	w := n.w
	switch e := effect.(type) {
	case replica.Send:
		if w.verbose {
			w.tell(n, e)
		}
		w.send(n.index, w.index(e.To), e.Message)
	case replica.Put:
		w.put(n, e)
	case replica.Cancel:
		n.cancel(e.Stream)
	case replica.Register:
		r := &region{memory: make([]byte, e.Size), owner: make([]uint64, e.Size)}
		n.regions[e.Stream] = r
		n.soon(w.upTo(w.slowNet), func(n *node) { n.step(replica.Registered{Stream: e.Stream, Key: []byte{1}}) })
	case replica.Revoke:
		n.regions[e.Stream].revoked = true
	case replica.Append:
		n.sequenced(e)
		n.later(func(n *node) { n.append(e) })
	case replica.Fill:
		r := n.regions[e.From]
		n.later(func(n *node) {
			data := bytes.Clone(r.memory[e.Staged : e.Staged+extent])
			n.changed(change{ticket: e.Ticket, fill: data, extent: e.Extent, at: e.At})
		})
	case replica.Save:
		if !e.State.Whole && n.store.state.Whole {
			w.tally.Fills++
		}
		n.later(func(n *node) {
			n.changed(change{ticket: e.Ticket, state: &e.State})
			n.wiped = n.wiped && !e.State.Whole
		})
	case replica.Answer:
		if o := n.asked[e.Op]; o != nil {
			delete(n.asked, e.Op)
			w.after(w.upTo(w.slowNet), func() { o.answered(e.Err, o.buffer) })
		}
	case replica.Propose:
		w.propose(e.Command)
	default:
		n.look(effect)
	}
}

// look carries out what only reads.
func (n *node) look(effect replica.Effect) {
	w := n.w
	switch e := effect.(type) {
	case replica.Check:
		n.later(func(n *node) {
			if replica.Checksum(n.store.image[e.Extent*extent:(e.Extent+1)*extent]) != e.Sum {
				w.tally.Repaired++
				n.step(replica.Checked{Stream: e.Stream, Extent: e.Extent})
			}
			n.changed(change{ticket: e.Ticket})
		})
	case replica.ReportDirt:
		n.later(func(n *node) {
			var list []uint64
			for x, record := range n.store.dirt {
				if e.Mark.Stale(uint64(x), record) {
					list = append(list, uint64(x))
				}
			}
			n.step(replica.Dirtied{Stream: e.Stream, Extents: list})
		})
	case replica.Load:
		n.later(func(n *node) {
			rec, ok := n.store.find(e.Sequence)
			w.tally.Loaded++
			n.step(replica.Loaded{Stream: e.Stream, Record: rec, Found: ok})
		})
	case replica.ReadExtent:
		n.later(func(n *node) {
			data := bytes.Clone(n.store.image[e.Extent*extent : (e.Extent+1)*extent])
			n.step(replica.ExtentRead{Stream: e.Stream, Extent: e.Extent, Data: data})
		})
	case replica.ReadImage:
		n.soon(w.upTo(w.slowDisk), func(n *node) {
			if o := n.asked[e.Op]; o != nil {
				o.buffer = bytes.Clone(n.store.image[e.Offset : e.Offset+e.Length])
			}
			n.soon(w.upTo(w.slowDisk), func(n *node) { n.step(replica.ReadDone{Op: e.Op}) })
		})
	default:
		w.violate("unknown effect %T", effect)
	}
}

// sequenced notes what a primary has put into its log: there must be one record of that number and epoch.
func (n *node) sequenced(e replica.Append) {
	h := e.Record.Header
	if e.From != (replica.Stream{}) {
		return
	}
	at := replica.Position{Epoch: h.Epoch, Sequence: h.Sequence}
	if who, ok := n.w.began[h.Epoch]; ok && who != n.name {
		n.w.violate("%s and %s both write in epoch %d", who, n.name, h.Epoch)
	}
	if _, ok := n.w.truth[at]; ok {
		n.w.violate("%s writes %v twice", n.name, at)
	}
	n.w.began[h.Epoch], n.w.truth[at] = n.name, e.Record
}

func (n *node) append(e replica.Append) {
	rec := e.Record
	if e.From != (replica.Stream{}) {
		r := n.regions[e.From]
		rec.Data = bytes.Clone(r.memory[e.Staged : e.Staged+int64(rec.Header.Data())])
		want, ok := n.w.truth[replica.Position{Epoch: rec.Header.Epoch, Sequence: rec.Header.Sequence}]
		if !ok || want.Header != rec.Header || !bytes.Equal(want.Data, rec.Data) {
			n.w.violate("%s appends %+v with other content than its primary", n.name, rec.Header)
		}
	}
	if rec.Header.Sequence != n.store.last.Sequence+1 {
		n.w.violate("%s appends %d behind %d", n.name, rec.Header.Sequence, n.store.last.Sequence)
	}
	n.changed(change{ticket: e.Ticket, record: &rec})
}

func (n *node) changed(g change) {
	if n.w.verbose && g.record != nil {
		n.w.note("%s has record %+v", n.name, g.record.Header)
	}
	n.store.change(g, n.w.kept)
	n.syncs()
	n.step(replica.Carried{Ticket: g.ticket})
}

// cancel takes back a stream's puts. Until the news is there, they may land.
func (n *node) cancel(s replica.Stream) {
	for _, f := range n.flights {
		if f.put.To == s.Peer && f.put.Item.Epoch == s.Epoch && f.put.Item.Stream == s.Number {
			n.w.after(n.w.upTo(n.w.slowNet), func() { f.canceled = true })
		}
	}
}

// tell notes a message, unless it is one of many.
func (w *world) tell(n *node, e replica.Send) {
	switch msg := e.Message.(type) {
	case replica.Ping, replica.Pong:
	case replica.Item:
		if msg.Kind != replica.RecordItem && msg.Kind != replica.CheckItem {
			w.note("%s to %s: %T %+v", n.name, e.To, msg, msg)
		}
	default:
		w.note("%s to %s: %T %+v", n.name, e.To, msg, msg)
	}
}
