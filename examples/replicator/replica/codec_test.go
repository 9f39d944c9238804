package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// samples has each message, and each kind of item, with every field that it carries set.
func samples() []Message {
	at, plan, history := Position{3, 1 << 40}, FillMark{7, 8, 9}, History{{1, 1}, {3, 99}}
	item := func(k Kind, set func(*Item)) Item {
		i := Item{Epoch: 1, Stream: 2, Number: 3, Kind: k, Staged: 4096}
		set(&i)
		return i
	}
	return []Message{
		Ask{5}, Stand{5, true, true, at}, Refused{6}, Open{5, 2},
		Welcome{5, 2, []byte{1, 200, 3}, 1 << 20, true, at, history, plan}, Dirt{5, 2, []uint64{1, 1 << 50}}, Dirt{5, 2, nil},
		Ack{5, 2, 3, 4, 5, true}, Differs{5, 2, 77}, Broken{5, 2}, Ping{5, 3 * time.Second}, Pong{5, time.Hour},
		item(RecordItem, func(i *Item) { i.Record = Header{1, 2, 3, 4, true, 5, 6} }),
		item(BeginItem, func(i *Item) { i.At, i.Floor, i.Plan, i.History = at, Position{2, 9}, plan, history }),
		item(FillItem, func(i *Item) { i.At, i.Extent = at, 12 }),
		item(MarkItem, func(i *Item) { i.Plan = plan }),
		item(EndItem, func(*Item) {}),
		item(CheckItem, func(i *Item) { i.Extent, i.Sum = 12, 1<<32-1 }),
	}
}

func TestCodec(t *testing.T) {
	for _, m := range samples() {
		b := Encode(m)
		back, err := Decode(b)
		require.NoError(t, err, "%T", m)
		assert.Equal(t, m, back)
		for n := range b {
			_, err := Decode(b[:n])
			require.ErrorIs(t, err, ErrCodec, "%T cut to %d bytes", m, n)
		}
		_, err = Decode(append(b, 0))
		require.ErrorIs(t, err, ErrCodec, "%T and one byte more", m)
	}
	_, err := Decode([]byte{200})
	require.ErrorIs(t, err, ErrCodec)
	_, err = Decode([]byte{0})
	require.ErrorIs(t, err, ErrCodec)
}

// FuzzDecode: what can be read is written as bytes that say the same; a member takes it without harm.
func FuzzDecode(f *testing.F) {
	for _, m := range samples() {
		f.Add(Encode(m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := Decode(b)
		if err != nil {
			return
		}
		again, err := Decode(Encode(m))
		require.NoError(t, err)
		require.Equal(t, m, again)
		member, err := New(good(), State{Whole: true}, Position{}, 0)
		require.NoError(t, err)
		member.Step(2*time.Second, Delivered{"b", Ask{1}})
		member.Step(2*time.Second, Synced{1})
		member.Step(2*time.Second, Delivered{"b", Open{1, 1}})
		member.Step(2*time.Second, Registered{Stream{"b", 1, 1}, []byte("k")})
		member.Step(3*time.Second, Delivered{"b", m})
	})
}
