package sabotage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/cmd/railyard/internal/cable"
	"railyard/wire"
)

// stream builds what a session would write.
type stream struct{ bytes []byte }

func (s *stream) batch(records ...any) {
	start := len(s.bytes)
	s.bytes = wire.AppendBatchHeader(s.bytes)
	body, count := len(s.bytes), 0
	for _, r := range records {
		switch r := r.(type) {
		case define:
			s.bytes = wire.AppendDefine(s.bytes, r.slot, r.name)
		case wire.Message:
			s.bytes = wire.AppendMessage(s.bytes, &r)
			count++
		}
	}
	wire.PatchBatch(s.bytes[start:], len(s.bytes)-body, count)
}

func (s *stream) put(region, base uint64, data []byte, notify bool) {
	f := wire.Chunk{Op: 1, Region: region, Base: base, Total: uint64(len(data)), Size: uint32(len(data)), Notify: notify}
	s.bytes = append(f.Append(s.bytes), data...)
}

func (s *stream) beat() {
	f := wire.Beat{Seq: 7}
	s.bytes = f.Append(s.bytes)
}

type define struct {
	slot uint16
	name string
}

// The slots that every test's stream defines.
var (
	alice    = define{1, "sink-1"}
	bob      = define{2, "sink-2"}
	numbered = define{3, "load.Numbered"}
	filler   = define{4, "load.Filler"}
)

func message(to, typ define, text string) wire.Message {
	return wire.Message{Target: wire.Ref{Slot: to.slot}, Type: wire.Ref{Slot: typ.slot}, Payload: []byte(text)}
}

// seen is what a receiver makes of a stream.
type seen struct {
	messages []string // "target type payload", in order
	chunks   []string // "region@base:payload"
	beats    int
	counts   []int // of each batch, as its header says
}

func receive(t *testing.T, b []byte) seen {
	t.Helper()
	var s seen
	names := map[uint16]string{}
	name := func(r wire.RefView) string {
		if r.Slot != 0 {
			return names[r.Slot]
		}
		return string(r.Inline)
	}
	for len(b) > 0 {
		require.GreaterOrEqual(t, len(b), wire.HeaderSize)
		h, err := wire.ParseHeader(b[:wire.HeaderSize])
		require.NoError(t, err)
		head, body := b[:wire.HeaderSize], b[wire.HeaderSize:wire.HeaderSize+int(h.Body)]
		b = b[wire.HeaderSize+int(h.Body):]
		switch h.Kind {
		case wire.KindBatch:
			f, err := wire.ParseBatch(h, head)
			require.NoError(t, err)
			count := 0
			for len(body) > 0 {
				rec, n, err := wire.NextRecord(body)
				require.NoError(t, err)
				require.Positive(t, n)
				body = body[n:]
				if rec.Tag == wire.TagDefine {
					names[rec.Slot] = string(rec.Name)
					continue
				}
				count++
				s.messages = append(s.messages, fmt.Sprintf("%s %s %s", name(rec.Target), name(rec.Type), rec.Payload))
			}
			require.EqualValues(t, f.Count, count, "the receiver's session must notice nothing")
			s.counts = append(s.counts, count)
		case wire.KindChunk:
			f, err := wire.ParseChunk(h, head)
			require.NoError(t, err)
			s.chunks = append(s.chunks, fmt.Sprintf("%d@%d:%s", f.Region, f.Base, body))
		case wire.KindBeat:
			s.beats++
		default:
			t.Fatalf("unexpected %v", h.Kind)
		}
	}
	return s
}

// rig is a saboteur with a clock that the test moves.
type rig struct {
	saboteur *Saboteur
	now      time.Duration
}

func newRig(kind Kind, limit int) *rig {
	r := &rig{now: time.Second}
	r.saboteur = New(Config{
		Kind: kind, Numbered: numbered.name, Filler: filler.name, Limit: limit,
		Now: func() time.Duration { return r.now },
	})
	return r
}

