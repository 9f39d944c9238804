package replica

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"
)

// ErrCodec is wrapped by errors of Decode.
var ErrCodec = errors.New("that is no message of a member: bring all members to one version")

// coder visits the fields of a message, in both directions: writing, it appends them; reading, it sets them. Numbers are
// uvarints, lists begin with their length.
//
// Invariant: reading, no list is longer than what is left of the bytes.
type coder struct {
	bytes   []byte // what has been written, or what is left to be read
	reading bool
	failed  bool
}

func (c *coder) u64(v *uint64) {
	if !c.reading {
		c.bytes = binary.AppendUvarint(c.bytes, *v)
		return
	}
	x, n := binary.Uvarint(c.bytes)
	if n <= 0 {
		c.failed, c.bytes, *v = true, nil, 0
		return
	}
	*v, c.bytes = x, c.bytes[n:]
}

// number is u64 for the other types of numbers; what does not fit is no message.
func number[T ~int64 | ~uint32 | ~uint8](c *coder, v *T) {
	x := uint64(*v)
	c.u64(&x)
	if *v = T(x); uint64(*v) != x {
		c.failed = true
	}
}

func (c *coder) flag(v *bool) {
	var x uint64
	if *v {
		x = 1
	}
	if c.u64(&x); x > 1 {
		c.failed = true
	}
	*v = x == 1
}

// list visits the elements of a list.
func list[T any](c *coder, v *[]T, element func(*T)) {
	n := uint64(len(*v))
	c.u64(&n)
	if c.reading {
		if n > uint64(len(c.bytes)) {
			c.failed, n = true, 0
		}
		*v = nil
		if n > 0 {
			*v = make([]T, n)
		}
	}
	for i := range *v {
		element(&(*v)[i])
	}
}

func (c *coder) position(p *Position) {
	c.u64(&p.Epoch)
	c.u64(&p.Sequence)
}

func (c *coder) mark(f *FillMark) {
	c.u64(&f.Since)
	c.u64(&f.Below)
	c.u64(&f.At)
}

func (c *coder) history(h *History) {
	list(c, (*[]Era)(h), func(e *Era) {
		c.u64(&e.Epoch)
		c.u64(&e.First)
	})
}

func (c *coder) stream(epoch, stream *uint64) {
	c.u64(epoch)
	c.u64(stream)
}

func (m *Ask) fields(c *coder)     { c.u64(&m.Epoch) }
func (m *Refused) fields(c *coder) { c.u64(&m.Epoch) }
func (m *Open) fields(c *coder)    { c.stream(&m.Epoch, &m.Stream) }
func (m *Broken) fields(c *coder)  { c.stream(&m.Epoch, &m.Stream) }

func (m *Stand) fields(c *coder) {
	c.u64(&m.Epoch)
	c.flag(&m.Whole)
	c.flag(&m.Knows)
	c.position(&m.Last)
}

func (m *Welcome) fields(c *coder) {
	c.stream(&m.Epoch, &m.Stream)
	list(c, &m.Key, func(b *byte) { number(c, b) })
	number(c, &m.Size)
	c.flag(&m.Whole)
	c.position(&m.Last)
	c.history(&m.History)
	c.mark(&m.Fill)
}

func (m *Item) fields(c *coder) {
	c.stream(&m.Epoch, &m.Stream)
	c.u64(&m.Number)
	number(c, &m.Kind)
	number(c, &m.Staged)
	switch m.Kind {
	case RecordItem:
		h := &m.Record
		for _, v := range []*uint64{&h.Epoch, &h.Volume, &h.Sequence, &h.ID, &h.Offset, &h.Length} {
			c.u64(v)
		}
		c.flag(&h.Zero)
	case BeginItem:
		c.position(&m.At)
		c.position(&m.Floor)
		c.mark(&m.Plan)
		c.history(&m.History)
	case FillItem:
		c.u64(&m.Extent)
		c.position(&m.At)
	case MarkItem:
		c.mark(&m.Plan)
	case CheckItem:
		c.u64(&m.Extent)
		number(c, &m.Sum)
	case EndItem:
	default:
		c.failed = true
	}
}

func (m *Dirt) fields(c *coder) {
	c.stream(&m.Epoch, &m.Stream)
	list(c, &m.Extents, c.u64)
}

func (m *Ack) fields(c *coder) {
	c.stream(&m.Epoch, &m.Stream)
	c.u64(&m.Items)
	c.u64(&m.Appended)
	c.u64(&m.Durable)
	c.flag(&m.Whole)
}

func (m *Differs) fields(c *coder) {
	c.stream(&m.Epoch, &m.Stream)
	c.u64(&m.Extent)
}

func (m *Ping) fields(c *coder) { lease(c, &m.Epoch, &m.Sent) }
func (m *Pong) fields(c *coder) { lease(c, &m.Epoch, &m.Sent) }

func lease(c *coder, epoch *uint64, sent *time.Duration) {
	c.u64(epoch)
	number(c, sent)
}

// visit has the fields of a message visited, and gives its type's number. A message that is read is made of its number.
func visit(c *coder, kind byte, m Message) (byte, Message) {
	switch m := m.(type) {
	case Ask:
		m.fields(c)
		return 1, m
	case Stand:
		m.fields(c)
		return 2, m
	case Refused:
		m.fields(c)
		return 3, m
	case Open:
		m.fields(c)
		return 4, m
	case Welcome:
		m.fields(c)
		return 5, m
	case Item:
		m.fields(c)
		return 6, m
	case Dirt:
		m.fields(c)
		return 7, m
	case Ack:
		m.fields(c)
		return 8, m
	case Differs:
		m.fields(c)
		return 9, m
	case Broken:
		m.fields(c)
		return 10, m
	case Ping:
		m.fields(c)
		return 11, m
	case Pong:
		m.fields(c)
		return 12, m
	}
	if int(kind) >= len(kinds) || kinds[kind] == nil {
		c.failed = true
		return 0, nil
	}
	return visit(c, 0, kinds[kind])
}

// kinds are the messages by the numbers of their types.
var kinds = [...]Message{nil, Ask{}, Stand{}, Refused{}, Open{}, Welcome{}, Item{}, Dirt{}, Ack{}, Differs{}, Broken{}, Ping{}, Pong{}}

// Encode gives the bytes of a message.
func Encode(m Message) []byte {
	c := &coder{bytes: []byte{0}}
	c.bytes[0], _ = visit(c, 0, m)
	return c.bytes
}

// Decode reads a message. The error wraps ErrCodec.
func Decode(b []byte) (Message, error) {
	if len(b) == 0 {
		return nil, fmt.Errorf("%w: it is empty", ErrCodec)
	}
	c := &coder{bytes: b[1:], reading: true}
	_, m := visit(c, b[0], nil)
	if c.failed || len(c.bytes) > 0 {
		return nil, fmt.Errorf("%w: type %d, %d bytes", ErrCodec, b[0], len(b))
	}
	return m, nil
}
