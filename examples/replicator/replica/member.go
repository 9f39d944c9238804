package replica

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// Extent is the piece in which images are compared and filled, in bytes.
const Extent = 64 << 10

// Level says when a write is acknowledged.
type Level uint8

// The levels. LevelC is the default of programs.
const (
	LevelA Level = iota + 1 // on the primary's disk
	LevelB                  // in the memory of a quorum
	LevelC                  // on the disks of a quorum
)

// Settings of a member. All members of a volume have the same, but for Self.
type Settings struct {
	Self      Name
	Volume    uint64
	Size      uint64 // of the image, in bytes
	Extent    uint64 // in bytes; 0: Extent
	Level     Level
	Staging   int64         // bytes of staging memory a stream: two extents, and two of the largest writes, at least
	Window    int           // bytes of newest records kept in memory for members that are behind
	Pending   int           // bytes of writes that are not acknowledged; more wait their turn
	Lease     time.Duration // how long a primary may read without asking; a new one waits as long
	Beat      time.Duration // between Ticks; leases are asked for as often
	Retry     time.Duration // until a question is asked again
	Stall     time.Duration // without progress, until a stream is opened anew, and its member dropped if others suffice
	FillRate  uint64        // bytes a second for filling a member; 0: no limit
	MarkEvery int           // extents filled between two marks from which a filling goes on after a break; 0: 64
}

// Why an operation ends without success; compare with errors.Is.
var (
	// ErrNotPrimary: the operation has not begun.
	ErrNotPrimary = errors.New("this member is not the primary: ask the one that is")
	// ErrDeposed: the operation may have been carried out, or may be yet, before any later one.
	ErrDeposed = errors.New("this member is not the primary any more, and nobody knows what became of the operation: " +
		"repeat it at the new one")
	// ErrCanceled: it never began.
	ErrCanceled = errors.New("the operation was withdrawn before it began")
	// ErrRange: it does not fit.
	ErrRange = errors.New("the operation is beyond the end of the volume, or larger than the staging memory allows: make it smaller")
	// ErrSettings is wrapped by errors of New.
	ErrSettings = errors.New("replication settings refused")
)

// State is what of a member outlives it, beside its log and its image.
type State struct {
	Promised uint64   // no older epoch is listened to
	Whole    bool     // the image is that of its log's end; else it is being filled
	Base     Position // the log begins behind this record
	History  History
	Fill     FillMark // meant where not Whole, as are the next two
	Filled   bool     // a filling has begun; else the disk is new, and nobody knows what this member once had
	Floor    Position // all that was ever acknowledged with this member's help is before or at it, if Filled
}

// mark is a ticket and what it stands for.
type mark struct{ ticket, value uint64 }

// held is a message that waits until a ticket is on the disk.
type held struct {
	ticket  uint64
	to      Name
	message Message
}

// Member is one copy of a volume: always a replica, and the primary where the roster says so.
type Member struct {
	set    Settings
	now    time.Duration
	roster Roster
	state  State    // as it was last saved. Invariant: what follows from it waits for Synced
	last   Position // of the log, once all effects are carried out

	tickets           uint64
	synced            uint64
	appending         []mark // records that are not carried out
	syncing           []mark // records that are not on the disk
	appended, durable uint64 // the newest records that are
	wholeAt           uint64 // ticket of the Save that made the image whole
	held              []held

	up     []Name        // who can be spoken to
	leased time.Duration // no promise before: an older primary may count on it
	in     *inflow
	out    *primary // nil: not primary, nor about to be
	asked  time.Duration

	effects []Effect
}

// New makes a member that starts at now with what its store has: its state, and the position of the last record of its log
// (State.Base where the log is empty). The error wraps ErrSettings.
func New(set Settings, state State, last Position, now time.Duration) (*Member, error) {
	if set.Extent == 0 {
		set.Extent = Extent
	}
	if set.MarkEvery == 0 {
		set.MarkEvery = 64
	}
	switch {
	case set.Self == "":
		return nil, fmt.Errorf("%w: Self is empty", ErrSettings)
	case set.Size == 0 || set.Size%set.Extent != 0:
		return nil, fmt.Errorf("%w: Size %d is no multiple of %d", ErrSettings, set.Size, set.Extent)
	case set.Level < LevelA || set.Level > LevelC:
		return nil, fmt.Errorf("%w: Level %d", ErrSettings, set.Level)
	case set.Staging < 2*int64(set.Extent):
		return nil, fmt.Errorf("%w: Staging %d is less than two extents", ErrSettings, set.Staging)
	case set.Lease <= 0 || set.Beat <= 0 || set.Retry <= 0 || set.Stall <= 0:
		return nil, fmt.Errorf("%w: Lease, Beat, Retry and Stall must be above 0", ErrSettings)
	case last.Before(state.Base):
		return nil, fmt.Errorf("%w: the log ends at %v, before its base %v", ErrSettings, last, state.Base)
	}
	state.History = state.History.until(last.Sequence)
	return &Member{set: set, now: now, state: state, last: last, appended: last.Sequence, durable: last.Sequence,
		leased: now + set.Lease, asked: now}, nil
}

// Step takes an input at now, which never goes back, and gives the effects, to be carried out in their order.
func (m *Member) Step(now time.Duration, in Input) []Effect {
	m.now = max(m.now, now)
	switch in := in.(type) {
	case Tick:
		m.tick()
	case Agreed:
		m.agreed(in.Roster)
	case Delivered:
		m.deliver(in.From, in.Message)
	case Carried:
		m.carried(in.Ticket)
	case Synced:
		m.onDisk(in.Ticket)
	case Registered:
		m.registered(in)
	case Dirtied:
		m.dirtied(in)
	case Checked:
		m.checked(in)
	case Up:
		m.reach(in.Peer, true)
	case Down:
		m.reach(in.Peer, false)
	default:
		m.toPrimary(in)
	}
	list := m.effects
	m.effects = nil
	return list
}

