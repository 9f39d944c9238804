package trial

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/test/lab"
)

// rootless is why there can be no lab here; nil: there can.
var rootless error

func TestMain(m *testing.M) {
	rootless = lab.Enter()
	goleak.VerifyTestMain(m)
}

func build(t *testing.T) Tool {
	t.Helper()
	if rootless != nil {
		t.Skip(rootless)
	}
	tool, err := Build(t.Context(), t.TempDir())
	require.NoError(t, err)
	return tool
}

const shaped = 200e6

// short is a trial of a few seconds.
func short(cuts ...lab.Cut) Plan {
	return Plan{Lab: lab.Options{Rails: 2, Rates: []int64{shaped}}, Cuts: cuts, Rail: 1, Before: 1500 * time.Millisecond,
		Hold: 2 * time.Second, After: 4 * time.Second, Size: 256 << 10, Window: 16}
}

// TestNobodyNoticesACut has every way to cut a rail once; without RAILYARD_FULL the first two. Its limits are those of a machine
// that does much else; the report's are the ones that count.
func TestNobodyNoticesACut(t *testing.T) {
	tool := build(t)
	ways := [][]lab.Cut{
		{{Kind: lab.BlackHole}},
		{{Kind: lab.LinkDown, Where: lab.B}},
		{{Kind: lab.LinkDown, Where: lab.A}},
		{{Kind: lab.OneWay, Where: lab.A}},
		{{Kind: lab.OneWay, Where: lab.B}},
		{{Kind: lab.Reset}},
		{{Kind: lab.SwallowedReset}},
		{{Kind: lab.Loss, Percent: 5}},
		{{Kind: lab.Slow, Rate: shaped / 20}},
		{{Kind: lab.Flap, Where: lab.B, Down: 300 * time.Millisecond, Up: 300 * time.Millisecond}},
		{{Kind: lab.AddressRemoved, Where: lab.B}},
		{{Kind: lab.Narrow, MTU: 1000}},
		{{Kind: lab.Poisoned, Where: lab.A}},
	}
	if os.Getenv("RAILYARD_FULL") == "" {
		ways = ways[:2]
	}
	for _, cuts := range ways {
		t.Run(cuts[0].Kind.String()+" at "+cuts[0].Where.String(), func(t *testing.T) {
			o, err := tool.Run(t.Context(), short(cuts...))
			require.NoError(t, err)
			assert.Zero(t, o.Errors, o.FirstErr)
			assert.Zero(t, o.Bad, "bytes that are not what was put")
			assert.Zero(t, o.Result.Lost+o.Doubled, "puts that the target was not told of, or more than once")
			assert.Positive(t, o.Verified)
			assert.Zero(t, o.Ended, "endpoints given up")
			assert.Less(t, o.Stall, 1500*time.Millisecond)
			assert.NotEqual(t, lab.Never, o.Back, "the rail is used again")
			t.Logf("stall %v, full %v, back %v, longest put %v, lives lost %d, of them for nothing %d", o.Stall, o.Full, o.Back,
				o.Longest(), o.Lives, o.False)
			if t.Failed() {
				t.Logf("%+v", o.Trouble)
			}
		})
	}
}

func TestADelayIsNoCut(t *testing.T) {
	tool := build(t)
	p := short(lab.Cut{Kind: lab.Delay, Delay: 30 * time.Millisecond})
	p.Lab = lab.Options{Rails: 2, Delay: time.Millisecond}
	p.Size = 64 << 10
	o, err := tool.Run(t.Context(), p)
	require.NoError(t, err)
	assert.Zero(t, o.Errors, o.FirstErr)
	assert.Zero(t, o.Bad)
	assert.Zero(t, o.Ended)
}

func TestTheKernelsStreamIsCutToo(t *testing.T) {
	if rootless != nil {
		t.Skip(rootless)
	}
	g, line, err := Stream{Multipath: true}.Run(t.Context(), short(lab.Cut{Kind: lab.BlackHole}))
	require.NoError(t, err)
	assert.Positive(t, g.Before)
	assert.Greater(t, len(line), 300)
	g, _, err = Stream{}.Run(t.Context(), Plan{Lab: lab.Options{Rails: 1}, After: 500 * time.Millisecond, Size: 64 << 10})
	require.NoError(t, err)
	assert.Zero(t, g)
}
