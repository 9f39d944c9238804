package replica

// Input is what happens to a Member: one of the types below.
type Input interface{ input() }

// Tick says that time has passed. One is due every Settings.Beat.
type Tick struct{}

// Agreed has the roster that the consensus has.
type Agreed struct{ Roster Roster }

// Delivered has a message of a member.
type Delivered struct {
	From    Name
	Message Message
}

// Up says that a member can be spoken to. After a Down, what was said before is lost or not.
type Up struct{ Peer Name }

// Down says that it cannot.
type Down struct{ Peer Name }

// Carried says that the store has done all up to this ticket.
type Carried struct{ Ticket uint64 }

// Synced says that all up to this ticket is on the disk.
type Synced struct{ Ticket uint64 }

// Registered answers Register.
type Registered struct {
	Stream Stream
	Key    []byte
}

// PutDone answers Put. Well: everything is there, and nothing more of it will land. In every other case nobody may know.
type PutDone struct {
	Stream Stream
	Item   uint64
	Well   bool
}

// Dirtied answers ReportDirt; extents in any order, some perhaps for no reason.
type Dirtied struct {
	Stream  Stream
	Extents []uint64
}

// Loaded answers Load; not Found: the log does not have it any more.
type Loaded struct {
	Stream Stream
	Record Record
	Found  bool
}

// ExtentRead answers ReadExtent. Data stay as they are.
type ExtentRead struct {
	Stream Stream
	Extent uint64
	Data   []byte
}

// Checked answers Check: the extent differs.
type Checked struct {
	Stream Stream
	Extent uint64
}

// Write is a client's write, or, with Zero, one of zeroes. Op is new, above 0. Durable: on disks, whatever the level (FUA).
// Data stay as they are.
type Write struct {
	Op             uint64
	Offset, Length uint64
	Zero, Durable  bool
	Data           []byte
}

// Read is a client's read.
type Read struct{ Op, Offset, Length uint64 }

// ReadDone answers ReadImage.
type ReadDone struct{ Op uint64 }

// Flush is answered when everything that was sent before is on disks, as many as the level says.
type Flush struct{ Op uint64 }

// Withdraw says that nobody waits for these operations any more. Those that have not begun never will.
type Withdraw struct{ Ops []uint64 }

// Verify compares the checksums of all extents with those of each member that is in step.
type Verify struct{}

func (Tick) input()       {}
func (Agreed) input()     {}
func (Delivered) input()  {}
func (Up) input()         {}
func (Down) input()       {}
func (Carried) input()    {}
func (Synced) input()     {}
func (Registered) input() {}
func (PutDone) input()    {}
func (Dirtied) input()    {}
func (Loaded) input()     {}
func (ExtentRead) input() {}
func (Checked) input()    {}
func (Write) input()      {}
func (Read) input()       {}
func (ReadDone) input()   {}
func (Flush) input()      {}
func (Withdraw) input()   {}
func (Verify) input()     {}
