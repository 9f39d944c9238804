package actors

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/rail"
	"railyard/rma"
)

// childEnv makes the test binary a node process: it holds the rail's address.
const childEnv = "RAILYARD_TEST_CHILD"

// throttle is protoactor's: a goroutine that lives for a second after a dead letter has been logged, and ends by itself.
const throttle = "github.com/asynkron/protoactor-go/actor.NewDeadLetter.NewThrottle.func4.1"

func TestMain(m *testing.M) {
	if rails := os.Getenv(childEnv); rails != "" {
		os.Exit(child(rails))
	}
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(throttle))
}

// child is a node with an actor "echo" and a region; it says its address and key, and ends when its
// input does.
func child(rails string) int {
	cfg := loopback(0)
	cfg.Rails = []rail.Binding{rail.TCP(rails)}
	sys := quietSystem()
	n, err := Start(sys, cfg)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	_, err = sys.Root.SpawnNamed(actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(proto.Message); ok && ctx.Sender() != nil {
			ctx.Respond(m)
		}
	}), "echo")
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	for name, props := range childProps(n) {
		if _, err = sys.Root.SpawnNamed(props, name); err != nil {
			fmt.Println("error", err)
			return 1
		}
	}
	region, err := n.Register(make([]byte, 1<<20), rma.RemoteWrite|rma.RemoteRead)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	key, err := region.Key().MarshalBinary()
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	fmt.Println("node", n.Address(), hex.EncodeToString(key))
	_, _ = io.Copy(io.Discard, os.Stdin)
	ctx, done := context.WithTimeout(context.Background(), patience)
	defer done()
	_ = n.Shutdown(ctx) // so that who is connected hears a goodbye
	return 0
}

// childActors is how many actors a child has that do nothing.
const childActors = 100

func childActor(i int) string { return fmt.Sprint("silent", i) }

// childProps are the actors of a child besides echo: silent ones, "slow", which counts what it is sent, one message a
// millisecond, and "flood", which sends to another child's slow actor.
func childProps(n *Node) map[string]*actor.Props {
	silent := actor.PropsFromFunc(func(actor.Context) {})
	all := map[string]*actor.Props{"silent": silent}
	for i := range childActors {
		all[childActor(i)] = silent
	}
	count := uint64(0)
	all["slow"] = actor.PropsFromFunc(func(ctx actor.Context) {
		switch m := ctx.Message().(type) {
		case []byte:
			if binary.BigEndian.Uint64(m) == count { // in order, and each once
				count++
			}
			time.Sleep(time.Millisecond)
		case *wrapperspb.BoolValue:
			ctx.Respond(wrapperspb.UInt64(count))
		}
	})
	all["flood"] = actor.PropsFromFunc(func(ctx actor.Context) {
		if m, ok := ctx.Message().(*wrapperspb.StringValue); ok {
			go flood(n, m.GetValue(), ctx.Sender())
		}
	})
	return all
}

// flood sends to the slow actor at an address, so many messages of a size, and then what that has counted to asker.
func flood(n *Node, order string, asker *actor.PID) {
	var address string
	var count, size int
	if _, err := fmt.Sscan(order, &address, &count, &size); err != nil {
		panic(err)
	}
	to := actor.NewPID(address, "slow")
	for i := range count {
		m := make([]byte, size)
		binary.BigEndian.PutUint64(m, uint64(i))
		if err := n.Send(context.Background(), to, m); err != nil {
			panic(err)
		}
	}
	if err := n.Send(context.Background(), to, &actor.MessageEnvelope{Message: wrapperspb.Bool(true), Sender: asker}); err != nil {
		panic(err)
	}
}

// childNode is a node in a process of its own.
type childNode struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	address string
	key     rma.Key
	gone    bool
}

// startChild starts one at address ("127.0.0.1:0": any port); it ends with the test at the latest, in order.
func startChild(t *testing.T, address string) *childNode {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+address)
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	require.NoError(t, cmd.Start())
	c := &childNode{cmd: cmd, stdin: stdin}
	t.Cleanup(c.end)
	line := make(chan string, 1)
	go func() {
		s, _ := bufio.NewReader(stdout).ReadString('\n')
		line <- s
	}()
	fields := strings.Fields(next(t, line, "the child's address"))
	require.Len(t, fields, 3, "%v %s", fields, &stderr)
	require.Equal(t, "node", fields[0])
	c.address = fields[1]
	key, err := hex.DecodeString(fields[2])
	require.NoError(t, err)
	require.NoError(t, c.key.UnmarshalBinary(key))
	return c
}

// end has the process say goodbye: what this side has sent it and is not told of yet would hold up its own end.
func (c *childNode) end() {
	if c.gone {
		return
	}
	_ = c.stdin.Close()
	late := time.AfterFunc(2*patience, func() { _ = c.cmd.Process.Kill() })
	defer late.Stop()
	_ = c.cmd.Wait() // an error for a process that was killed
	c.gone = true
}

// kill ends the process without a goodbye, and waits until it is gone.
func (c *childNode) kill() {
	_ = c.cmd.Process.Kill()
	c.end()
}

func (c *childNode) at(id string) *actor.PID { return actor.NewPID(c.address, id) }

// eventually asks until cond holds.
func eventually(t testing.TB, cond func() bool, what string) {
	t.Helper()
	require.Eventually(t, cond, patience, time.Millisecond, what)
}
