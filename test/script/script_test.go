package script

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var rewrite = flag.Bool("rewrite", false, "write what came of each command into the pages, to be read before it is committed")

// TestStories plays every page of testdata.
func TestStories(t *testing.T) {
	pages, err := filepath.Glob("testdata/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, pages)
	for _, name := range pages {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txt"), func(t *testing.T) {
			page, err := os.ReadFile(name)
			require.NoError(t, err)
			played, broken := play(string(page))
			require.Empty(t, broken, "a promise was broken; the story so far:\n%s", played)
			if *rewrite {
				require.NoError(t, os.WriteFile(name, []byte(played), 0o600))
				return
			}
			require.Equal(t, string(page), played, "the story goes differently now; -rewrite records it")
		})
	}
}

// play gives the page with what comes of its commands now. broken names the promise that did not hold, and the line.
func play(page string) (played, broken string) {
	var out bytes.Buffer
	w := newWorld()
	last := ""
	number := 0
	for line := range strings.Lines(page) {
		number++
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") { // what was recorded
			continue
		}
		fmt.Fprintln(&out, line)
		command, ok := strings.CutPrefix(line, "> ")
		if !ok {
			continue
		}
		last = command
		if text := w.obey(command); text != "" {
			broken = fmt.Sprintf("line %d, %q: %s", number, command, text)
		}
		for _, said := range w.take() {
			fmt.Fprintln(&out, "  "+said)
		}
		if broken != "" {
			return out.String(), broken
		}
	}
	if last != "end" {
		return out.String(), "the page does not close with > end, which counts completions"
	}
	return out.String(), ""
}

// obey does one command. The text is a promise that does not hold.
func (w *world) obey(command string) (broken string) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case breach:
			broken = string(r)
		default:
			panic(r)
		}
	}()
	w.do(command)
	w.check()
	return ""
}

// TestPagesAreJudged: a page that breaks a rule of its own, or tells another story, is not taken.
func TestPagesAreJudged(t *testing.T) {
	for name, c := range map[string]struct{ page, want string }{
		"no end":          {"> new\n", "does not close"},
		"unknown word":    {"> new\n> dance\n> end\n", "no command dance"},
		"too few words":   {"> new\n> put a x\n> end\n", "put wants"},
		"open at the end": {"> new\n> join 0\n> region b r 1KiB\n> put a x r 1KiB\n> end\n", "has not completed"},
	} {
		_, broken := play(c.page)
		require.Contains(t, broken, c.want, name)
	}
	good := "> new\n> join 0\n> region b r 1KiB\n> put a x r 1KiB\n> run\n> end\n"
	played, broken := play(good)
	require.Empty(t, broken)
	require.Contains(t, played, "  a: x completed, 1KiB of 1KiB landed\n")
	require.NotEqual(t, good, played)
	again, _ := play(played)
	require.Equal(t, played, again, "a page must be a fixed point")
}

// TestBreachesAreSeen: the checks behind every page catch what they are for.
func TestBreachesAreSeen(t *testing.T) {
	start := "> new\n> join 0\n> region b r 4KiB\n> put a x r 1KiB\n> run\n"
	for name, c := range map[string]struct {
		spoil func(w *world)
		want  string
	}{
		"late write":        {func(w *world) { w.b.area("r").mem[2000] = 'x' }, "landed after it had ended"},
		"freed source read": {func(w *world) { w.b.area("r").mem[3000] = freed }, "source was read"},
		"written when revoked": {func(w *world) {
			w.do("revoke b r")
			w.b.area("r").mem[3000] = 'y'
		}, "written after its revoke"},
		"completed twice": {func(w *world) { w.a.completed(&w.a.works[0].op, nil) }, "completed twice"},
		"said twice": {func(w *world) {
			w.b.hear("bob", "hello")
			w.b.hear("bob", "hello")
		}, "was delivered twice"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			for line := range strings.Lines(start) {
				require.Empty(t, w.obey(strings.TrimSpace(line[2:])))
			}
			broken := func() (text string) {
				defer func() {
					if r, ok := recover().(breach); ok {
						text = string(r)
					}
				}()
				c.spoil(w)
				w.check()
				return ""
			}()
			require.Contains(t, broken, c.want)
		})
	}
}
