package replica

// Effect is what a Member wants to be done: one of the types below. They are carried out in their order.
//
// Those with a Ticket are for the store. Carried and Synced answer them, both for all tickets up to
// a number: done, so that reads see them, and on the disk.
type Effect interface{ effect() }

// Send has a message for a member.
type Send struct {
	To      Name
	Message Message
}

// Put writes Data at Item.Staged into the staging memory of a stream, with Item as its notification. PutDone answers.
// Data stay as they are for good.
type Put struct {
	To   Name
	Key  []byte // of the staging memory, from Welcome
	Item Item
	Data []byte
}

// Cancel takes back all puts of a stream. Nothing waits for it.
type Cancel struct{ Stream Stream }

// Stream names a stream by the member at its other end.
type Stream struct {
	Peer          Name
	Epoch, Number uint64
}

// Register makes staging memory for a stream. Registered answers.
type Register struct {
	Stream Stream
	Size   int64 // bytes
}

// Revoke takes it back: nothing lands in it from then on. What was put into it before can still be read by effects that came before.
type Revoke struct{ Stream Stream }

// Header says what a record is.
type Header struct {
	Epoch, Volume, Sequence, ID uint64
	Zero                        bool   // the range is zero from here on; the record has no data
	Offset                      uint64 // bytes, as Length; 0 and 0: the record only begins an epoch
	Length                      uint64
}

// Data is the length of the data that come with the record.
func (h Header) Data() uint64 {
	if h.Zero {
		return 0
	}
	return h.Length
}

func (h Header) overlaps(offset, length uint64) bool {
	return h.Offset < offset+length && offset < h.Offset+h.Length
}

// Record is a header and its data.
type Record struct {
	Header Header
	Data   []byte
}

// Append puts a record at the end of the log. Its data are Record.Data, or, where From is set, in that stream's staging
// memory from Staged on.
type Append struct {
	Ticket uint64
	Record Record
	From   Stream
	Staged int64
}

// Fill writes an extent of the image from a stream's staging memory; its dirt is as of record At.
type Fill struct {
	Ticket uint64
	Extent uint64
	At     uint64
	From   Stream
	Staged int64
}

// Save makes the state durable, and with it everything that came before. Where State.Base has changed, the log goes on behind it.
type Save struct {
	Ticket uint64
	State  State
}

// Check compares an extent's crc32c after all that came before. Checked answers, where it differs.
type Check struct {
	Ticket uint64
	Extent uint64
	Sum    uint32
	Stream Stream
}

// ReportDirt asks which extents are stale by a mark, after all that came before. Dirtied answers.
type ReportDirt struct {
	Stream Stream
	Mark   FillMark
}

// Load asks for a record of the log. Loaded answers.
type Load struct {
	Stream   Stream
	Sequence uint64
}

// ReadExtent asks for an extent's content after all that came before. ExtentRead answers.
type ReadExtent struct {
	Stream Stream
	Extent uint64
}

// ReadImage asks for what a client wants to read, at any time from now on; the shell keeps it. ReadDone answers.
type ReadImage struct{ Op, Offset, Length uint64 }

// Answer ends a client's operation. Err is nil, ErrNotPrimary, ErrDeposed, ErrCanceled or ErrRange.
type Answer struct {
	Op  uint64
	Err error
}

// Propose has a command for the consensus. It is proposed again until the roster has changed.
type Propose struct{ Command Command }

func (Send) effect()       {}
func (Put) effect()        {}
func (Cancel) effect()     {}
func (Register) effect()   {}
func (Revoke) effect()     {}
func (Append) effect()     {}
func (Fill) effect()       {}
func (Save) effect()       {}
func (Check) effect()      {}
func (ReportDirt) effect() {}
func (Load) effect()       {}
func (ReadExtent) effect() {}
func (ReadImage) effect()  {}
func (Answer) effect()     {}
func (Propose) effect()    {}
