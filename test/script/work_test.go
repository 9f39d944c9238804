package script

import (
	"bytes"
	"fmt"
	"strings"

	"railyard/endpoint/session"
	"railyard/rma"
)

// Bytes that are no operation's.
const (
	blank = '.' // memory as it was registered
	freed = '!' // a source, or a get's destination, after the operation has ended
)

// area is a region with its memory.
type area struct {
	name   string
	mem    []byte
	region *rma.Region
	frozen []byte // not nil: revoked, and what it held then
}

func (e *end) area(name string) *area {
	for i := len(e.areas) - 1; i >= 0; i-- {
		if e.areas[i].name == name {
			return e.areas[i]
		}
	}
	e.w.breach("%s has no region %s", e.name, name)
	return nil
}

func (e *end) register(name string, n int, rights rma.Rights) {
	r := &area{name: name, mem: bytes.Repeat([]byte{blank}, n)}
	var err error
	if r.region, err = e.regions.Register(r.mem, rights); err != nil {
		e.w.breach("%s cannot register %s: %v", e.name, name, err)
	}
	e.areas = append(e.areas, r)
}

func (e *end) revoke(name string) {
	r := e.area(name)
	if err := r.region.Revoke(); err != nil {
		e.w.breach("%s cannot revoke %s: %v", e.name, name, err)
	}
	r.frozen = append([]byte(nil), r.mem...)
}

// runs gives memory as runs of equal bytes.
func runs(mem []byte) string {
	var parts []string
	for at := 0; at < len(mem); {
		n := at
		for block := bytes.Repeat(mem[at:at+1], 4096); bytes.HasPrefix(mem[n:], block); {
			n += len(block)
		}
		for n < len(mem) && mem[n] == mem[at] {
			n++
		}
		parts = append(parts, fmt.Sprintf("%s of %c", size(n-at), mem[at]))
		at = n
	}
	return strings.Join(parts, ", ")
}

// work is one operation. Its letter is its name, and the byte that a put writes.
type work struct {
	e      *end
	letter byte
	op     session.Op
	area   *area // nil: a flush
	n      int
	ends   int
	err    error
	count  int // its bytes in the area when it ended
}

func (e *end) work(name string) *work {
	for _, k := range e.works {
		if string(k.letter) == name {
			return k
		}
	}
	e.w.breach("%s has no operation %s", e.name, name)
	return nil
}

// start begins an operation.
func (e *end) start(k *work) {
	for _, have := range append(append([]*work(nil), e.works...), e.peer.works...) {
		if have.letter == k.letter {
			e.w.breach("there is an operation %c already", k.letter)
		}
	}
	k.e = e
	k.op.User = k
	switch k.op.Kind {
	case session.Put:
		k.op.Data = bytes.Repeat([]byte{k.letter}, k.n)
	case session.Get:
		k.op.Data = bytes.Repeat([]byte{blank}, k.n)
	default:
	}
	e.works = append(e.works, k)
	e.s.Start(e.w.now, &k.op)
	e.pump()
}

// landed is how many bytes of a put are in its region.
func (k *work) landed() int {
	if k.area == nil || k.op.Kind != session.Put {
		return 0
	}
	return bytes.Count(k.area.mem, []byte{k.letter})
}

// completed is the end of an operation: from here on its memory is somebody else's.
func (e *end) completed(op *session.Op, err error) {
	k := op.User.(*work)
	k.ends++
	if k.ends > 1 {
		e.w.breach("%s: %c completed twice", e.name, k.letter)
	}
	k.err, k.count = err, k.landed()
	what := "completed"
	if err != nil {
		what = "ended: " + plainly(err)
	}
	switch k.op.Kind {
	case session.Put:
		what += fmt.Sprintf(", %s of %s landed", size(k.count), size(k.n))
	case session.Get:
		if err == nil {
			what += ", it is " + runs(op.Data)
		}
	default:
	}
	e.say("%c %s", k.letter, what)
	copy(op.Data, bytes.Repeat([]byte{freed}, len(op.Data)))
}

// deliver takes a message out of the session's hands.
func (e *end) deliver(d *session.Delivery) {
	text, _, _ := strings.Cut(string(d.Payload), "\x00")
	e.hear(d.Target.S, text)
	if d.Type.S != note {
		e.taken++
	}
	if e.stuck {
		e.unspent += d.Cost
		return
	}
	e.s.Consumed(e.w.now, d.Cost)
	e.pump()
}

func (e *end) hear(target, text string) {
	line := fmt.Sprintf("%s hears %q", target, text)
	for _, before := range e.heard {
		if before == line {
			e.w.breach("%s: %s was delivered twice to %s", e.name, text, target)
		}
	}
	e.heard = append(e.heard, line)
	if !e.stuck {
		e.say("%s", line)
	}
}

// note is the type of notifications.
const note = "note"

// send gives a message of n bytes, text and zeros, to the session.
func (e *end) send(target, text string, n int) {
	payload := make([]byte, max(n, len(text)))
	copy(payload, text)
	m := &session.Message{Target: e.s.Intern(target), Type: e.s.Intern("text"), Payload: payload}
	if err := e.s.Send(e.w.now, m); err != nil {
		e.say("%q is not taken: %s", text, plainly(err))
	} else {
		e.sent++
	}
	e.pump()
}
