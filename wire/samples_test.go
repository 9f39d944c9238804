package wire

import (
	"bytes"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
)

// token is the key's secret in all samples.
var token = Token{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}

// refusals makes n valid ones for a count of n or more.
func refusals(n int) Refusals {
	var r Refusals
	for i := range n {
		r = r.Add(Refusal{Frame: uint64(i + 1), Op: OpID(i), Code: CodeRevoked})
	}
	return r
}

// marks makes n.
func marks(n int) []Mark {
	m := make([]Mark, n)
	for i := range m {
		m[i] = Mark{Rail: RailID(i), Generation: Generation(i + 1), Frame: uint64(2 * i)}
	}
	return m
}

// records are the sample records of batches, each with its encoding.
func records() [][]byte {
	return [][]byte{
		AppendDefine(nil, 1, "printer"),
		AppendDefine(nil, MaxSlot, strings.Repeat("n", MaxName)),
		AppendMessage(nil, &Message{Target: Ref{Slot: 1}}),
		AppendMessage(nil, &Message{
			Target: Ref{Slot: MaxSlot}, Sender: Ref{Slot: 126}, Type: Ref{Slot: 127}, Payload: []byte("x"),
		}),
		AppendMessage(nil, fullMessage()),
		AppendPlaceholder(nil, &Placeholder{Target: Ref{Slot: 3}, ID: 9, Total: 1}),
		AppendPlaceholder(nil, &Placeholder{
			System: true, Target: Ref{Name: "t"}, Sender: Ref{Name: "s"}, Type: Ref{Slot: 2},
			Headers: []byte("h"), ID: 1<<64 - 1, Total: MaxTotal,
		}),
	}
}

// fullMessage has every field at its limit.
func fullMessage() *Message {
	return &Message{
		System:  true,
		Target:  Ref{Name: strings.Repeat("t", MaxName)},
		Sender:  Ref{Name: strings.Repeat("s", MaxName)},
		Type:    Ref{Name: strings.Repeat("y", MaxName)},
		Headers: bytes.Repeat([]byte("h"), MaxHeaders),
		Payload: bytes.Repeat([]byte("p"), MaxInline),
	}
}

// batch makes a whole frame of records.
func batch(count int, records ...[]byte) []byte {
	b := AppendBatchHeader(nil)
	for _, r := range records {
		b = append(b, r...)
	}
	PatchBatch(b, len(b)-HeaderSize, count)
	return b
}

// samples are valid frames of every kind but the handshake's, payloads of bulk frames left out.
func samples() [][]byte {
	all := records()
	return [][]byte{
		batch(5, all...),
		batch(0, all[0]),
		(&Chunk{Op: 7, Token: token, Region: 8, Base: 9, Total: 11, Position: 1, Size: 10}).Append(nil),
		(&Chunk{
			Op: 7, Token: token, Region: 8, Base: 1<<64 - 1, Total: 1 << 40, Size: MaxChunk, Notify: true,
		}).Append(nil),
		(&Chunk{Op: 1}).Append(nil),
		(&MessageChunk{ID: 3, Position: 5, Total: 6, Size: 1}).Append(nil),
		(&MessageChunk{ID: 3, Position: 1<<64 - 1 - MaxChunk, Total: 1<<64 - 1, Size: MaxChunk}).Append(nil),
		(&GetRequest{Op: 1, Token: token, Region: 2, Offset: 3, Length: 4}).Append(nil),
		(&GetData{Op: 1, Position: 2, Total: 12, Size: 10, Final: true}).Append(nil),
		(&GetData{Op: 1}).Append(nil),
		(&GetDone{Op: 4, Code: CodeInternal}).Append(nil),
		(&Notify{Op: 5, Message: Message{
			Target: Ref{Name: "a"}, Type: Ref{Name: "t"}, Payload: []byte("hi"),
		}}).Append(nil),
		(&Forget{Ops: []OpID{1, 1<<64 - 1}}).Append(nil),
		(&Forget{Ops: make([]OpID, MaxForget)}).Append(nil),
		(&Placed{Op: 7, Region: 8, Base: 9, Total: 11, Position: 1, Size: 10}).Append(nil),
		(&Placed{Op: 7, Region: 8, Base: 1<<64 - 1, Total: 1 << 40, Size: MaxChunk, Notify: true}).Append(nil),
		(&Beat{Seq: 1, Echo: 2, Held: 3, Seen: 4}).Append(nil),
		(&Ack{Count: 1, Seen: 2}).Append(nil),
		(&Ack{Count: MaxRefusals, Refusals: refusals(MaxRefusals)}).Append(nil),
		(&Credit{Granted: 1<<64 - 1}).Append(nil),
		(&Retired{
			Rail: 1<<16 - 1, Generation: 1<<64 - 1, Count: 3, HaveYours: true, Refusals: refusals(3),
		}).Append(nil),
		(&Retired{Rail: 1, Generation: 2, Rejected: true}).Append(nil),
		(&Retired{Rail: 1, Generation: 2, Done: true}).Append(nil),
		(&Retired{}).Append(nil),
		(&Cancel{Op: 6, Marks: marks(2)}).Append(nil),
		(&Cancel{Op: 6, Marks: marks(MaxMarks)}).Append(nil),
		(&Cancel{}).Append(nil),
		(&Verdict{Op: 6, Code: CodeCanceled}).Append(nil),
		(&Goodbye{Reason: 255, Marks: marks(1)}).Append(nil),
		(&Goodbye{}).Append(nil),
		(&Map{Ask: 1, Region: 2, Token: token}).Append(nil),
		(&Mapped{Ask: 1, Key: 1<<32 - 1, Address: 1<<64 - 5, Length: 4}).Append(nil),
		(&Mapped{Ask: 2, Code: CodeRevoked}).Append(nil),
	}
}

