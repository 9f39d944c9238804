package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// patience bounds every wait of these tests. It is no expectation of speed.
const patience = 60 * time.Second

// person is a terminal with somebody at it, who is this test.
type person struct {
	in    io.WriteCloser
	lines chan string
	cmd   *exec.Cmd
}

func sit(t *testing.T, program string, args ...string) *person {
	t.Helper()
	p := &person{lines: make(chan string, 1000), cmd: exec.Command(program, args...)}
	p.cmd.Stderr = os.Stderr
	var err error
	p.in, err = p.cmd.StdinPipe()
	require.NoError(t, err)
	out, err := p.cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, p.cmd.Start())
	go func() {
		defer close(p.lines)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			p.lines <- scan.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // an error where it has ended
		for range p.lines {
		}
		_ = p.cmd.Wait()
	})
	return p
}

func (p *person) say(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(p.in, text+"\n")
	require.NoError(t, err)
}

// hear reads on to the line that matches.
func (p *person) hear(t *testing.T, pattern string) []string {
	t.Helper()
	want, late := regexp.MustCompile(pattern), time.After(patience)
	var before []string
	for {
		select {
		case text, ok := <-p.lines:
			require.True(t, ok, "it ended before %q: %q", pattern, before)
			if found := want.FindStringSubmatch(text); found != nil {
				return found
			}
			before = append(before, text)
		case <-late:
			require.FailNow(t, "nobody says "+pattern, "%q", before)
		}
	}
}

func (p *person) ends(t *testing.T) {
	t.Helper()
	ended := make(chan error, 1)
	go func() {
		for range p.lines {
		}
		ended <- p.cmd.Wait()
	}()
	select {
	case err := <-ended:
		require.NoError(t, err)
	case <-time.After(patience):
		require.FailNow(t, "it does not end")
	}
}

// Three terminals; rails are cut one after the other, and mended; whatever is said arrives.
func TestTalk(t *testing.T) {
	program := filepath.Join(t.TempDir(), "chat")
	out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput()
	require.NoError(t, err, "%s", out)

	host := sit(t, program, "open", "127.0.0.1:0")
	room := host.hear(t, `the room is open: chat join (\S+) NAME`)[1]
	ada := sit(t, program, "join", room, "Ada")
	ada.hear(t, `\* Ada is here`)
	bob := sit(t, program, "join", room, "Bob")
	for _, p := range []*person{host, ada, bob} {
		p.hear(t, `\* Bob is here`)
	}
	said := func(from *person, name, text string) {
		t.Helper()
		from.say(t, text)
		for _, p := range []*person{host, ada, bob} {
			p.hear(t, "^"+name+": "+text+"$")
		}
	}
	said(host, "host", "welcome")
	said(ada, "Ada", "hello")
	ada.say(t, "/cut 1")
	bob.hear(t, `\* Ada cuts rail 1`)
	said(bob, "Bob", "still there")
	host.say(t, "/cut 2")
	bob.hear(t, `\* host cuts rail 2`)
	said(ada, "Ada", "one rail is left")
	ada.say(t, "/rails")
	ada.hear(t, `rail to \S+ is up`)
	host.say(t, "/cut 3")
	host.hear(t, `\* host cuts rail 3`)
	bob.say(t, "does anybody hear me") // no: it waits
	host.say(t, "/mend 1")
	for _, p := range []*person{host, ada, bob} {
		p.hear(t, "^Bob: does anybody hear me$")
	}
	ada.say(t, "/cut 9")
	ada.hear(t, `rails 1 to 3`)
	ada.say(t, "/cut x")
	ada.hear(t, `needs the number`)
	ada.say(t, "/dance")
	ada.hear(t, `commands are`)

	bob.say(t, "/quit")
	bob.ends(t)
	ada.hear(t, `\* Bob has left`)
	require.NoError(t, ada.in.Close())
	ada.ends(t)
	host.hear(t, `\* Ada has left`)
	require.NoError(t, host.cmd.Process.Signal(os.Interrupt))
	host.ends(t)
}

func TestUsage(t *testing.T) {
	for _, args := range [][]string{
		nil, {"open"}, {"join", "127.0.0.1:1"}, {"open", "here"}, {"dance", "127.0.0.1:1"}, {"a", "b", "c", "d"},
	} {
		require.ErrorIs(t, run(t.Context(), args, strings.NewReader(""), io.Discard), errUsage, "%q", args)
	}
}
