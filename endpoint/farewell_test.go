package endpoint

import (
	"bytes"
	"crypto/rand"
	"testing"

	"github.com/stretchr/testify/require"

	"railyard/rma"
	"railyard/wire"
)

// Behind a bug a connection writes what is left of its plan, also where that lies in a region, and the goodbye behind it: whatever the
// socket takes at a time, the stream is whole.
func TestAFarewellLeavesTheStreamWhole(t *testing.T) {
	table := rma.NewTable(rand.Reader, 0)
	region, err := table.Register(bytes.Repeat([]byte{3}, 50), rma.RemoteRead)
	require.NoError(t, err)
	plan := func(out *rma.Gather) {
		out.Add(bytes.Repeat([]byte{1}, 64))
		out.Add(bytes.Repeat([]byte{2}, 10))
		out.AddPinned(region.Bytes(), region)
	}
	var whole rma.Gather
	plan(&whole)
	want := append(bytes.Join(whole.Bufs, nil), (&wire.Goodbye{}).Append(nil)...)
	for first := 1; first < whole.Size(); first += 7 {
		for _, step := range []int{1, 9, 1000} {
			var out rma.Gather
			plan(&out)
			l := &link{torn: true}
			got := append([]byte(nil), bytes.Join(out.Bufs, nil)[:first]...)
			l.last.keep(&out, first)
			for l.last.say(l, &out) {
				all := bytes.Join(out.Bufs, nil)
				n := min(step, len(all))
				got = append(got, all[:n]...)
				if l.torn = n < len(all); l.torn {
					l.last.keep(&out, n)
				}
			}
			require.Equal(t, want, got, "first %d, then %d", first, step)
		}
	}
}

// Where nobody knows what is left, nothing is said: a goodbye in the middle of a frame would be taken for its bytes.
func TestAFarewellThatCannotBeSaid(t *testing.T) {
	var out rma.Gather
	l := &link{torn: true} // and there is no generation to ask
	require.False(t, l.last.say(l, &out))
	require.True(t, l.last.failed)
	require.False(t, l.last.say(l, &out))
}
