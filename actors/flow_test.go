package actors

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rma"
)

// narrow makes a node's window small.
func narrow(c *Config) { c.MaxMessage, c.Window = 64<<10, 512<<10 }

// gate is an actor that processes nothing until it is let, and counts.
type gate struct {
	open chan struct{}
	got  atomic.Int64
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
		<-g.open
		g.got.Add(1)
	}
}

func (n testNode) gate(t testing.TB, name string, opts ...actor.PropsOption) *gate {
	t.Helper()
	g := newGate()
	_, err := n.sys.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor { return g }, opts...), name)
	require.NoError(t, err)
	t.Cleanup(g.letGo)
	return g
}

func (g *gate) letGo() {
	select {
	case <-g.open:
	default:
		close(g.open)
	}
}

// fill sends messages of 16 KiB until one finds no room, and gives their number.
func fill(t testing.TB, from testNode, to *actor.PID) (sent int) {
	t.Helper()
	for {
		ctx, done := context.WithTimeout(context.Background(), 100*time.Millisecond)
		err := from.Send(ctx, to, wrapperspb.Bytes(make([]byte, 16<<10)))
		done()
		if err != nil {
			require.ErrorIs(t, err, rma.ErrWindowFull)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			return sent
		}
		sent++
		require.Less(t, sent, 1000, "nothing holds the sender up")
	}
}

// settled waits until the condition holds.
func settled(t testing.TB, what string, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, patience, 2*time.Millisecond, what)
}

// connected lets a's first message to b be through, so that it waits for no connection.
func connected(t testing.TB, a, b testNode) {
	t.Helper()
	_, err := a.Connect(testContext(t), b.Address())
	require.NoError(t, err)
}

// What an actor has not processed takes room of the window, in its mailbox as on the way; an actor that is slow takes
// half of it at most; all of it comes back when it goes on.
func TestRoomComesBackWhenAMessageIsProcessed(t *testing.T) {
	for name, opts := range map[string][]actor.PropsOption{
		"default mailbox":  nil,
		"priority mailbox": {actor.WithMailbox(actor.UnboundedPriority())},
		"other mailbox":    {actor.WithMailbox(func() actor.Mailbox { return &strangeMailbox{Mailbox: actor.Unbounded()()} })},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := node(t), node(t, narrow)
			connected(t, a, b)
			g := b.gate(t, "slow", opts...)
			sent := fill(t, a, b.at("slow"))
			require.LessOrEqual(t, sent, 512/16/2+1, "more than its share")
			require.GreaterOrEqual(t, sent, 512/16/2-2, "less than its share")

			_, got := b.inbox(t, "other")
			for range 100 {
				require.NoError(t, a.Send(testContext(t), b.at("other"), wrapperspb.Bytes(make([]byte, 16<<10))))
				next(t, got, "another actor's message")
			}
			require.Zero(t, g.got.Load())
			settled(t, "the other has processed all of its own", func() bool { return b.Flow()[0].Busy == 1 })
			require.Positive(t, a.Flow()[0].Out.Full)
			require.GreaterOrEqual(t, b.Flow()[0].Unprocessed, uint64((sent-1)*16<<10))

			g.letGo()
			for range 100 {
				require.NoError(t, a.Send(testContext(t), b.at("slow"), wrapperspb.Bytes(make([]byte, 16<<10))))
			}
			settled(t, "all is processed", func() bool { return g.got.Load() == int64(sent+100) })
			settled(t, "all room is given back", func() bool {
				f := b.Flow()[0]
				return f.Unprocessed == 0 && f.Busy == 0
			})
		})
	}
}

// strangeMailbox is a kind of mailbox that protoactor does not have.
type strangeMailbox struct{ actor.Mailbox }

