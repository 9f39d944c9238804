package endpoint

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rma"
)

// slowHost takes its time for one message.
type slowHost struct {
	Host
	hold chan struct{}
	held chan struct{}
}

func (h *slowHost) Deliver(from *Endpoint, d *session.Delivery) {
	if d.Target.S == "slow" {
		close(h.held)
		<-h.hold
	}
	h.Host.Deliver(from, d)
}

// While a message of an ended epoch is still being delivered the next one with that peer does not begin, at whichever end it is (rule 8).
func TestTheNextEpochAwaitsTheFormer(t *testing.T) {
	for _, dialer := range []bool{true, false} {
		t.Run(fmt.Sprint("at the dialer ", dialer), func(t *testing.T) {
			virtually(t, func(t *testing.T) {
				h := &slowHost{hold: make(chan struct{}), held: make(chan struct{})}
				lay := func(c *Config) { h.Host, c.Host = c.Host, h }
				spec := bedSpec{b: lay}
				if dialer {
					spec = bedSpec{a: lay}
				}
				bd := virtualBed(t, spec)
				from, at, slow := bd.ab, bd.back(), bd.b
				if dialer {
					from, at, slow = bd.back(), bd.ab, bd.a
				}
				require.NoError(t, from.TrySend(&Outgoing{Target: NewRef("slow"), Type: NewRef("t"), Payload: []byte("take your time")}))
				<-h.held
				at.depart(rma.ErrEndpointDown, nil)
				pass(time.Second)
				require.True(t, at.hasEnded())
				require.False(t, at.still())

				short, done := context.WithTimeout(t.Context(), time.Second)
				defer done()
				_, err := bd.a.Connect(short, bd.b.Address())
				require.Error(t, err)
				connected := make(chan error, 1)
				go func() {
					_, err := bd.a.Connect(t.Context(), bd.b.Address())
					connected <- err
				}()
				pass(2 * time.Second)
				require.Empty(t, connected)
				require.Empty(t, slow.all(), "no epoch that others could use")

				close(h.hold)
				require.NoError(t, <-connected)
				require.True(t, at.still())
				require.Empty(t, slow.former)
			})
		})
	}
}
