package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rma"
)

func TestTimesFallIntoTheirBuckets(t *testing.T) {
	var times Times
	for d, bucket := range map[time.Duration]int{
		-time.Second: 0, 0: 0, 999 * time.Nanosecond: 0, time.Microsecond: 1, 3 * time.Microsecond: 2, 4 * time.Microsecond: 3,
		time.Millisecond: 10, time.Hour: len(times.Buckets) - 1,
	} {
		before := times.Buckets[bucket]
		times.add(d)
		assert.Equal(t, before+1, times.Buckets[bucket], "%v", d)
		if bucket > 0 && bucket < len(times.Buckets)-1 {
			assert.Less(t, d, time.Microsecond<<bucket)
			assert.GreaterOrEqual(t, 2*d, time.Microsecond<<bucket)
		}
	}
}

// What went over each lane adds up to what went over all, and what ended is timed.
func TestLanesAndTimesAreCounted(t *testing.T) {
	regions := newTable()
	region, err := regions.Register(make([]byte, 4096), rma.RemoteWrite|rma.RemoteRead)
	require.NoError(t, err)
	p, key := newTwo(t, regions), region.Key()
	for _, kind := range []OpKind{Put, Get, Flush} {
		p.s[0].Start(p.now, &Op{Kind: kind, Region: key.Region(), Token: key.Token(), Data: make([]byte, 4096)})
	}
	for range 3 {
		m := Message{Target: p.s[0].Intern("target"), Type: p.s[0].Intern("type"), Payload: make([]byte, 64)}
		require.NoError(t, p.s[0].Send(p.now, &m))
	}
	for range 100 { // acknowledgements may wait a little
		p.settle()
		p.now += time.Millisecond
		p.s[1].Tick(p.now)
	}
	require.Equal(t, 3, p.done)
	near := p.s[0].Stats()
	for i, s := range p.s {
		assert.NotZero(t, s.Stats().BytesOut, i)
		assert.Equal(t, s.Stats().BytesOut, s.Lane(0).BytesOut, i)
		assert.Equal(t, s.Stats().BytesIn, s.Lane(0).BytesIn, i)
	}
	assert.EqualValues(t, 1, sumOf(near.PutTimes))
	assert.EqualValues(t, 1, sumOf(near.GetTimes))
	assert.EqualValues(t, 1, sumOf(near.MessageTimes), "one of the three is timed")
	both := near.PutTimes.Add(near.GetTimes)
	assert.EqualValues(t, 2, sumOf(both))
	assert.Equal(t, near.PutTimes.Sum+near.GetTimes.Sum, both.Sum)
}

func sumOf(times Times) (n uint64) {
	for _, k := range times.Buckets {
		n += k
	}
	return n
}