// reencode parses the frame at the start of b by its kind and appends it again. bare tells that the
// payload does not belong to the encoding. It covers every kind but the handshake's.
func reencode(b []byte) (out []byte, h Header, bare bool, err error) {
	if h, err = ParseHeader(b); err != nil {
		return nil, h, false, err
	}
	head, body := b[:HeaderSize], b[HeaderSize:]
	switch h.Kind {
	case KindChunk, KindMessageChunk, KindGetData:
		out, err = reencodeBulk(h, head)
		return out, h, true, err
	default:
	}
	if uint64(len(body)) < uint64(h.Body) {
		return nil, h, false, fmt.Errorf("%w: cut", ErrMalformed)
	}
	body = body[:h.Body]
	if h.Kind.Counted() {
		out, err = reencodeCounted(h, head, body)
	} else {
		out, err = reencodeControl(h, head, body)
	}
	return out, h, false, err
}

func reencodeBulk(h Header, head []byte) ([]byte, error) {
	switch h.Kind {
	case KindChunk:
		f, err := ParseChunk(h, head)
		return f.Append(nil), err
	case KindMessageChunk:
		f, err := ParseMessageChunk(h, head)
		return f.Append(nil), err
	default:
		f, err := ParseGetData(h, head)
		return f.Append(nil), err
	}
}

func reencodeCounted(h Header, head, body []byte) ([]byte, error) {
	switch h.Kind {
	case KindBatch:
		return reencodeBatch(h, head, body)
	case KindGetRequest:
		f, err := ParseGetRequest(h, head)
		return f.Append(nil), err
	case KindGetDone:
		f, err := ParseGetDone(h, head)
		return f.Append(nil), err
	case KindNotify:
		op, rec, err := ParseNotify(h, head, body)
		f := Notify{Op: op, Message: messageOf(rec)}
		return f.Append(nil), err
	case KindPlaced:
		f, err := ParsePlaced(h, head)
		return f.Append(nil), err
	default:
		f, err := ParseForget(h, head, body)
		return f.Append(nil), err
	}
}

