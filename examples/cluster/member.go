package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/asynkron/protoactor-go/cluster"
	"github.com/asynkron/protoactor-go/cluster/clusterproviders/automanaged"
	"github.com/asynkron/protoactor-go/cluster/identitylookup/disthash"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/actors"
	"railyard/rail"
)

const (
	kind  = "counter" // of our grains
	topic = "news"
	// lookEvery is how often the provider looks for members.
	lookEvery = 300 * time.Millisecond
	// callTime bounds one try of a call; whoever calls tries again.
	callTime = 2 * time.Second
	endTime  = 5 * time.Second
)

// settings are a member's.
type settings struct {
	name  string
	port  int
	hosts []string
}

// member is one process of the cluster.
type member struct {
	system  *actor.ActorSystem
	node    *actors.Node
	cluster *cluster.Cluster
}

// join starts a member. The rails come first: they answer for every address from then on, so that all that the cluster sends
// goes over them.
func join(s settings) (*member, error) {
	system := actor.NewActorSystem(actor.WithLoggerFactory(quiet))
	node, err := actors.Start(system, actors.Config{
		Name:   s.name,
		Rails:  []rail.Binding{rail.TCP("127.0.0.1:0"), rail.TCP("127.0.0.1:0")},
		Secret: []byte("known to members only"),
		// A member that is gone is to be given up soon, so that calls that wait for it fail and are tried elsewhere.
		OutageLimit: 2 * time.Second,
	})
	if err != nil {
		return nil, err
	}
	provider := automanaged.NewWithConfig(lookEvery, s.port, s.hosts...)
	c := cluster.New(system, cluster.Configure("orchard", provider, disthash.New(), actors.ClusterRemote(node),
		cluster.WithKinds(cluster.NewKind(kind, counters())),
		cluster.WithRequestTimeout(callTime)))
	c.StartMember()
	return &member{system, node, c}, nil
}

// leave says goodbye: to the cluster first, then to the peers' nodes.
func (m *member) leave() error {
	m.cluster.Shutdown(true)
	ctx, done := context.WithTimeout(context.Background(), endTime)
	defer done()
	return m.node.Shutdown(ctx)
}

// counters are grains that count their calls, in memory: one that moves to another member begins again.
func counters() *actor.Props {
	return actor.PropsFromProducer(func() actor.Actor { return new(counter) })
}

type counter struct{ calls int }

// Receive implements actor.Actor.
func (c *counter) Receive(ctx actor.Context) {
	if _, ok := ctx.Message().(*emptypb.Empty); ok {
		c.calls++
		ctx.Respond(wrapperspb.String(fmt.Sprintf("%d at %s", c.calls, ctx.Self().Address)))
	}
}

// serve is a member that does what the lines of its input say, and answers each with a line.
func serve(ctx context.Context, s settings, in io.Reader, out io.Writer) error {
	m, err := join(s)
	if err != nil {
		return err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scan := bufio.NewScanner(in); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	tell := printer(out)
	tell("ready %s", m.node.Address())
	for {
		select {
		case <-ctx.Done():
			return m.leave()
		case line, ok := <-lines:
			if !ok {
				return m.leave()
			}
			m.obey(ctx, line, tell)
		}
	}
}

func (m *member) obey(ctx context.Context, line string, tell func(string, ...any)) {
	command, rest, _ := strings.Cut(line, " ")
	switch command {
	case "members":
		gossip, err := m.cluster.Gossip.GetState(cluster.HeartbeatKey)
		if err != nil {
			tell("failed %v", err)
			return
		}
		heard := 0 // of those that are there; gossip remembers others as well
		for id := range gossip {
			if m.cluster.MemberList.ContainsMemberID(id) {
				heard++
			}
		}
		tell("members %d gossip %d", m.cluster.MemberList.Length(), heard)
	case "call":
		answer, err := m.cluster.Request(rest, kind, &emptypb.Empty{})
		if text, ok := answer.(*wrapperspb.StringValue); ok {
			tell("answer %s", text.GetValue())
			return
		}
		tell("failed %T %v", answer, err)
	case "subscribe":
		_, err := m.cluster.SubscribeWithReceive(topic, func(ctx actor.Context) {
			if text, ok := ctx.Message().(*wrapperspb.StringValue); ok {
				tell("heard %s", text.GetValue())
			}
		})
		report(tell, "subscribed", err)
	case "publish":
		_, err := m.cluster.Publisher().Publish(ctx, topic, wrapperspb.String(rest))
		report(tell, "published", err)
	default:
		tell("failed unknown command %q", command)
	}
}

func report(tell func(string, ...any), done string, err error) {
	if err != nil {
		tell("failed %v", err)
		return
	}
	tell("%s", done)
}

// said begins each line that is for the story: protoactor's provider prints lines of its own.
const said = "> "

// printer prints whole lines, from any goroutine.
func printer(out io.Writer) func(format string, args ...any) {
	var mu sync.Mutex
	return func(format string, args ...any) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintf(out, said+format+"\n", args...)
	}
}

// quiet is a logger for protoactor, which calls many ordinary things errors.
func quiet(*actor.ActorSystem) *slog.Logger {
	if os.Getenv("CLUSTER_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}
