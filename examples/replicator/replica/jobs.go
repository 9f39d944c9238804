package replica

import (
	"hash/crc32"
	"slices"
	"time"
)

// fillEvery: where records never end, one extent is copied after so many of them.
const fillEvery = 16

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Checksum is the one of Item.Sum.
func Checksum(extent []byte) uint32 { return crc32.Checksum(extent, castagnoli) }

// job is an extent to be copied to a member, or to be compared.
type job struct {
	extent uint64
	check  bool
}

// filler copies extents to a member, in between the records of its stream.
//
// Invariant: a copy has exactly the records up to upTo in it, and stands in the stream behind these and before all others that
// touch its extent.
type filler struct {
	plan         FillMark
	filling      bool // from BeginItem to the acknowledgement of EndItem
	planned      [2]bool
	jobs         []job // what is left, by extent
	total        int   // of a filling
	reading      bool  // extent is being read: no write touches it
	extent       uint64
	check        bool
	content      []byte // read, and not sent yet
	upTo         uint64
	ended        uint64 // number of EndItem
	filledMarks  int
	nextFill     time.Duration
	waitingSince time.Duration
}

// waits: that nothing moves is not the member's doing.
func (x *peer) waits() bool {
	return x.stage == planning || x.filling && x.taken == x.items && x.ended == 0 && x.cursor > x.p.m.last.Sequence
}

// begin tells a member that it is going to be filled.
func (x *peer) begin() {
	m := x.p.m
	x.stage, x.filling, x.whole = running, true, false
	x.cursor = m.last.Sequence + 1
	x.moved = m.now
	x.put(Item{Kind: BeginItem, At: m.last, Floor: x.p.floor(), Plan: x.plan, History: slices.Clone(m.state.History)}, nil)
	m.emit(ReportDirt{x.id(), x.plan})
}

// dirt has the extents that have changed here, or there; the union of both is to be copied.
func (x *peer) dirt(extents []uint64, here bool) {
	side := 0
	if here {
		side = 1
	}
	if !x.filling || x.planned[side] || x.ended > 0 {
		return
	}
	x.planned[side] = true
	last := x.p.m.set.Size / x.p.m.set.Extent
	for _, e := range extents {
		if e < last {
			x.jobs = append(x.jobs, job{extent: e})
		}
	}
	if !x.planned[0] || !x.planned[1] {
		return
	}
	slices.SortFunc(x.jobs, func(a, b job) int { return int(a.extent) - int(b.extent) })
	x.jobs = slices.Compact(x.jobs)
	x.total = len(x.jobs)
	x.moved = x.p.m.now
	x.pump()
}

// verify compares the whole image, if the member is in step.
func (x *peer) verify() {
	if x.stage != running || x.filling || len(x.jobs) > 0 {
		return
	}
	for e := range x.p.m.set.Size / x.p.m.set.Extent {
		x.jobs = append(x.jobs, job{e, true})
	}
	x.pump()
}

// repair copies an extent that was found to differ.
func (x *peer) repair(extent uint64) {
	if x.stage == running && extent < x.p.m.set.Size/x.p.m.set.Extent {
		x.jobs = slices.Insert(x.jobs, 0, job{extent: extent})
		x.pump()
	}
}

// nextJob begins with the next extent, or ends the filling; false: nothing to do now.
func (x *peer) nextJob() bool {
	m := x.p.m
	if x.reading || x.content != nil || x.filling && (!x.planned[0] || !x.planned[1]) || m.now < x.nextFill {
		return false
	}
	if len(x.jobs) == 0 {
		if x.filling && x.ended == 0 && x.put(Item{Kind: EndItem}, nil) {
			x.ended = x.items
			return true
		}
		return false
	}
	x.extent, x.check = x.jobs[0].extent, x.jobs[0].check
	x.jobs = x.jobs[1:]
	x.reading, x.upTo = true, m.last.Sequence
	m.emit(ReadExtent{x.id(), x.extent})
	return false
}

func (x *peer) extentRead(r ExtentRead) {
	if !x.reading || r.Extent != x.extent {
		return
	}
	x.reading, x.content = false, r.Data
	x.pump()
	x.p.drain()
}

// copyDue: the stream has come to where the copy belongs.
func (x *peer) copyDue() bool { return x.content != nil && x.cursor > x.upTo }

func (x *peer) sendCopy() bool {
	m := x.p.m
	if x.check {
		x.put(Item{Kind: CheckItem, Extent: x.extent, Sum: Checksum(x.content)}, nil)
		x.content = nil
		return true
	}
	if !x.put(Item{Kind: FillItem, Extent: x.extent, At: Position{x.p.epoch, x.upTo}}, x.content) {
		return false
	}
	x.content = nil
	if rate := m.set.FillRate; rate > 0 {
		x.nextFill = max(m.now, x.nextFill) + time.Duration(float64(m.set.Extent)/float64(rate)*float64(time.Second))
	}
	if x.filledMarks++; x.filling && x.filledMarks%m.set.MarkEvery == 0 {
		x.plan.Below, x.plan.At = x.extent+1, x.cursor-1
		x.put(Item{Kind: MarkItem, Plan: x.plan}, nil)
	}
	return true
}