func (m *Member) emit(e Effect) { m.effects = append(m.effects, e) }

func (m *Member) send(to Name, message Message) { m.emit(Send{to, message}) }

func (m *Member) ticket() uint64 {
	m.tickets++
	return m.tickets
}

// save makes the state durable.
func (m *Member) save() uint64 {
	t := m.ticket()
	m.emit(Save{t, m.state})
	return t
}

// whole tells whether the image is, on the disk too.
func (m *Member) whole() bool { return m.state.Whole && m.synced >= m.wholeAt }

// append puts a record at the end of the log, and the epoch that it begins into the state before.
func (m *Member) append(a Append) {
	h := a.Record.Header
	if next, added := m.state.History.with(h.Epoch, h.Sequence); added {
		m.state.History = next
		m.save()
	}
	a.Ticket = m.ticket()
	m.last = Position{h.Epoch, h.Sequence}
	m.appending = append(m.appending, mark{a.Ticket, h.Sequence})
	m.syncing = append(m.syncing, mark{a.Ticket, h.Sequence})
	m.emit(a)
}

// passed takes the marks up to a ticket off a list, and gives the value of the last of them, or old.
func passed(list *[]mark, ticket, old uint64) uint64 {
	for len(*list) > 0 && (*list)[0].ticket <= ticket {
		old = (*list)[0].value
		*list = (*list)[1:]
	}
	return old
}

func (m *Member) carried(ticket uint64) {
	m.appended = passed(&m.appending, ticket, m.appended)
	if m.in != nil {
		m.in.taken = passed(&m.in.taking, ticket, m.in.taken)
	}
	m.advanced()
}

func (m *Member) onDisk(ticket uint64) {
	m.synced = max(m.synced, ticket)
	m.durable = passed(&m.syncing, ticket, m.durable)
	for len(m.held) > 0 && m.held[0].ticket <= m.synced {
		m.send(m.held[0].to, m.held[0].message)
		m.held = m.held[1:]
	}
	m.advanced()
}

func (m *Member) advanced() {
	m.acknowledge()
	if m.out != nil {
		m.out.consider()
		m.out.advance()
	}
}

func (m *Member) tick() {
	m.stand()
	if m.out != nil {
		m.out.tick()
	}
}

func (m *Member) agreed(r Roster) {
	if !r.Newer(&m.roster) && len(m.roster.Members) > 0 {
		return
	}
	m.roster = r
	if m.out != nil && r.Epoch > m.out.epoch {
		m.stepDown()
	}
	m.stand()
	if m.out != nil {
		m.out.rosterChanged()
	}
}

func (m *Member) deliver(from Name, message Message) {
	switch msg := message.(type) {
	case Ask:
		m.askedBy(from, msg)
	case Open:
		m.opened(from, msg)
	case Item:
		m.item(from, msg)
	case Ping:
		m.pinged(from, msg)
	case Refused:
		if m.out != nil && msg.Epoch > m.out.epoch {
			m.stepDown()
		}
	case Stand, Welcome, Dirt, Ack, Differs, Broken, Pong:
		if m.out != nil {
			m.out.told(from, message)
		}
	}
}

func (m *Member) reach(n Name, up bool) {
	m.up = slices.DeleteFunc(m.up, func(o Name) bool { return o == n })
	if up {
		m.up = append(m.up, n)
	}
	if m.out != nil {
		m.out.upDown(n)
	}
}

// toPrimary has what only a primary can do something with.
func (m *Member) toPrimary(in Input) {
	if m.out != nil {
		m.out.step(in)
		return
	}
	switch in := in.(type) {
	case Write:
		m.emit(Answer{in.Op, ErrNotPrimary})
	case Read:
		m.emit(Answer{in.Op, ErrNotPrimary})
	case Flush:
		m.emit(Answer{in.Op, ErrNotPrimary})
	}
}

// Status is how things stand at a member.
type Status struct {
	Epoch   uint64
	Primary Name // as far as this member knows
	Leads   bool // it is the primary, or about to be
	Open    bool // and answers clients
	Whole   bool // the image is that of Last
	Last    Position
	Commit  uint64 // acknowledged at the level, at a primary
	Differs uint64 // extents that a verification found to differ, at a primary
	Peers   []PeerStatus
}

// PeerStatus is how a primary sees a member.
type PeerStatus struct {
	Name         Name
	InSync       bool // and counted on
	Running      bool // a stream is open
	Filling      bool
	Left, Total  int    // extents that are still to be copied or compared, of how many
	Behind       uint64 // records that are not on its disk
	BytesBehind  int    // of those that are in memory
	LeaseGranted time.Duration
}

// Status tells how things stand.
func (m *Member) Status() Status {
	s := Status{Epoch: m.roster.Epoch, Primary: m.roster.Primary, Whole: m.whole(), Last: m.last}
	if m.out == nil {
		return s
	}
	p := m.out
	s.Leads, s.Open, s.Commit, s.Differs = true, p.phase == open, p.commit, p.differs
	for _, x := range p.peers {
		bytes := 0
		for _, rec := range p.after(x.durable) {
			bytes += len(rec.Data)
		}
		s.Peers = append(s.Peers, PeerStatus{Name: x.name, InSync: x.inSync(), Running: x.stage == running, Filling: x.filling,
			Left: len(x.jobs), Total: x.total, BytesBehind: bytes, LeaseGranted: x.grant,
			Behind: m.last.Sequence - min(x.durable, m.last.Sequence)})
	}
	return s
}
