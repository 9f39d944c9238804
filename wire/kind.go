package wire

import "strconv"

// Kind is the first byte of every frame.
type Kind uint8

// The kinds of frames. Their numbers are part of the protocol; 0 is none, so that a run of zeros is
// no frame.
const (
	KindBatch        Kind = 1
	KindChunk        Kind = 2
	KindMessageChunk Kind = 3
	KindGetRequest   Kind = 4
	KindGetData      Kind = 5
	KindGetDone      Kind = 6
	KindNotify       Kind = 7
	KindForget       Kind = 8
	KindPlaced       Kind = 9

	KindBeat    Kind = 16
	KindAck     Kind = 17
	KindCredit  Kind = 18
	KindRetired Kind = 19
	KindCancel  Kind = 20
	KindVerdict Kind = 21
	KindGoodbye Kind = 22
	KindMap     Kind = 23
	KindMapped  Kind = 24

	KindChallenge Kind = 32
	KindHello     Kind = 33
	KindAnswer    Kind = 34
	KindConfirm   Kind = 35

	kindEnd = KindConfirm + 1
)

// Flags of a frame's header.
const (
	// FlagNotify (Chunk, Placed): the target counts this operation's bytes, to notify at the total.
	FlagNotify uint8 = 1
	// FlagFinal (GetData): this frame itself is the verdict OK; its bytes were captured whole.
	FlagFinal uint8 = 1
	// FlagHaveYours (Retired): the sender has the receiver's final count.
	FlagHaveYours uint8 = 1
	// FlagRejected (Retired): the frame after the count was malformed and went down with the
	// generation.
	FlagRejected uint8 = 2
	// FlagDone (Retired): the sender has forgotten the generation or never had it; no answer is
	// wanted.
	FlagDone uint8 = 4

	retiredFlags = FlagHaveYours | FlagRejected | FlagDone
)

// Limits. A parser refuses what is above them before anything is allocated for it.
const (
	MaxBatchBody = 256 << 10 // bytes of the records of one batch
	MaxChunk     = 4 << 20   // bytes of payload in one Chunk, MessageChunk or GetData
	MaxInline    = 32 << 10  // bytes of a message's payload inside a batch or a notify
	MaxHeaders   = 8 << 10   // bytes of a message's headers
	MaxName      = 1024      // bytes of a name: an actor's id, a PID, a type
	MaxNotify    = MaxInline + 4<<10
	MaxForget    = 1024 // operations in one Forget
	MaxRefusals  = 1024 // refusals in one Ack, Retired or Fenced
	MaxMarks     = 256  // entries of one Cancel or Goodbye
	MaxHandshake = 64 << 10
	MaxDevices   = 256 // devices in one Hello or Answer
	MaxFenced    = 256 // fenced generations in one Hello, Answer or Confirm
	MaxSlot      = 1<<16 - 1
)

// layout is what ParseHeader checks for every kind.
type layout struct {
	name     string
	counted  bool
	flags    uint8  // those that are known
	min, max uint32 // bytes of the body
}

// The indices are given, so a gap is an unknown kind: it has no name.
var layouts = [kindEnd]layout{
	KindBatch:        {name: "Batch", counted: true, min: 1, max: MaxBatchBody},
	KindChunk:        {name: "Chunk", counted: true, flags: FlagNotify, max: MaxChunk},
	KindMessageChunk: {name: "MessageChunk", counted: true, min: 1, max: MaxChunk},
	KindGetRequest:   {name: "GetRequest", counted: true},
	KindGetData:      {name: "GetData", counted: true, flags: FlagFinal, max: MaxChunk},
	KindGetDone:      {name: "GetDone", counted: true},
	KindNotify:       {name: "Notify", counted: true, min: minMessage, max: MaxNotify},
	KindForget:       {name: "Forget", counted: true, min: 8, max: 8 * MaxForget},
	KindPlaced:       {name: "Placed", counted: true, flags: FlagNotify},
	KindBeat:         {name: "Beat"},
	KindAck:          {name: "Ack", max: RefusalSize * MaxRefusals},
	KindCredit:       {name: "Credit"},
	KindRetired:      {name: "Retired", flags: retiredFlags, max: RefusalSize * MaxRefusals},
	KindCancel:       {name: "Cancel", max: markSize * MaxMarks},
	KindVerdict:      {name: "Verdict"},
	KindGoodbye:      {name: "Goodbye", max: markSize * MaxMarks},
	KindMap:          {name: "Map"},
	KindMapped:       {name: "Mapped"},
	KindChallenge:    {name: "Challenge", max: MaxHandshake},
	KindHello:        {name: "Hello", max: MaxHandshake},
	KindAnswer:       {name: "Answer", max: MaxHandshake},
	KindConfirm:      {name: "Confirm", max: MaxHandshake},
}

// Known tells whether k is a kind of this version.
func (k Kind) Known() bool { return k < kindEnd && layouts[k].name != "" }

// Counted tells whether frames of this kind are numbered and covered by acks. A Batch counts as its
// number of messages and placeholders, every other counted frame as 1.
func (k Kind) Counted() bool { return k < kindEnd && layouts[k].counted }

// Handshake tells whether the body is a message of control.proto.
func (k Kind) Handshake() bool { return k >= KindChallenge && k <= KindConfirm }

// String gives the kind's name.
func (k Kind) String() string {
	if k.Known() {
		return layouts[k].name
	}
	return "Kind(" + strconv.Itoa(int(k)) + ")"
}