// pass sends the stream through an editor in pieces of random length.
func pass(e cable.Editor, in []byte, seed uint64) []byte {
	rng := rand.New(rand.NewPCG(seed, 1))
	var out []byte
	for len(in) > 0 {
		n := min(1+rng.IntN(40), len(in))
		out = e.Edit(out, in[:n])
		in = in[n:]
	}
	return out
}

func talk() *stream {
	s := &stream{}
	s.batch(alice, bob, numbered, filler, message(alice, numbered, "a1"))
	s.batch(message(bob, numbered, "b1"), message(alice, filler, "f"))
	s.beat()
	s.batch(message(bob, numbered, "b2"), message(alice, numbered, "a2"), message(alice, numbered, "a3"))
	s.beat()
	return s
}

func TestNothingChangesWithoutADeed(t *testing.T) {
	for kind := None; kind <= LateWrite; kind++ {
		for seed := range uint64(20) {
			s := talk()
			s.put(1, 0, bytes.Repeat([]byte("x"), 100), true)
			s.put(1, 500, bytes.Repeat([]byte("y"), FillerPut), false)
			s.put(1, 600, nil, true)
			r := newRig(kind, 0)
			require.Equal(t, s.bytes, pass(r.saboteur.Editor(), s.bytes, seed), "%v", kind)
			require.Zero(t, r.saboteur.Deeds())
		}
	}
}

func TestDropMisaddressesOneMessage(t *testing.T) {
	r := newRig(Drop, 1)
	got := receive(t, pass(r.saboteur.Editor(), talk().bytes, 1))
	assert.Equal(t, []string{
		"nobody load.Numbered a1", "sink-2 load.Numbered b1", "sink-1 load.Filler f",
		"sink-2 load.Numbered b2", "sink-1 load.Numbered a2", "sink-1 load.Numbered a3",
	}, got.messages)
	assert.Equal(t, 2, got.beats)
	assert.Equal(t, 1, r.saboteur.Deeds())
}

func TestDoubleTurnsAFillerIntoACopy(t *testing.T) {
	r := newRig(Double, 1)
	got := receive(t, pass(r.saboteur.Editor(), talk().bytes, 2))
	assert.Equal(t, []string{
		"sink-1 load.Numbered a1", "sink-2 load.Numbered b1", "sink-2 load.Numbered b1",
		"sink-2 load.Numbered b2", "sink-1 load.Numbered a2", "sink-1 load.Numbered a3",
	}, got.messages)
}

func TestReorderSwapsAcrossFrames(t *testing.T) {
	r := newRig(Reorder, 1)
	got := receive(t, pass(r.saboteur.Editor(), talk().bytes, 3))
	assert.Equal(t, []string{
		"sink-1 load.Numbered a2", "sink-2 load.Numbered b1", "sink-1 load.Filler f",
		"sink-2 load.Numbered b2", "sink-1 load.Numbered a1", "sink-1 load.Numbered a3",
	}, got.messages)
	assert.Equal(t, 2, got.beats)
	assert.Equal(t, []int{1, 2, 3}, got.counts)
}

func TestReorderSwapsInsideAFrame(t *testing.T) {
	s := &stream{}
	s.batch(alice, numbered, message(alice, numbered, "first"), message(alice, numbered, "the second is longer"))
	r := newRig(Reorder, 1)
	got := receive(t, pass(r.saboteur.Editor(), s.bytes, 4))
	assert.Equal(t, []string{"sink-1 load.Numbered the second is longer", "sink-1 load.Numbered first"}, got.messages)
}

// A payload is not held back: the messages go on as they are, and the next pair is tried.
func TestReorderGivesUpBeforeAPayload(t *testing.T) {
	s := &stream{}
	s.batch(alice, numbered, message(alice, numbered, "a1"))
	s.put(1, 0, []byte("payload"), true)
	s.batch(message(alice, numbered, "a2"))
	r := newRig(Reorder, 1)
	e := r.saboteur.Editor()
	out := pass(e, s.bytes, 5)
	got := receive(t, out)
	assert.Equal(t, []string{"sink-1 load.Numbered a1"}, got.messages, "the second waits for a third")
	assert.Zero(t, r.saboteur.Deeds())
	more := &stream{}
	more.batch(message(alice, numbered, "a3"))
	got = receive(t, append(out, pass(e, more.bytes, 6)...))
	assert.Equal(t, []string{"sink-1 load.Numbered a1", "sink-1 load.Numbered a3", "sink-1 load.Numbered a2"}, got.messages)
	assert.Equal(t, 1, r.saboteur.Deeds())
}

