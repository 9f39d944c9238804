package session

import (
	"fmt"
	"time"

	"railyard/rma"
	"railyard/wire"
)

// item is one or, for a segment, several counted frames on their way.
type item struct {
	kind   wire.Kind
	frames uint32
	bytes  uint32 // on the wire
	seg    *segment
	op     *Op
	at     uint64 // position of the payload in op
	n      uint32 // bytes of payload
	forget []wire.OpID
	id     wire.OpID // GetDone: the peer's get
	code   wire.Code // GetDone
	bulk   bool      // counts towards the lane's bulk bytes
}

// ofPut tells whether it is a chunk of a put, whichever way its bytes go.
func (it *item) ofPut() bool { return it.kind == wire.KindChunk || it.kind == wire.KindPlaced }

// planned is one entry of the plan between Fill and Wrote.
type planned struct {
	item
	size int  // bytes in the plan
	ctl  bool // uncounted: what is not written of it stays
	rest bool // it is what was left of a begun frame
}

// maxChunksOut bounds the chunks of puts under way on one generation: the peer keeps at most twice as many refusals,
// which is what one frame can carry (rule 2).
const maxChunksOut = wire.MaxRefusals / 2

// scratchSize bounds the headers, control frames and small payloads of one plan.
const scratchSize = 64 << 10

// Fill plans the next write call: what is left of a begun frame, control frames, messages, small operations,
// bulk. False: nothing now, and the write token is given back.
func (g *Generation) Fill(now time.Duration, out *rma.Gather) bool {
	s := g.s
	s.now = now
	if g.fenced || s.closed != nil {
		g.token = false
		return false
	}
	out.Reset()
	g.plan, g.owners = g.plan[:0], g.owners[:0]
	f := filler{g: g, out: out}
	f.takeRest()
	f.takeControl(now)
	if !g.suspect && g.up {
		f.takeCounted()
		f.takeSegments()
		f.takeSmall()
		f.takeBulk()
	}
	if len(g.plan) == 0 && len(g.todo) > 0 { // what takeBulk has to ask for, and nothing else to take it along
		f.takeControl(now)
	}
	f.flush()
	if len(g.plan) == 0 {
		g.token = false
		return false
	}
	g.writing = true
	return true
}

// rateGap is how long a lane may be without bulk inside one stretch of work.
const rateGap = time.Millisecond

// filler collects one plan. Small things are laid end to end in the generation's scratch memory.
type filler struct {
	g    *Generation
	out  *rma.Gather
	from int // where the run of scratch bytes that is not yet in out begins
	size int
}

func (f *filler) full() bool {
	return f.size >= maxWritePlan || len(f.g.scratch) > scratchSize-wire.HeaderSize || len(f.out.Bufs) > 900
}

// flush puts the run of scratch bytes into the plan.
func (f *filler) flush() {
	g := f.g
	if f.from < len(g.scratch) {
		f.out.Add(g.scratch[f.from:len(g.scratch):len(g.scratch)])
		g.owners = append(g.owners, owner{})
		f.from = len(g.scratch)
	}
}

// add puts memory that is not scratch into the plan.
func (f *filler) add(b []byte, o owner) {
	if len(b) == 0 {
		return
	}
	f.flush()
	if o.region != nil {
		f.out.AddPinned(b, o.region)
	} else {
		f.out.Add(b)
	}
	f.g.owners = append(f.g.owners, o)
	if o.op != nil {
		o.op.pins++
	}
}

func (f *filler) entry(p planned) {
	f.size += p.size
	f.g.plan = append(f.g.plan, p)
	if p.frames == 0 || p.rest {
		return
	}
	g := f.g
	g.inFlight += uint64(p.bytes)
	if p.bulk {
		// A new stretch of work to measure the rate by, unless the lane only ran dry between two bursts of acks: where few
		// bytes may be under way, it does so at each round trip, and would never be measured.
		if g.bulk == 0 && g.s.now-g.dryAt > rateGap {
			g.rateAt, g.rateFrom = g.s.now, g.ackedBy
		}
		g.bulk += int(p.bytes)
	}
	if p.ofPut() {
		g.chunks++
	}
}

func (f *filler) takeRest() {
	g := f.g
	if g.scratch == nil {
		g.scratch = make([]byte, 0, 4<<10)
	}
	g.scratch = g.scratch[:0]
	if len(g.rest) == 0 {
		return
	}
	n := 0
	for _, r := range g.rest {
		f.add(r.b, r.owner)
		n += len(r.b)
	}
	if g.restLen > 0 {
		f.entry(planned{size: g.restLen, rest: true, item: item{frames: g.restOf}})
	}
	if behind := n - g.restLen; behind > 0 {
		f.entry(planned{size: behind, rest: true})
	}
	clear(g.rest)
	g.rest = g.rest[:0]
}

