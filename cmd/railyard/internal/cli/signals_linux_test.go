package cli

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// running is the tool as a process of its own, with a second process.
type running struct {
	command *exec.Cmd
	errOut  *bytes.Buffer
	child   int
	ended   chan error
}

// startTool starts the demo and waits until its load runs.
func startTool(t *testing.T) *running {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	r := &running{ended: make(chan error, 1), errOut: &bytes.Buffer{}}
	r.command = exec.Command(self, "demo", "failover", "--rails", "2", "--script", writeScript(t, "wait 9m"))
	r.command.Stderr = r.errOut
	out, err := r.command.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, r.command.Start())
	lines := bufio.NewScanner(out)
	loaded := false
	for !loaded && lines.Scan() {
		loaded = strings.Contains(lines.Text(), "messages/s")
	}
	if !loaded {
		t.Fatalf("the load has not begun: %v; %s", r.command.Wait(), r.errOut)
	}
	r.child = childOf(t, r.command.Process.Pid)
	go func() {
		_, _ = io.Copy(io.Discard, out)
		r.ended <- r.command.Wait()
	}()
	t.Cleanup(func() { _ = r.command.Process.Kill() })
	return r
}

// childOf finds the only process that has this parent.
func childOf(t *testing.T, parent int) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			continue // it has ended meanwhile
		}
		_, rest, _ := strings.Cut(string(stat), ") ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			return pid
		}
	}
	t.Fatal("there is no second process")
	return 0
}

func (r *running) wait(t *testing.T) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the tool does not end")
		return nil
	}
}

func (r *running) childGone(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return errors.Is(syscall.Kill(r.child, 0), syscall.ESRCH) },
		30*time.Second, 10*time.Millisecond, "the second process lives on")
}

func TestSignalEndsBothProcesses(t *testing.T) {
	r := startTool(t)
	require.NoError(t, r.command.Process.Signal(syscall.SIGTERM))
	var exit *exec.ExitError
	require.ErrorAs(t, r.wait(t), &exit)
	assert.Equal(t, codeFailed, exit.ExitCode())
	assert.Equal(t, "railyard: "+errInterrupted.Error()+"\n", r.errOut.String())
	r.childGone(t)
}

func TestSecondSignalEndsAtOnce(t *testing.T) {
	r := startTool(t)
	// Two that come before the first is taken are one to the system, so they go on until it has ended.
	ended := make(chan struct{})
	go func() {
		for r.command.Process.Signal(syscall.SIGINT) == nil {
			select {
			case <-ended:
				return
			case <-time.After(5 * time.Millisecond):
			}
		}
	}()
	err := r.wait(t)
	close(ended)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	status, ok := exit.Sys().(syscall.WaitStatus)
	require.True(t, ok)
	assert.True(t, status.Signaled() && status.Signal() == syscall.SIGINT, "%v", err)
	r.childGone(t)
}

func TestSecondProcessDiesWithItsParent(t *testing.T) {
	r := startTool(t)
	require.NoError(t, r.command.Process.Kill())
	require.Error(t, r.wait(t))
	r.childGone(t)
}
