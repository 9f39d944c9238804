package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// patience bounds every wait of these tests. It is no expectation of speed.
const patience = 60 * time.Second

var program string

// TestMain builds the program as a user would: the tests run both ends as processes.
func TestMain(m *testing.M) { os.Exit(built(m)) }

func built(m *testing.M) int {
	folder, err := os.MkdirTemp("", "hello")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	program = filepath.Join(folder, "hello")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// outcome is what became of a process.
type outcome struct {
	out, err string
	code     int
}

// call runs the program to its end.
func call(t *testing.T, args ...string) outcome {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), patience)
	defer done()
	cmd := exec.CommandContext(ctx, program, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // told by the code
	require.NoError(t, ctx.Err(), "hello %v does not end", args)
	return outcome{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

// server is a running "hello serve".
type server struct {
	cmd     *exec.Cmd
	lines   chan string // closed when it prints no more
	address string
}

func startServer(t *testing.T, addresses string) *server {
	t.Helper()
	ctx, done := context.WithTimeout(context.Background(), patience)
	t.Cleanup(done)
	s := &server{cmd: exec.CommandContext(ctx, program, "serve", addresses), lines: make(chan string, 100)}
	s.cmd.Stderr = os.Stderr
	out, err := s.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, s.cmd.Start())
	go func() {
		defer close(s.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			s.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		done()
		for range s.lines { // until it is gone
		}
		_ = s.cmd.Wait() // an error where the test has waited, or the process was killed
	})
	found := regexp.MustCompile(`^node (127\.0\.0\.1:\d+) is up`).FindStringSubmatch(s.line(t))
	require.NotNil(t, found)
	s.address = found[1]
	return s
}

// line is the next line that the server prints.
func (s *server) line(t *testing.T) string {
	t.Helper()
	select {
	case line, ok := <-s.lines:
		require.True(t, ok, "the server prints no more")
		return line
	case <-time.After(patience):
		require.FailNow(t, "the server is silent")
	}
	return ""
}

func TestTwoTerminals(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	for _, c := range []struct {
		args []string
		name string
	}{{[]string{"Ada"}, "Ada"}, {nil, "stranger"}} {
		o := call(t, append([]string{"greet", s.address}, c.args...)...)
		require.Equal(t, 0, o.code, o.err)
		assert.Empty(t, o.err)
		assert.Contains(t, o.out, "hello, "+c.name+"\n")
		assert.Contains(t, o.out, "written into the memory of "+s.address)
		assert.Equal(t, 1, strings.Count(o.out, "rail "), o.out)
		assert.Equal(t, `"`+c.name+`" says hello`, s.line(t))
		assert.Equal(t, `"`+c.name+`" writes "dear greeter, this went past your mailbox. Yours, `+c.name+`"`, s.line(t))
	}
	require.NoError(t, s.cmd.Process.Signal(os.Interrupt))
	assert.Equal(t, "goodbye", s.line(t))
	for line := range s.lines {
		assert.Empty(t, line)
	}
	require.NoError(t, s.cmd.Wait(), "Ctrl-C ends it well")
}

// TestSeveralRails: the guest knows one address of the server and gets a rail to each of its cards.
func TestSeveralRails(t *testing.T) {
	s := startServer(t, "127.0.0.1:0,127.0.0.1:0")
	o := call(t, "greet", s.address)
	require.Equal(t, 0, o.code, o.err)
	assert.Contains(t, o.out, "rail 0: 127.0.0.1:")
	assert.Contains(t, o.out, "rail 1: 127.0.0.1:")
}

func TestNobodyThere(t *testing.T) {
	s := startServer(t, "127.0.0.1:0")
	require.NoError(t, s.cmd.Process.Kill())
	for range s.lines { // until it is gone
	}
	o := call(t, "greet", s.address)
	assert.Equal(t, 1, o.code)
	assert.Empty(t, o.out)
	assert.Contains(t, o.err, "hello: no greeting: nobody answers at "+s.address)
}

func TestWrongUsage(t *testing.T) {
	for _, args := range []string{"", "serve", "greet", "wave 127.0.0.1:7400", "serve 127.0.0.1:7400 Ada", "greet 127.0.0.1:7400 Ada Bob",
		"serve 7400", "serve 127.0.0.1", "greet 127.0.0.1:7400,", "greet localhost:7400"} {
		o := call(t, strings.Fields(args)...)
		assert.Equal(t, 2, o.code, args)
		assert.Empty(t, o.out, args)
		assert.Equal(t, 1, strings.Count(o.err, "\n"), "one line for %q: %s", args, o.err)
		assert.Contains(t, o.err, "usage: hello serve", args)
	}
}

// TestRefusedSettings: what the node itself refuses is said in its words.
func TestRefusedSettings(t *testing.T) {
	o := call(t, "serve", "0.0.0.0:0")
	assert.Equal(t, 1, o.code)
	assert.Contains(t, o.err, "a rail is one card")
}
