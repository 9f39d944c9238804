package endpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rma"
)

// post sends n numbered messages, large ones among them.
func post(t *testing.T, r *Route, target string, n int) {
	for i := range n {
		b := make([]byte, leastStamp+i%7*100)
		if i%5 == 0 {
			b = make([]byte, 100<<10)
		}
		stamp(target, uint64(i), b)
		require.NoError(t, r.TrySend(&Outgoing{Target: NewRef(target), Type: NewRef(numberedType), Payload: b}))
	}
}

// When a flush is done, every message that was sent before it is in its mailbox at the peer, whatever becomes of rails.
func TestAFlushMeansThatMessagesAreThere(t *testing.T) {
	for name, fault := range map[string]func(cable){
		"calm": func(cable) {}, "reset": cable.Reset, "cut": cable.Cut, "silent": func(c cable) { c.BlackHole(bothWays) },
	} {
		t.Run(name, func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				bd := virtualBed(t, bedSpec{})
				for _, c := range bd.cables {
					c.Slow(bothWays, 8<<20)
				}
				for i := range 4 {
					post(t, bd.a.Route(bd.b.Address()), fmt.Sprint("t", i), 20)
				}
				flush := bd.ab.start(rma.OpConfig{Kind: rma.FlushOp})
				require.False(t, flush.Finished())
				fault(bd.cables[0])
				require.NoError(t, flush.Wait(t.Context()))
				for i := range 4 {
					require.EqualValues(t, 20, bd.b.arrived(fmt.Sprint("t", i)))
				}
			})
		})
	}
}

// The same for messages that were sent before there was a connection: Connect waits until they are the session's.
func TestAFlushBehindTheFirstMessages(t *testing.T) {
	virtually(t, func(t *testing.T) {
		a, b, _ := virtualNodes(t, time.Millisecond)
		post(t, a.Route(b.Address()), "t", 100)
		e := connectTo(t, a, b.Address())
		require.NoError(t, e.Flush(t.Context()))
		require.EqualValues(t, 100, b.arrived("t"))
	})
}

// A put with Fence is not begun before the messages sent before it have arrived.
func TestAFencedPutWaitsForMessages(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{})
		for _, c := range bd.cables {
			c.(*pipeWire).Delay(bothWays, 10*time.Millisecond)
		}
		region := bd.b.register(t, 1, rma.RemoteWrite)
		post(t, bd.a.Route(bd.b.Address()), "t", 3)
		start := time.Now()
		require.NoError(t, bd.ab.StartPut(region.Key(), 0, []byte{1}, rma.Fence()).Wait(t.Context()))
		require.EqualValues(t, 3, bd.b.arrived("t"))
		require.GreaterOrEqual(t, time.Since(start), 40*time.Millisecond, "the messages there, their acknowledgement back, and only then the put")

		start = time.Now()
		require.NoError(t, bd.ab.StartPut(region.Key(), 0, []byte{2}).Wait(t.Context()))
		require.Less(t, time.Since(start), 40*time.Millisecond, "without a fence")
	})
}
