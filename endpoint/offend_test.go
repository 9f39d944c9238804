package endpoint

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/wire"
)

func TestOffendersAreBounded(t *testing.T) {
	o := newOffenders()
	for i := range maxOffenders + 10 {
		o.fail(fmt.Sprint("host", i), time.Second)
	}
	require.Len(t, o.by, maxOffenders)
	o.fail("host1", time.Second+failureEvery)
	require.Len(t, o.by, maxOffenders)
	o.fail("late", time.Second+failureEvery)
	require.Contains(t, o.by, "late")
	require.Contains(t, o.by, "host1", "it failed again just now")
	require.Len(t, o.by, 2, "the others have their room back")
	for i := range maxOffenders + 1 {
		o.prove(fmt.Sprint("peer", i))
	}
	require.Len(t, o.proven, 1)
}

func TestWhatIsAnOffence(t *testing.T) {
	for text, c := range map[string]struct {
		err  error
		does bool
	}{
		"a broken path":   {errors.New("connection reset"), false},
		"a busy node":     {&RefusedError{Code: wire.RefusalCode_BUSY}, false},
		"no secret":       {&RefusedError{Code: wire.RefusalCode_UNAUTHENTIC}, true},
		"no frame":        {fmt.Errorf("hello: %w", wire.ErrMalformed), true},
		"an old hello":    {errNoEcho, true},
		"only a look":     {wordless(errHungUp), false},
		"a later version": {&RefusedError{Code: wire.RefusalCode_VERSION}, true},
	} {
		require.Equal(t, c.does, offends(c.err), text)
	}
}

// A host whose callers fail again and again is not greeted for a while. Others are, and it too when it has let some time go by; and
// one from which a peer has come always is.
func TestAHostThatFailsIsNotAnswered(t *testing.T) {
	virtually(t, func(t *testing.T) {
		bd := virtualBed(t, bedSpec{rails: 1, both: func(c *Config) { c.Secret = callerSecret }})
		greeted := func(host string) bool {
			conn, err := bd.b.cfg.Kinds[bd.kind].Dial(t.Context(), host+":1", bd.b.Listening()[0].Address)
			require.NoError(t, err)
			defer conn.Close()
			require.NoError(t, conn.SetDeadline(time.Now().Add(patience)))
			c := &wire.Challenge{}
			if wire.ReadHandshake(conn, wire.KindChallenge, c) != nil {
				return false
			}
			_, err = conn.Write(make([]byte, wire.HeaderSize)) // no hello
			require.NoError(t, err)
			require.Zero(t, hungUp(t, conn))
			pass(0)
			return true
		}
		for range failuresAtOnce {
			require.True(t, greeted("stranger"))
			require.True(t, greeted("a0"), "a peer's host")
		}
		require.False(t, greeted("stranger"))
		require.True(t, greeted("a0"))
		require.True(t, greeted("neighbor"))
		pass(failureEvery)
		require.True(t, greeted("stranger"))
		require.False(t, greeted("stranger"))
		bd.cables[0].Reset()
		bd.allUp()
		bd.nobodyDown()
	})
}
