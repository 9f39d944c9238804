package replica

import "time"

// Message is what one member says to another: one of the types below. Each may be lost together with the connection, and
// none does harm when it comes late.
type Message interface{ message() }

// Ask is a new primary's question, and the demand to promise its epoch.
type Ask struct{ Epoch uint64 }

// Stand answers Ask: the epoch is promised, and this is where its sender stands. Last is the end of its log where its image is whole;
// else the least that the log of a primary must have, if it Knows.
type Stand struct {
	Epoch        uint64
	Whole, Knows bool
	Last         Position
}

// Refused says that the sender has promised a later epoch.
type Refused struct{ Epoch uint64 }

// Open asks for a stream, with staging memory of its own. Streams of an epoch are numbered upwards.
type Open struct{ Epoch, Stream uint64 }

// Welcome answers Open. From here on nothing of an earlier stream lands.
type Welcome struct {
	Epoch, Stream uint64
	Key           []byte // of the staging memory
	Size          int64  // of it, in bytes
	Whole         bool
	Last          Position
	History       History
	Fill          FillMark
}

// Kind is what an Item holds.
type Kind uint8

// The kinds of items.
const (
	RecordItem Kind = iota + 1 // a record; its data, where it has any, are in the staging memory
	BeginItem                  // what follows fills the image: it is not whole until EndItem
	FillItem                   // the content of an extent, in the staging memory
	MarkItem                   // so far has the filling come
	EndItem                    // the image is whole
	CheckItem                  // the checksum of an extent, to compare
)

// Item is one step of a stream. Those with data arrive as the notification of their put. They are taken in the order of their numbers.
type Item struct {
	Epoch, Stream, Number uint64
	Kind                  Kind
	Record                Header   // RecordItem
	Staged                int64    // where its data begin in the staging memory
	Extent                uint64   // FillItem, CheckItem
	Sum                   uint32   // CheckItem: crc32c
	At                    Position // FillItem: the newest record in the content; BeginItem, MarkItem: the newest before
	Plan                  FillMark // BeginItem, MarkItem
	Floor                 Position // BeginItem: all that was ever acknowledged with the receiver's help is before or at it
	History               History  // BeginItem
}

// FillMark tells what of an image that is being filled is good: extents below Below as of record At, the others as of
// record Since, but for those that are dirty in the sender's index.
type FillMark struct{ Since, Below, At uint64 }

// Stale tells whether an extent that last changed in a record has to be copied.
func (f FillMark) Stale(extent, record uint64) bool {
	if extent < f.Below {
		return record > f.At
	}
	return record > f.Since
}

// Dirt answers a BeginItem: these extents have changed here, whatever the primary knows of it.
type Dirt struct {
	Epoch, Stream uint64
	Extents       []uint64
}

// Ack says how far a member is in a stream. All values only rise.
type Ack struct {
	Epoch, Stream     uint64
	Items             uint64 // taken: their staging memory is not read any more
	Appended, Durable uint64 // records, in memory and on the disk
	Whole             bool   // on the disk too
}

// Differs answers a CheckItem whose checksum is another here.
type Differs struct{ Epoch, Stream, Extent uint64 }

// Broken says that the stream makes no sense to its receiver; open another one.
type Broken struct{ Epoch, Stream uint64 }

// Ping asks for a lease, counted from Sent on the asker's clock.
type Ping struct {
	Epoch uint64
	Sent  time.Duration
}

// Pong grants it.
type Pong struct {
	Epoch uint64
	Sent  time.Duration
}

func (Ask) message()     {}
func (Stand) message()   {}
func (Refused) message() {}
func (Open) message()    {}
func (Welcome) message() {}
func (Item) message()    {}
func (Dirt) message()    {}
func (Ack) message()     {}
func (Differs) message() {}
func (Broken) message()  {}
func (Ping) message()    {}
func (Pong) message()    {}
