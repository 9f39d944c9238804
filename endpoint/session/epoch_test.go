package session

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rma"
	"railyard/wire"
)

func TestWhatAHelloMeans(t *testing.T) {
	there := Standing{First: true, There: true, Agreed: true, Silent: true, Fresh: true}
	for name, c := range map[string]struct {
		change func(*Standing)
		want   Verdict
	}{
		"the session that is here":                     {func(s *Standing) { s.Ours = true }, Joins},
		"though it calls itself the first":             {func(s *Standing) { s.Ours, s.There = true, true }, Joins},
		"a join to a session of an earlier life":       {func(s *Standing) { s.First = false }, Unknown},
		"even where there is none at all":              {func(s *Standing) { s.First, s.There = false, false }, Unknown},
		"the first of a peer that is new here":         {func(s *Standing) { s.There = false }, Opens},
		"two at once, and the peer's wins":             {func(s *Standing) { s.Agreed, s.Opener = false, true }, Yields},
		"though nobody answered ours yet":              {func(s *Standing) { s.Agreed, s.Opener, s.Fresh = false, true, false }, Yields},
		"two at once, and ours wins":                   {func(s *Standing) { s.Agreed, s.Opener, s.Lower = false, true, true }, Busy},
		"another session, and the old one is heard":    {func(s *Standing) { s.Silent = false }, Alive},
		"perhaps the hello of a dead process":          {func(s *Standing) { s.Fresh = false }, Stale},
		"a session that has ended here":                {func(s *Standing) { s.Ended = true }, Unknown},
		"even where there is none now":                 {func(s *Standing) { s.Ended, s.There = true, false }, Unknown},
		"its sender lives, and the old one is silent":  {func(*Standing) {}, Replaces},
		"whoever opened the old one, if it was agreed": {func(s *Standing) { s.Opener, s.Lower = true, true }, Replaces},
	} {
		t.Run(name, func(t *testing.T) {
			s := there
			c.change(&s)
			require.Equal(t, c.want, s.Judge())
		})
	}
}

// fresh is a session with one rail up.
func fresh(t *testing.T) (*Session, *Generation) {
	t.Helper()
	s, err := New(Config{Opener: true}, rma.NewTable(nil, 0))
	require.NoError(t, err)
	require.True(t, s.Silent(), "nobody has been heard yet")
	require.Zero(t, s.SilentSince())
	g := s.Lane(0).Attach(1*time.Second, s.Lane(0).NextGeneration(), nil)
	require.NotNil(t, g)
	return s, g
}

func TestSilentFromWhenTheLastRailIsNotHeard(t *testing.T) {
	s, g := fresh(t)
	require.False(t, s.Silent())
	other := s.Lane(1).Attach(2*time.Second, s.Lane(1).NextGeneration(), nil)
	s.Suspect(3*time.Second, g, nil)
	require.False(t, s.Silent(), "the other rail is heard")
	s.Lost(4*time.Second, other, ErrFenced)
	require.True(t, s.Silent())
	require.Equal(t, 4*time.Second, s.SilentSince())
	s.Trust(5*time.Second, g)
	require.False(t, s.Silent())
	s.Suspect(6*time.Second, g, nil)
	s.Lost(7*time.Second, g, ErrFenced)
	require.True(t, s.Silent())
	require.Equal(t, 6*time.Second, s.SilentSince(), "a silent connection that is lost has been silent before")
}

func TestWhatAChallengeMeans(t *testing.T) {
	s, g := fresh(t)
	one, two := wire.NodeID{1}, wire.NodeID{2}
	require.Equal(t, Meant, s.Greet(true, one, one))
	require.Equal(t, Meant, s.Greet(false, one, two), "nobody has agreed yet: it may be anyone")
	require.Equal(t, Stranger, s.Greet(true, one, two))
	s.Suspect(2*time.Second, g, nil)
	require.Equal(t, Restarted, s.Greet(true, one, two))
}

func TestStillWhenNothingIsInProgress(t *testing.T) {
	s, g := fresh(t)
	require.False(t, s.Still(), "it lives")
	var sc rma.Scatter
	require.NoError(t, g.Want(2*time.Second, &sc))
	s.Close(3*time.Second, ErrFenced)
	require.False(t, s.Still(), "a read call is in progress")
	deliveries, _ := g.Got(4*time.Second, &sc, 0)
	require.Empty(t, deliveries)
	require.True(t, s.Still())
}

func TestOnlyAnEchoOfThisChallengeCounts(t *testing.T) {
	c := &wire.Challenge{Nonce: []byte("fresh")}
	require.True(t, Echoes(c, &wire.Hello{Challenge: []byte("fresh")}))
	require.False(t, Echoes(c, &wire.Hello{Challenge: []byte("stale")}))
	require.False(t, Echoes(c, &wire.Hello{}))
}