// An actor that ends, or fails, gives back what it leaves in its mailbox.
func TestRoomComesBackWhenTheActorEnds(t *testing.T) {
	for name, end := range map[string]func(n testNode, pid *actor.PID, g *gate){
		"stop": func(n testNode, pid *actor.PID, g *gate) {
			n.sys.Root.Stop(pid)
			g.letGo()
		},
		"poison": func(n testNode, pid *actor.PID, g *gate) {
			n.sys.Root.Poison(pid)
			g.letGo()
		},
	} {
		t.Run(name, func(t *testing.T) {
			a, b := node(t), node(t, narrow)
			connected(t, a, b)
			g := b.gate(t, "ends")
			pid := b.at("ends")
			require.Positive(t, fill(t, a, pid))
			end(b, b.sys.NewLocalPID("ends"), g)
			settled(t, "the actor is gone", func() bool {
				_, alive := b.sys.ProcessRegistry.GetLocal("ends")
				return !alive
			})
			_, got := b.inbox(t, "ends") // another one by that name
			for range 100 {
				require.NoError(t, a.Send(testContext(t), pid, wrapperspb.Bytes(make([]byte, 16<<10))))
				next(t, got, "what is sent to its successor")
			}
			settled(t, "nothing is held", func() bool { return b.Flow()[0].Unprocessed == 0 })
		})
	}
	t.Run("panic, and its supervisor stops it", func(t *testing.T) {
		a, b := node(t), node(t, narrow)
		connected(t, a, b)
		open := make(chan struct{})
		props := actor.PropsFromFunc(func(ctx actor.Context) {
			if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
				<-open
				panic("on purpose")
			}
		}, actor.WithGuardian(actor.NewOneForOneStrategy(1, time.Second, func(any) actor.Directive { return actor.StopDirective })))
		_, err := b.sys.Root.SpawnNamed(props, "fails")
		require.NoError(t, err)
		require.Positive(t, fill(t, a, b.at("fails")))
		close(open)
		settled(t, "nothing is held", func() bool { return b.Flow()[0].Unprocessed == 0 })
	})
}

// What is for nobody, for a future, or not to be read, takes no room once it has come.
func TestNobodyKeepsNoRoom(t *testing.T) {
	a, b := node(t), node(t, narrow)
	connected(t, a, b)
	for range 200 {
		require.NoError(t, a.Send(testContext(t), b.at("nobody"), wrapperspb.Bytes(make([]byte, 16<<10))))
		require.NoError(t, a.Send(testContext(t), b.at("nobody"), foreign(t, "nowhere", "Unknown", make([]byte, 16<<10))))
	}
	settled(t, "nothing is held", func() bool { return b.Flow()[0].Unprocessed == 0 })
}

// However many actors are slow, there is room for one that is not.
func TestManySlowActors(t *testing.T) {
	a, b := node(t), node(t, narrow)
	connected(t, a, b)
	total := 0
	for _, name := range []string{"1", "2", "3", "4", "5", "6"} {
		b.gate(t, name)
		total += fill(t, a, b.at(name))
	}
	require.LessOrEqual(t, total*16<<10, 512<<10)
	_, got := b.inbox(t, "quick")
	for range 100 {
		require.NoError(t, a.Send(testContext(t), b.at("quick"), wrapperspb.Bytes(make([]byte, 8<<10))))
		next(t, got, "the quick actor's message")
	}
}

// Two actors that send to each other from inside Receive, more than both windows hold: each Send waits, some messages become
// dead letters that say why, and then both go on.
func TestFloodsFromReceiveDoNotDeadlock(t *testing.T) {
	const rounds = 100
	small := func(c *Config) { c.MaxMessage, c.Window, c.SendWait = 64<<10, 64<<10*5/4+128<<10, 100*time.Millisecond }
	a, b := node(t, small), node(t, small)
	var got, lost atomic.Int64
	for _, n := range []testNode{a, b} {
		sub := n.sys.EventStream.Subscribe(func(e any) {
			if u, ok := e.(*MessageUndelivered); ok {
				require.ErrorIs(t, u.Cause, rma.ErrWindowFull)
				lost.Add(1)
			}
		})
		t.Cleanup(func() { n.sys.EventStream.Unsubscribe(sub) })
	}
	flood := func(peer *actor.PID) *actor.Props {
		return actor.PropsFromFunc(func(ctx actor.Context) {
			switch ctx.Message().(type) {
			case *wrapperspb.BoolValue:
				for range rounds {
					ctx.Send(peer, wrapperspb.Bytes(make([]byte, 16<<10)))
				}
			case *wrapperspb.BytesValue:
				got.Add(1)
			}
		})
	}
	for _, side := range []struct{ n, peer testNode }{{a, b}, {b, a}} {
		pid, err := side.n.sys.Root.SpawnNamed(flood(side.peer.at("flood")), "flood")
		require.NoError(t, err)
		side.n.sys.Root.Send(pid, wrapperspb.Bool(true))
	}
	settled(t, "each message has arrived, or is a dead letter", func() bool { return got.Load()+lost.Load() == 2*rounds })
	require.Positive(t, got.Load())
}

