package endpoint

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// greet sends one message to an address.
func greet(t *testing.T, r *Route) {
	require.NoError(t, r.TrySend(&Outgoing{Target: NewRef("x"), Type: NewRef("t"), Payload: []byte("hello")}))
}

// Addresses that were tried and lead nowhere are forgotten, the oldest first; those that lead to an endpoint, or may yet, are not.
func TestRoutesAreBounded(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{both: func(c *Config) { c.OutageLimit = time.Second }})
		a := bd.a
		a.routes.room = 16
		live := a.Route(bd.b.Address())
		greet(t, live)
		var dead []*Route
		for i := range 100 {
			dead = append(dead, a.Route(fmt.Sprintf("nobody%d:1", i)))
			greet(t, dead[i])
			pass(2 * time.Second) // it is given up
		}
		require.Len(t, a.undelivered(), 100)
		require.LessOrEqual(t, len(a.allRoutes()), 16+1)
		require.False(t, live.Dropped())
		require.True(t, dead[0].Dropped())
		require.False(t, dead[99].Dropped())
		require.EqualValues(t, 101-len(a.allRoutes()), a.RoutesDropped())
		bd.nobodyDown()
	})
}

// While the node looks for somebody at an address, what waits for that is not forgotten, however many there are.
func TestRoutesThatAreResolvingStay(t *testing.T) {
	virtually(t, func(t *testing.T) {
		a, _, _ := virtualNodes(t, 0)
		a.routes.room = 4
		for i := range 20 {
			greet(t, a.Route(fmt.Sprintf("nobody%d:1", i)))
		}
		require.Len(t, a.allRoutes(), 20)
		_, err := a.leaves(t, time.Second)
		require.NoError(t, err)
		require.Len(t, a.undelivered(), 20)
	})
}

// A route that was forgotten works when it is used again: by itself where the address is not known otherwise, else together with
// the one that took its place, in order.
func TestADroppedRouteIsUsedAgain(t *testing.T) {
	for _, known := range []bool{false, true} {
		t.Run(fmt.Sprint("known again ", known), func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				a, b, _ := virtualNodes(t, time.Millisecond)
				a.routes.room = 4
				old := a.Route(b.Address())
				for i := range 8 {
					a.Route(fmt.Sprintf("nobody%d:1", i))
				}
				require.True(t, old.Dropped())
				next := old
				if known {
					next = a.Route(b.Address())
					require.NotSame(t, old, next)
				}
				for i := range 20 { // also while the connection is being made
					r := []*Route{old, next}[i%2]
					p := make([]byte, leastStamp)
					stamp("t", uint64(i), p)
					require.NoError(t, r.TrySend(&Outgoing{Target: NewRef("t"), Type: NewRef(numberedType), Payload: p}))
					pass(time.Duration(i) * time.Millisecond)
				}
				pass(time.Second)
				require.EqualValues(t, 20, b.arrived("t"))
				require.Same(t, next, a.Route(b.Address()))
				require.Equal(t, known, old.Dropped())
				require.NotNil(t, old.Endpoint())
				require.Same(t, next.Endpoint(), old.Endpoint())
			})
		})
	}
}
