package replica

import "slices"

// maxAhead bounds the items that wait for one before them: a put may overtake another on a faster rail.
const maxAhead = 1024

// inflow is the stream that comes in. Owner: the Member.
type inflow struct {
	id      Stream
	key     []byte // nil: not registered yet
	next    uint64 // number of the item that is due
	early   map[uint64]Item
	taking  []mark // items whose staging memory is still read
	taken   uint64
	acked   Ack  // as last sent
	unasked bool // it has to be acknowledged whether or not anything has changed
}

// promise takes the member over into a later epoch: from here on nothing of an older one lands.
func (m *Member) promise(epoch uint64) uint64 {
	m.stepDown()
	m.closeIn()
	m.state.Promised = epoch
	return m.save()
}

func (m *Member) closeIn() {
	if m.in != nil {
		m.emit(Revoke{m.in.id})
		m.in = nil
	}
}

// askedBy promises a new primary's epoch, unless an older primary may still count on its lease: then it will be asked again.
func (m *Member) askedBy(from Name, ask Ask) {
	switch {
	case ask.Epoch < m.state.Promised:
		m.send(from, Refused{m.state.Promised})
		return
	case ask.Epoch > m.state.Promised:
		if m.out != nil {
			m.stepDown() // there is a newer one, whatever becomes of it
		}
		if m.now < m.leased {
			return
		}
		m.promise(ask.Epoch)
	}
	m.held = append(m.held, held{m.tickets, from, m.standing(ask.Epoch)})
	m.onDisk(m.synced)
}

func (m *Member) pinged(from Name, ping Ping) {
	switch {
	case ping.Epoch < m.state.Promised:
		m.send(from, Refused{m.state.Promised})
	case ping.Epoch == m.state.Promised:
		m.leased = m.now + m.set.Lease
		m.send(from, Pong(ping))
	}
}

// opened begins a stream: new memory, and none of an earlier stream's puts lands any more.
func (m *Member) opened(from Name, open Open) {
	if open.Epoch < m.state.Promised {
		m.send(from, Refused{m.state.Promised})
	}
	if open.Epoch != m.state.Promised || m.out != nil {
		return
	}
	if m.in != nil && open.Stream <= m.in.id.Number {
		if open.Stream == m.in.id.Number && m.in.key != nil && m.in.next == 1 {
			m.welcome()
		}
		return
	}
	m.closeIn()
	m.in = &inflow{id: Stream{from, open.Epoch, open.Stream}, next: 1, early: make(map[uint64]Item)}
	m.emit(Register{m.in.id, m.set.Staging})
}

func (m *Member) registered(r Registered) {
	if m.in != nil && m.in.id == r.Stream {
		m.in.key = r.Key
		m.welcome()
	}
}

func (m *Member) welcome() {
	in := m.in
	m.send(in.id.Peer, Welcome{Epoch: in.id.Epoch, Stream: in.id.Number, Key: in.key, Size: m.set.Staging,
		Whole: m.whole(), Last: m.last, History: slices.Clone(m.state.History), Fill: m.state.Fill})
	in.unasked = true
	m.acknowledge()
}

// item takes one that has come, and all that waited for it.
func (m *Member) item(from Name, item Item) {
	in := m.in
	if item.Epoch < m.state.Promised {
		m.send(from, Refused{m.state.Promised})
		return
	}
	if in == nil || in.id != (Stream{from, item.Epoch, item.Stream}) || item.Number < in.next || in.early == nil {
		return
	}
	if item.Number >= in.next+maxAhead {
		m.breakOff()
		return
	}
	in.early[item.Number] = item
	for {
		due, ok := in.early[in.next]
		if !ok {
			break
		}
		delete(in.early, in.next)
		in.next++
		if !m.take(due) {
			m.breakOff()
			return
		}
	}
	m.acknowledge()
}

// breakOff gives up a stream that makes no sense. Its memory stays until the next one is opened: puts may be under way.
func (m *Member) breakOff() {
	m.in.early = nil
	m.send(m.in.id.Peer, Broken{m.in.id.Epoch, m.in.id.Number})
}

// take carries one item out. It reports whether the item can be right.
func (m *Member) take(item Item) bool {
	switch item.Kind {
	case RecordItem:
		return m.takeRecord(item)
	case BeginItem:
		m.begin(item)
	case FillItem:
		if item.Extent >= m.set.Size/m.set.Extent || item.Staged < 0 || item.Staged+int64(m.set.Extent) > m.set.Staging {
			return false
		}
		t := m.ticket()
		m.in.taking = append(m.in.taking, mark{t, item.Number})
		m.emit(Fill{t, item.Extent, item.At.Sequence, m.in.id, item.Staged})
		return true
	case MarkItem:
		m.state.Fill = item.Plan
		m.save()
	case EndItem:
		m.state.Whole = true
		m.wholeAt = m.save()
	case CheckItem:
		if item.Extent >= m.set.Size/m.set.Extent {
			return false
		}
		t := m.ticket()
		m.emit(Check{t, item.Extent, item.Sum, m.in.id})
	default:
		return false
	}
	m.in.taking = append(m.in.taking, mark{m.tickets, item.Number})
	return true
}

func (m *Member) takeRecord(item Item) bool {
	h := item.Record
	if h.Sequence != m.last.Sequence+1 || h.Epoch < m.last.Epoch || h.Epoch > item.Epoch || h.Volume != m.set.Volume ||
		h.Offset > m.set.Size || h.Length > m.set.Size-h.Offset ||
		item.Staged < 0 || h.Data() > uint64(m.set.Staging) || item.Staged > m.set.Staging-int64(h.Data()) {
		return false
	}
	m.append(Append{Record: Record{Header: h}, From: m.in.id, Staged: item.Staged})
	m.in.taking = append(m.in.taking, mark{m.tickets, item.Number})
	return true
}

// begin: the image is being filled from here on, and the log goes on where the primary's is.
func (m *Member) begin(item Item) {
	m.state.Whole, m.state.Fill, m.state.Filled, m.state.Floor = false, item.Plan, true, item.Floor
	m.state.Base, m.state.History = item.At, slices.Clone(item.History)
	m.last, m.appending, m.syncing = item.At, nil, nil
	m.appended, m.durable = 0, 0
	m.save()
	m.appending = append(m.appending, mark{m.tickets, item.At.Sequence})
	m.syncing = append(m.syncing, mark{m.tickets, item.At.Sequence})
	m.emit(ReportDirt{m.in.id, item.Plan})
}

// dirtied has a report for whoever asked: the stream that comes in, or one that goes out.
func (m *Member) dirtied(d Dirtied) {
	switch {
	case m.out != nil:
		m.out.step(d)
	case m.in != nil && m.in.id == d.Stream:
		m.send(d.Stream.Peer, Dirt{d.Stream.Epoch, d.Stream.Number, d.Extents})
	}
}

func (m *Member) checked(c Checked) {
	if m.in != nil && m.in.id == c.Stream {
		m.send(c.Stream.Peer, Differs{c.Stream.Epoch, c.Stream.Number, c.Extent})
	}
}

// acknowledge tells the primary how far the stream is, where that has changed.
func (m *Member) acknowledge() {
	in := m.in
	if in == nil || in.key == nil {
		return
	}
	ack := Ack{in.id.Epoch, in.id.Number, in.taken, m.appended, m.durable, m.whole()}
	if ack == in.acked && !in.unasked {
		return
	}
	in.acked, in.unasked = ack, false
	m.send(in.id.Peer, ack)
}
