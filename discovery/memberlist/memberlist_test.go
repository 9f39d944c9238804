package memberlist_test

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"railyard/actors"
	"railyard/discovery"
	"railyard/discovery/memberlist"
	"railyard/rail"
)

const patience = 30 * time.Second

// Goroutines of others that end by themselves: protoactor's a second after a dead letter has been logged, memberlist's when the
// probe that it is in has timed out.
const (
	throttle = "github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"
	probing  = "github.com/hashicorp/memberlist.(*Memberlist).triggerFunc"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(throttle), goleak.IgnoreAnyFunction(probing))
}

// side is a node, a member, and what keeps the node connected.
type side struct {
	node   *actors.Node
	list   *memberlist.Finder
	keeper *discovery.Keeper
}

func begin(t *testing.T, seeds ...string) *side {
	t.Helper()
	system := actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	s := new(side)
	var err error
	s.node, err = actors.Start(system, actors.Config{Rails: []rail.Binding{rail.TCP("127.0.0.1:0")}, Secret: []byte("for tests")})
	require.NoError(t, err)
	s.list, err = memberlist.Join(memberlist.Config{
		Node: s.node.Address(), Bind: "127.0.0.1:0", Seeds: seeds, Secret: []byte("for tests too")})
	require.NoError(t, err)
	s.keeper, err = discovery.Keep(discovery.Config{Node: s.node, Finder: s.list, Interval: 200 * time.Millisecond})
	require.NoError(t, err)
	t.Cleanup(func() { s.end(t) })
	return s
}

func (s *side) end(t *testing.T) {
	if s.list == nil {
		return
	}
	s.keeper.Close()
	require.NoError(t, s.list.Leave(time.Second))
	s.list = nil
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	require.NoError(t, s.node.Shutdown(ctx))
}

func (s *side) knows(t *testing.T, others ...*side) {
	t.Helper()
	var want []string
	for _, o := range others {
		want = append(want, o.node.Address())
	}
	slices.Sort(want)
	require.Eventually(t, func() bool { return slices.Equal(want, s.keeper.Peers()) }, patience, time.Millisecond)
}

// Three that know one of them know each other, and know of one that leaves.
func TestMembersFindEachOther(t *testing.T) {
	a := begin(t)
	b, c := begin(t, a.list.Bound()), begin(t, a.list.Bound())
	a.knows(t, b, c)
	b.knows(t, a, c)
	c.knows(t, a, b)
	b.end(t)
	a.knows(t, c)
	c.knows(t, a)
}

func TestSettingsAreRefused(t *testing.T) {
	for _, cfg := range []memberlist.Config{
		{Node: "x:1", Bind: "nowhere"}, {Node: "x:1", Bind: "127.0.0.1:99999"}, {Bind: "127.0.0.1:0"},
		{Node: "x:1", Bind: "192.0.2.1:0"}, {Node: string(make([]byte, 1000)), Bind: "127.0.0.1:0"},
	} {
		_, err := memberlist.Join(cfg)
		require.ErrorIs(t, err, memberlist.ErrConfig)
	}
}