// takeCounted plans get requests, notifies, forgets and verdicts on gets.
func (f *filler) takeCounted() {
	g := f.g
	for i := 0; i < g.counted.len() && !f.full(); i++ {
		if next := g.counted.at(i); next.op != nil && next.op.ended && !next.op.begun {
			o := next.op // taken back before it went out: a frame without effect takes its place in the queue
			next.op, next.kind, next.forget = nil, wire.KindForget, []wire.OpID{o.ID}
			g.s.forgetting++
			g.s.spent(o)
		}
		it := *g.counted.at(i)
		at := len(g.scratch)
		g.scratch = it.append(g.scratch)
		it.bytes = uint32(len(g.scratch) - at)
		if it.op != nil {
			it.op.pins++ // a bracket, though its memory is not named
		}
		f.entry(planned{item: it, size: int(it.bytes)})
	}
}

// append encodes one of the small counted frames.
func (it *item) append(b []byte) []byte {
	switch it.kind {
	case wire.KindGetRequest:
		o := it.op
		return (&wire.GetRequest{Op: o.ID, Token: o.Token, Region: o.Region, Offset: o.Offset,
			Length: uint64(len(o.Data))}).Append(b)
	case wire.KindNotify:
		m := it.op.Notify
		n := wire.Notify{Op: it.op.ID, Message: wire.Message{
			System: m.System, Target: wire.Ref{Name: m.Target.S}, Sender: wire.Ref{Name: m.Sender.String()},
			Type: wire.Ref{Name: m.Type.S}, Headers: m.Headers, Payload: m.Payload,
		}}
		return n.Append(b)
	case wire.KindForget:
		return (&wire.Forget{Ops: it.forget}).Append(b)
	case wire.KindGetDone:
		return (&wire.GetDone{Op: it.id, Code: it.code}).Append(b)
	default:
		panic(fmt.Sprintf("session: %v is no small counted frame", it.kind))
	}
}

func (f *filler) takeSegments() {
	g := f.g
	for i := 0; i < g.segs.len() && !f.full(); i++ {
		seg := *g.segs.at(i)
		seg.sealed = true
		wire.PatchBatch(seg.buf, len(seg.buf)-wire.HeaderSize, len(seg.frames))
		f.add(seg.buf[:len(seg.buf):len(seg.buf)], owner{})
		f.entry(planned{size: len(seg.buf), item: item{
			kind: wire.KindBatch, frames: uint32(len(seg.frames)), bytes: uint32(len(seg.buf)), seg: seg,
		}})
	}
}

// takeSmall copies small operations behind their headers.
func (f *filler) takeSmall() {
	g := f.g
	for g.small.len() > 0 && !f.full() && len(g.scratch)+wire.HeaderSize+smallOp <= scratchSize &&
		g.inFlight < uint64(g.s.cfg.LaneBulk) && g.chunks < maxChunksOut {
		o := g.small.pop()
		for o.unsent() {
			f.takeChunk(o, false)
		}
		o.off(g)
	}
}

// takeChunk plans one chunk of the operation: header in scratch, payload from where it is, or copied if small.
func (f *filler) takeChunk(o *Op, bulk bool) {
	g := f.g
	p := o.take(g.lane.chunk())
	payload := o.Data[p.at : p.at+p.n : p.at+p.n]
	it := item{op: o, at: p.at, n: uint32(p.n), frames: 1, bytes: wire.HeaderSize + uint32(p.n), bulk: bulk}
	capture := o.Kind == Serve && p.n <= smallOp
	switch o.Kind {
	case Put:
		it.kind = wire.KindChunk
		g.scratch = (&wire.Chunk{Op: o.ID, Token: o.Token, Region: o.Region, Base: o.Offset, Total: uint64(len(o.Data)),
			Position: p.at, Size: uint32(p.n), Notify: o.Notify != nil}).Append(g.scratch)
	case LargeMessage:
		it.kind = wire.KindMessageChunk
		g.scratch = (&wire.MessageChunk{ID: o.ID, Position: p.at, Total: uint64(len(o.Data)), Size: uint32(p.n)}).Append(g.scratch)
	case Serve:
		it.kind = wire.KindGetData
		g.scratch = (&wire.GetData{Op: o.ID, Position: p.at, Total: uint64(len(o.Data)), Size: uint32(p.n)}).Append(g.scratch)
	default: // Get and Flush have no bytes to send
	}
	o.pins++
	o.out++
	switch {
	case capture:
		n := len(g.scratch)
		g.scratch = append(g.scratch, make([]byte, p.n)...)
		if !o.region.Read(o.Offset+p.at, g.scratch[n:]) {
			o.padded = true
		}
	case p.n <= smallOp && o.Kind != Serve:
		g.scratch = append(g.scratch, payload...)
	default:
		f.add(payload, owner{op: o, region: o.region})
	}
	f.entry(planned{item: it, size: int(it.bytes)})
}

