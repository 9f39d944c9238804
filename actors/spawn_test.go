package actors

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/remote"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rail"
	"railyard/rma"
)

// echoes are props of actors that answer every protobuf message with itself.
func echoes() *actor.Props {
	return actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(proto.Message); ok && ctx.Sender() != nil {
			ctx.Respond(m)
		}
	})
}

func withKinds(kinds map[string]*actor.Props) func(*Config) {
	return func(c *Config) { c.Kinds = kinds }
}

func TestSpawn(t *testing.T) {
	a, b := node(t), node(t, withKinds(map[string]*actor.Props{"echo": echoes()}))
	ctx := testContext(t)
	one, err := a.Spawn(ctx, b.Address(), "echo")
	require.NoError(t, err)
	two, err := a.Spawn(ctx, b.Address(), "echo")
	require.NoError(t, err)
	require.NotEqual(t, one.String(), two.String())
	named, err := a.SpawnNamed(ctx, b.Address(), "me", "echo")
	require.NoError(t, err)
	for _, pid := range []*actor.PID{one, two, named} {
		require.Equal(t, b.Address(), pid.Address)
		answer, err := a.sys.Root.RequestFuture(pid, text("hello"), patience).Result()
		require.NoError(t, err)
		require.Equal(t, "hello", textOf(t, answer))
	}
	again, err := a.SpawnNamed(ctx, b.Address(), "me", "echo")
	require.ErrorIs(t, err, ErrNameTaken)
	require.Equal(t, named.String(), again.String(), "whose it is")

	// The name is free when its actor has stopped, and the watcher of a spawned actor is told.
	w := newWatcher(a)
	w.order(t, named, false)
	require.NoError(t, a.sys.Root.PoisonFuture(named).Wait())
	w.once(t, named, actor.TerminatedReason_Stopped)
	eventually(t, func() bool {
		again, err = a.SpawnNamed(ctx, b.Address(), "me", "echo")
		return err == nil
	}, "the name is free")
	require.Equal(t, named.String(), again.String())

	local, err := b.Spawn(ctx, b.Address(), "echo")
	require.NoError(t, err, "a node asks itself")
	_, err = b.sys.Root.RequestFuture(local, text("hello"), patience).Result()
	require.NoError(t, err)
}

// protoactor's own messages do the same: programs that ask the activator themselves need no change.
func TestSpawnByProtoactorsProtocol(t *testing.T) {
	a, b := node(t), node(t, withKinds(map[string]*actor.Props{"echo": echoes()}))
	answer, err := a.sys.Root.RequestFuture(b.at("activator"),
		&remote.ActorPidRequest{Name: "x", Kind: "echo"}, patience).Result()
	require.NoError(t, err)
	response := answer.(*remote.ActorPidResponse)
	require.Zero(t, response.StatusCode)
	require.True(t, strings.HasSuffix(response.Pid.Id, "/Remote$x"), response.Pid.Id)
}

func TestWhatIsNotSpawned(t *testing.T) {
	broken := actor.PropsFromFunc(func(actor.Context) {}, actor.WithSpawnFunc(
		func(*actor.ActorSystem, string, *actor.Props, actor.SpawnerContext) (*actor.PID, error) {
			return nil, errors.New("no disk")
		}))
	panics := actor.PropsFromFunc(func(actor.Context) {}, actor.WithSpawnFunc(
		func(*actor.ActorSystem, string, *actor.Props, actor.SpawnerContext) (*actor.PID, error) {
			panic("a bug")
		}))
	a := node(t)
	b := node(t, func(c *Config) {
		c.Kinds = map[string]*actor.Props{"echo": echoes(), "secret": echoes(), "broken": broken, "panics": panics}
		c.MaxSpawned = 2
		c.Authorize = func(x Access) error {
			if x.Kind == "secret" {
				return errors.New("not for " + x.Peer)
			}
			return nil
		}
	})
	ctx := testContext(t)
	first, err := a.SpawnNamed(ctx, b.Address(), "first", "echo")
	require.NoError(t, err)
	facts := b.Events().Subscribe(ctx)
	for kind, want := range map[string]error{
		"nothing": ErrUnknownKind, "": ErrUnknownKind, "secret": ErrNotAllowed, "broken": ErrSpawnFailed, "panics": ErrSpawnFailed,
	} {
		_, err := a.Spawn(ctx, b.Address(), kind)
		require.ErrorIs(t, err, want, kind)
		require.Contains(t, err.Error(), b.Address())
	}
	for {
		if e := next(t, facts, "the refusal, at the receiver"); e.Kind == rail.MessageRefused {
			require.ErrorIs(t, e.Cause, ErrNotAllowed)
			require.Contains(t, e.Cause.Error(), "not for "+a.Address())
			break
		}
	}
	_, err = a.SpawnNamed(ctx, b.Address(), strings.Repeat("n", 600), "echo")
	require.ErrorIs(t, err, ErrSpawnFailed)
	_, err = a.Spawn(ctx, b.Address(), "echo")
	require.NoError(t, err)
	_, err = a.Spawn(ctx, b.Address(), "echo")
	require.ErrorIs(t, err, ErrTooManySpawned)

	// Nothing else reaches the activator.
	for _, name := range []string{"activator", activatorID} {
		a.sys.Root.Stop(b.at(name))
		a.sys.Root.Poison(b.at(name))
		_, err = a.sys.Root.RequestFuture(b.at(name), text("x"), patience).Result()
		require.ErrorIs(t, err, actor.ErrDeadLetter)
	}
	_, err = a.sys.Root.RequestFuture(first, text("still there"), patience).Result()
	require.NoError(t, err)

	brief, done := context.WithTimeout(ctx, 50*time.Millisecond)
	defer done()
	_, err = a.Spawn(brief, "127.0.0.1:1", "echo")
	require.Error(t, err)
	require.NoError(t, b.Shutdown(ctx))
	_, err = b.Spawn(ctx, a.Address(), "echo")
	require.ErrorIs(t, err, rma.ErrShutdown)
}