// Two actors that answer each message by another, and are given many at once, lose nothing.
func TestFloodsByAnswersLoseNothing(t *testing.T) {
	const balls, bounces = 64, 20
	small := func(c *Config) { c.MaxMessage, c.Window = 64<<10, 64<<10*5/4+128<<10 }
	a, b := node(t, small), node(t, small)
	done := make(chan struct{}, balls)
	bounce := func(peer *actor.PID) *actor.Props {
		return actor.PropsFromFunc(func(ctx actor.Context) {
			m, ok := ctx.Message().(*wrapperspb.BytesValue)
			if !ok {
				return
			}
			if m.GetValue()[0]++; m.GetValue()[0] == bounces {
				done <- struct{}{}
				return
			}
			ctx.Send(peer, m)
		})
	}
	_, err := a.sys.Root.SpawnNamed(bounce(b.at("court")), "court")
	require.NoError(t, err)
	_, err = b.sys.Root.SpawnNamed(bounce(a.at("court")), "court")
	require.NoError(t, err)
	for range balls {
		require.NoError(t, a.Send(testContext(t), b.at("court"), wrapperspb.Bytes(make([]byte, 1<<10))))
	}
	for range balls {
		next(t, done, "a ball that came through")
	}
}

// While one actor takes a millisecond a message and is flooded, another one on its node answers at once.
func TestASlowActorSlowsNobodyElse(t *testing.T) {
	const size = 64 << 10
	count := 2048
	a, b := node(t), node(t)
	var slow atomic.Int64
	_, err := b.sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if _, ok := ctx.Message().(*wrapperspb.BytesValue); ok {
			time.Sleep(time.Millisecond)
			slow.Add(1)
		}
	}), "slow")
	require.NoError(t, err)
	b.echo(t, "quick")
	go func() {
		for range count {
			a.sys.Root.Send(b.at("slow"), wrapperspb.Bytes(make([]byte, size)))
		}
	}()
	var took []time.Duration
	for slow.Load() < int64(count) {
		began := time.Now()
		_, err := a.sys.Root.RequestFuture(b.at("quick"), text("?"), patience).Result()
		require.NoError(t, err)
		took = append(took, time.Since(began))
		require.LessOrEqual(t, b.Flow()[0].Unprocessed, uint64(DefaultMaxMessage), "the window bounds what waits")
		time.Sleep(time.Millisecond)
	}
	slices.Sort(took)
	t.Logf("%d requests beside the flood: p50 %v, p99 %v", len(took), took[len(took)/2], took[len(took)*99/100])
	require.Less(t, took[len(took)/2], time.Second, "requests wait behind another actor's messages")
}

// What flow control looks for inside protoactor is there; where it is not, a node does not start.
func TestLookInside(t *testing.T) {
	require.NoError(t, errInside)
	box := actor.Unbounded()()
	require.NotNil(t, mailboxOf(actor.NewActorProcess(box)).status, "protoactor's mailbox shows its status")
	require.Same(t, box, mailboxOf(actor.NewActorProcess(box)).box)
	require.Nil(t, mailboxOf(actor.NewActorProcess(&strangeMailbox{box})).status)
}