func reencodeControl(h Header, head, body []byte) ([]byte, error) {
	switch h.Kind {
	case KindBeat:
		f, err := ParseBeat(h, head)
		return f.Append(nil), err
	case KindAck:
		f, err := ParseAck(h, head, body)
		return f.Append(nil), err
	case KindCredit:
		f, err := ParseCredit(h, head)
		return f.Append(nil), err
	case KindRetired:
		f, err := ParseRetired(h, head, body)
		return f.Append(nil), err
	case KindCancel:
		f, err := ParseCancel(h, head, body)
		return f.Append(nil), err
	case KindVerdict:
		f, err := ParseVerdict(h, head)
		return f.Append(nil), err
	case KindGoodbye:
		f, err := ParseGoodbye(h, head, body)
		return f.Append(nil), err
	case KindMap:
		f, err := ParseMap(h, head)
		return f.Append(nil), err
	case KindMapped:
		f, err := ParseMapped(h, head)
		return f.Append(nil), err
	default:
		return nil, fmt.Errorf("%w: handshake", ErrMalformed)
	}
}

func reencodeBatch(h Header, head, body []byte) ([]byte, error) {
	f, err := ParseBatch(h, head)
	if err != nil {
		return nil, err
	}
	out := AppendBatchHeader(nil)
	count := 0
	for len(body) > 0 {
		rec, n, err := NextRecord(body)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			return nil, fmt.Errorf("%w: cut record", ErrMalformed)
		}
		if rec.Counted() {
			count++
		}
		out = appendRecord(out, rec)
		body = body[n:]
	}
	if count != int(f.Count) {
		return nil, fmt.Errorf("%w: count", ErrMalformed)
	}
	PatchBatch(out, len(out)-HeaderSize, count)
	return out, nil
}

// appendRecord encodes a parsed record again.
func appendRecord(b []byte, rec Record) []byte {
	switch rec.Tag {
	case TagDefine:
		return AppendDefine(b, rec.Slot, string(rec.Name))
	case TagMessage:
		m := messageOf(rec)
		return AppendMessage(b, &m)
	default:
		m := messageOf(rec)
		return AppendPlaceholder(b, &Placeholder{
			System: m.System, Target: m.Target, Sender: m.Sender, Type: m.Type,
			Headers: m.Headers, ID: rec.ID, Total: rec.Total,
		})
	}
}

func messageOf(rec Record) Message {
	return Message{
		System: rec.System(), Target: refOf(rec.Target), Sender: refOf(rec.Sender), Type: refOf(rec.Type),
		Headers: rec.Headers, Payload: rec.Payload,
	}
}

func refOf(v RefView) Ref { return Ref{Slot: v.Slot, Name: string(v.Inline)} }

// handshake is a sample message of each of the four kinds.
func handshake(k Kind) proto.Message {
	nonce := bytes.Repeat([]byte{1}, NonceSize)
	id := bytes.Repeat([]byte{2}, NodeIDSize)
	mac := bytes.Repeat([]byte{3}, MACSize)
	devices := []*Device{{Kind: "tcp", Address: "10.0.0.1:7400", Name: "eth0", Speed: 1 << 30}, {}}
	fenced := []*Fenced{{Rail: 1<<16 - 1, Generation: 5, Count: 2, HaveYours: true, Rejected: true, Refusals: refusals(2)}, {}}
	switch k {
	case KindChallenge:
		return &Challenge{
			Version: Version, Features: 1 << 63, Nonce: nonce, Node: "n:1", Incarnation: id, Name: "n",
		}
	case KindHello:
		return &Hello{
			Version: Version, Features: 1, Node: "a:1", Incarnation: id, Name: "a", Challenge: nonce,
			Nonce: nonce, Target: "b:1", TargetIncarnation: id, Session: id, Epoch: 3, First: true,
			Token: mac, Rail: 4, Generation: 9, Local: "a:2", Remote: "b:2", Devices: devices,
			Fenced: fenced, Window: 1, MaxMessage: 2, Mac: mac,
		}
	case KindAnswer:
		return &Answer{
			Code: RefusalCode_OK, Reason: "welcome", Node: "b:1", Incarnation: id, Name: "b",
			Nonce: nonce, Session: id, Epoch: 3, Devices: devices, Fenced: fenced, Window: 1, MaxMessage: 2, Mac: mac,
		}
	default:
		return &Confirm{Mac: mac, Fenced: fenced}
	}
}

// handshakeKinds are the kinds whose body is a message.
var handshakeKinds = []Kind{KindChallenge, KindHello, KindAnswer, KindConfirm}

// newHandshake is an empty message of the kind.
func newHandshake(k Kind) proto.Message {
	m := handshake(k)
	proto.Reset(m)
	return m
}