func TestReorderHoldsNoMoreThanItsBound(t *testing.T) {
	s := &stream{}
	s.batch(alice, bob, numbered, message(alice, numbered, "a1"))
	for range 2000 {
		s.batch(message(bob, numbered, "b"))
	}
	r := newRig(Reorder, 1)
	out := pass(r.saboteur.Editor(), s.bytes, 7)
	assert.Greater(t, len(out), len(s.bytes)-2*maxHeld)
}

func TestLateWriteCarriesOldBytesToTheOldPlace(t *testing.T) {
	before := bytes.Repeat([]byte("old!"), FillerPut/4)
	rest := []byte("and what follows")
	nobody := bytes.Repeat([]byte("fill"), FillerPut/4)

	s := &stream{}
	s.put(1, 4096, append(bytes.Clone(before), rest...), true)
	s.put(2, 0, append(bytes.Clone(before), rest...), true)
	r := newRig(LateWrite, 1)
	e := r.saboteur.Editor()
	out := pass(e, s.bytes, 8)
	require.Equal(t, s.bytes, out)

	fill := &stream{}
	fill.put(1, 9999, nobody, false)
	require.Equal(t, fill.bytes, pass(e, fill.bytes, 9), "too early: the put may still be under way")
	r.now += oldEnough
	got := receive(t, pass(e, fill.bytes, 10))
	assert.Equal(t, []string{fmt.Sprintf("1@4096:%s", before)}, got.chunks)
	assert.Equal(t, 1, r.saboteur.Deeds())
	require.Equal(t, fill.bytes, pass(e, fill.bytes, 11), "the limit is reached")
}

func TestLateWriteLeavesWhatIsTooOld(t *testing.T) {
	s := &stream{}
	s.put(1, 0, make([]byte, FillerPut), true)
	r := newRig(LateWrite, 1)
	e := r.saboteur.Editor()
	pass(e, s.bytes, 12)
	r.now += tooOld + 1
	fill := &stream{}
	fill.put(1, 9999, make([]byte, FillerPut), false)
	require.Equal(t, fill.bytes, pass(e, fill.bytes, 13))
}

func TestDeedsKeepTheirDistance(t *testing.T) {
	r := newRig(Drop, 10)
	r.saboteur.config.Every = time.Minute
	e := r.saboteur.Editor()
	pass(e, talk().bytes, 14)
	pass(e, talk().bytes, 15)
	assert.Equal(t, 1, r.saboteur.Deeds())
	r.now += time.Minute
	pass(e, talk().bytes, 16)
	assert.Equal(t, 2, r.saboteur.Deeds())
}

// What is not understood passes: sabotage breaks one promise, not the connection.
func TestForeignBytesPass(t *testing.T) {
	for kind := None; kind <= LateWrite; kind++ {
		s := talk()
		s.bytes = append(s.bytes, bytes.Repeat([]byte{0xFF}, 300)...)
		r := newRig(kind, 0)
		require.Equal(t, s.bytes, pass(r.saboteur.Editor(), s.bytes, 17))
	}
}

func TestParse(t *testing.T) {
	for name, want := range map[string]Kind{
		"": None, "drop": Drop, "double": Double, "reorder": Reorder, "late-write": LateWrite,
	} {
		got, err := Parse(name)
		require.NoError(t, err)
		assert.Equal(t, want, got)
		if name != "" {
			assert.Equal(t, name, got.String())
		}
	}
	_, err := Parse("axe")
	require.ErrorIs(t, err, ErrKind)
	require.ErrorContains(t, err, "drop, double, reorder, late-write")
	assert.Equal(t, "sabotage 9", Kind(9).String())
}
