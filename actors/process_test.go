package actors

import (
	"bufio"
	"bytes"
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
	_, err = sys.Root.SpawnNamed(actor.PropsFromFunc(func(actor.Context) {}), "silent")
	if err != nil {
		fmt.Println("error", err)
		return 1
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
	return 0
}

// childNode is a node in a process of its own.
type childNode struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	address string
	key     rma.Key
}

// startChild starts one at address ("127.0.0.1:0": any port); the test kills it at its end at the
// latest.
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
	t.Cleanup(c.kill)
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

// kill ends the process without a goodbye, and waits until it is gone.
func (c *childNode) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.stdin.Close()
	_ = c.cmd.Wait() // an error for a process that was killed
}

func (c *childNode) at(id string) *actor.PID { return actor.NewPID(c.address, id) }

// eventually asks until cond holds.
func eventually(t testing.TB, cond func() bool, what string) {
	t.Helper()
	require.Eventually(t, cond, patience, time.Millisecond, what)
}