// Wrote closes the bracket of a write call: the first n bytes of the plan are with the kernel.
func (g *Generation) Wrote(now time.Duration, out *rma.Gather, n int) error {
	s := g.s
	s.now = now
	if !g.writing || n < 0 || n > out.Size() {
		return fmt.Errorf("session: %d bytes reported of a plan of %d (open: %v)", n, out.Size(), g.writing)
	}
	s.stats.BytesOut += uint64(n)
	g.lane.BytesOut += uint64(n)
	for _, p := range out.Pins {
		if p.Padded && g.owners[p.Index].op != nil {
			g.owners[p.Index].op.padded = true
		}
	}
	done := g.settlePlan(out, n)
	g.writing = false
	g.unpinPlan()
	out.Reset()
	if done < len(g.plan) {
		g.returnPlan(g.plan[done:])
	}
	clear(g.plan)
	g.plan = g.plan[:0]
	if g.ackSoon > g.acked {
		if err := g.advance(g.ackSoon); err != nil {
			return err
		}
	}
	var err error
	if g.card != nil {
		err = g.closeWrite()
	}
	if g.fenced {
		s.quieten(g)
	}
	return err
}

// settlePlan numbers what has been begun and keeps the rest of the frame that was cut off; it gives the index of
// the first entry that was not begun.
func (g *Generation) settlePlan(out *rma.Gather, n int) int {
	at := 0
	for i := range g.plan {
		p := &g.plan[i]
		begun := at < n || p.rest || p.ctl
		if !begun {
			return i
		}
		end := at + p.size
		if p.frames > 0 && !p.rest {
			g.begin(p)
		}
		if end > n {
			g.keep(out, max(at, n), end)
			if p.frames > 0 {
				g.restOf, g.restLen = p.frames, end-max(at, n)
			}
		} else if p.frames > 0 {
			g.whole += uint64(p.frames)
			g.restOf, g.restLen = 0, 0
		}
		at = end
	}
	return len(g.plan)
}

// begin numbers a frame whose first byte has been written.
func (g *Generation) begin(p *planned) {
	g.sent += uint64(p.frames)
	switch p.kind {
	case wire.KindBatch:
		p.seg.base = g.sent - uint64(p.frames) + 1
		g.segs.pop()
	case wire.KindGetRequest, wire.KindNotify, wire.KindForget, wire.KindGetDone:
		g.counted.pop()
		if p.op != nil {
			p.op.begun = true
		}
	case wire.KindPlaced:
		p.op.begun = true
		g.card.post(g.s, &p.item)
		g.lane.BytesOut += uint64(p.item.n)
	default:
		p.op.begun = true
	}
	g.items.push(p.item)
}

// keep copies the bookkeeping of the plan's bytes from..to, which are still to be written. Scratch is reused by the next
// plan, so its bytes are copied.
func (g *Generation) keep(out *rma.Gather, from, to int) {
	at := 0
	for i, b := range out.Bufs {
		lo, hi := max(from, at), min(to, at+len(b))
		if lo < hi {
			part := b[lo-at : hi-at : hi-at]
			o := g.owners[i]
			if o.op == nil && o.region == nil {
				part = clone(part)
			}
			g.rest = append(g.rest, slice{b: part, owner: o})
		}
		at += len(b)
	}
}

// unpinPlan lets go of the operations that the plan named.
func (g *Generation) unpinPlan() {
	s := g.s
	owners := g.owners
	for i := range owners {
		if o := owners[i].op; o != nil {
			s.unpin(o)
		}
		owners[i] = owner{}
	}
	for i := range g.plan {
		if p := &g.plan[i]; p.op != nil {
			s.unpin(p.op)
		}
	}
}

// returnPlan gives back the chunks that were not begun; messages and small frames are still in their queues.
func (g *Generation) returnPlan(plan []planned) {
	for i := len(plan) - 1; i >= 0; i-- {
		p := &plan[i]
		if p.frames == 0 {
			continue
		}
		g.inFlight -= uint64(p.bytes)
		if p.bulk {
			g.bulk -= int(p.bytes)
		}
		if p.ofPut() {
			g.chunks--
		}
		if p.op == nil || p.seg != nil {
			continue
		}
		switch p.kind {
		case wire.KindChunk, wire.KindPlaced, wire.KindMessageChunk, wire.KindGetData:
			g.s.spent(p.op)
			p.op.giveBack(span{p.at, uint64(p.n)})
			if p.op.unsent() {
				g.s.offerAgain(g, p.op)
			}
		default: // small frames are still in their queue
		}
	}
}

// giveBack returns a part that was taken: it must be sent again, here or elsewhere.
func (o *Op) giveBack(p span) {
	if o.ended || o.canceling {
		return
	}
	if len(o.Data) == 0 {
		o.zeroSent = false
		return
	}
	o.returned = append(o.returned, p)
}

// offerAgain puts an operation whose chunk was not begun back into the queue that it came from, unless it is there still.
func (s *Session) offerAgain(g *Generation, o *Op) {
	for _, have := range o.on {
		if have == g {
			return
		}
	}
	if g.fenced {
		return
	}
	o.on = append(o.on, g)
	if len(o.Data) <= smallOp {
		g.small.push(o)
	} else {
		g.offers.push(o)
	}
}