// What was sent before Shutdown is processed by spawned actors too, and then they are gone.
func TestShutdownEndsWhatWasSpawned(t *testing.T) {
	const count = 200
	processed := make(chan struct{}, count)
	stopped := make(chan struct{}, 1)
	begin := make(chan struct{})
	a, b := node(t), node(t, withKinds(map[string]*actor.Props{"slow": actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *wrapperspb.StringValue:
			<-begin
			processed <- struct{}{}
		case *actor.Stopped:
			stopped <- struct{}{}
		}
	})}))
	ctx := testContext(t)
	pid, err := a.Spawn(ctx, b.Address(), "slow")
	require.NoError(t, err)
	for range count {
		require.NoError(t, a.Send(ctx, pid, text("x")))
	}
	e, err := a.Connect(ctx, b.Address())
	require.NoError(t, err)
	require.NoError(t, e.Flush(ctx))
	close(begin)
	require.NoError(t, b.Shutdown(ctx))
	require.Len(t, processed, count)
	next(t, stopped, "the end of what was spawned")
	_, there := b.sys.ProcessRegistry.GetLocal(activatorID)
	require.False(t, there)
}

func TestPeersReachWhatIsAllowed(t *testing.T) {
	a := node(t)
	b := node(t, func(c *Config) {
		c.Allow = []string{"open", "orders/*"}
		c.Authorize = func(x Access) error {
			if x.Target == "orders/secret" {
				return errors.New("not that one")
			}
			return nil
		}
	})
	_, hidden := b.inbox(t, "hidden")
	for _, name := range []string{"open", "orders/1", "orders/secret"} {
		b.echo(t, name)
	}
	for _, name := range []string{"open", "orders/1"} {
		_, err := a.sys.Root.RequestFuture(b.at(name), text("x"), patience).Result()
		require.NoError(t, err, name)
	}
	w := newWatcher(a)
	told := events[*MessageUndelivered](t, a.sys)
	for _, name := range []string{"hidden", "orders/secret"} {
		_, err := a.sys.Root.RequestFuture(b.at(name), text("x"), patience).Result()
		require.ErrorIs(t, err, actor.ErrDeadLetter, name)
		w.order(t, b.at(name), false)
		w.once(t, b.at(name), actor.TerminatedReason_NotFound)
		a.sys.Root.Stop(b.at(name))
		for _, what := range []string{"google.protobuf.StringValue", "actor.Watch", "actor.Stop"} {
			u := next(t, told, "this end learns of each refusal")
			require.ErrorIs(t, u.Cause, ErrNotAllowed)
			require.Equal(t, name, u.Target.Id)
			require.Equal(t, what, u.Message.(*Undecoded).Type)
		}
		_, err = a.sys.Root.RequestFuture(b.at("open"), text("all before has come"), patience).Result()
		require.NoError(t, err)
	}
	_, alive := b.sys.ProcessRegistry.GetLocal("hidden")
	require.True(t, alive)
	require.Empty(t, hidden)
	// Answers come back to futures, and watchers are told, whatever the list says.
	a.echo(t, "echo")
	_, err := b.sys.Root.RequestFuture(a.at("echo"), text("x"), patience).Result()
	require.NoError(t, err)
	back := newWatcher(b)
	back.order(t, a.at("echo"), false)
	settled(t, "the watch has come", func() bool { return a.watched.count() == 1 })
	require.NoError(t, a.sys.Root.StopFuture(a.at("echo")).Wait())
	back.once(t, a.at("echo"), actor.TerminatedReason_Stopped)
}
