package endpoint

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/rma"
)

// idleEnv makes the test binary the client of TestIdleConnections: "address count".
const idleEnv = "RAILYARD_TEST_IDLE"

// idleClient opens connections that say nothing, says so on its standard output, and holds them until its input ends.
func idleClient(order string) {
	var address string
	var n int
	if _, err := fmt.Sscan(order, &address, &n); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	held := make([]net.Conn, 0, n)
	failed := 0
	for range n {
		c, err := net.DialTimeout("tcp", address, 10*time.Second)
		if err != nil {
			failed++
			continue
		}
		held = append(held, c)
	}
	fmt.Println(len(held), failed)
	_, _ = bufio.NewReader(os.Stdin).ReadByte() // until the test ends it
	for _, c := range held {
		_ = c.Close()
	}
	os.Exit(0)
}

// TestIdleConnections: thousands of strangers who say nothing take bounded room, and keep no peer out.
func TestIdleConnections(t *testing.T) {
	n := 10000
	var limit syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	if most := int(limit.Cur) - 500; n > most {
		n = most
	}
	t.Logf("%d idle connections (RLIMIT_NOFILE is %d)", n, limit.Cur)
	const pending = 200
	a := startNode(t, 1, func(c *Config) { c.MaxPending = pending })
	b := startNode(t, 1)
	e := connect(t, b, a)
	before := openFiles(t)

	self, err := os.Executable()
	require.NoError(t, err)
	client := exec.Command(self, "-test.run=^$")
	client.Env = append(os.Environ(), idleEnv+"="+a.Listening()[0].Address+" "+strconv.Itoa(n))
	client.Stderr = os.Stderr
	in, err := client.StdinPipe()
	require.NoError(t, err)
	out, err := client.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, client.Start())
	defer func() {
		_ = in.Close()
		require.NoError(t, client.Wait())
	}()
	var opened, failed int
	_, err = fmt.Fscan(bufio.NewReader(out), &opened, &failed)
	require.NoError(t, err)
	require.Greater(t, opened, n/2, "the client could not even connect")

	// The load that was there lives on, and a new peer gets in beside the strangers.
	region, err := a.Regions().Register(make([]byte, 1<<20), rma.RemoteWrite)
	require.NoError(t, err)
	ctx, done := context.WithTimeout(context.Background(), 20*time.Second)
	defer done()
	require.NoError(t, e.Put(ctx, region.Key(), 0, make([]byte, 1<<20)))
	c := startNode(t, 1)
	connect(t, c, a)
	require.NoError(t, e.Err())
	require.Less(t, openFiles(t)-before, pending+100, "strangers take descriptors without bound")
}

func openFiles(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(list)
}
