package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// mutant is a deliberate bug: a text of package replica, which must be there exactly once, and what stands there instead.
type mutant struct{ bug, file, old, new string }

// mutants break one rule each; an ordinary checker has to see it.
var mutants = []mutant{
	{"an acknowledgement of a log that is being given up counts", "peer.go",
		"if x.stage == planning || x.filling && a.Items == 0 {", "if false {"},
	{"a member counts while its image is being filled", "peer.go",
		"x.stage == running && x.whole && !x.filling }", "x.stage == running }"},
	{"a primary asks one member too few", "takeover.go", "missing >= m.roster.Quorum()", "missing > m.roster.Quorum()"},
	{"a primary does not give way to who is ahead", "takeover.go", "case lead != m.set.Self:", "case false:"},
	{"a member promises while an older primary counts on its lease", "backup.go", "if m.now < m.leased {", "if false {"},
	{"a read is answered whatever it has seen", "primary.go", "answerable{op, upTo, false}", "answerable{op, min(upTo, 0), false}"},
	{"a primary answers before its epoch's first record is at a quorum", "primary.go",
		"\treturn p.commit >= p.first\n}", "\treturn true\n}"},
	{"a member is dropped whatever the others lack", "insync.go", " || commit < p.commit || hard < p.hard {", " || commit+hard == 0 {"},
	{"staging memory is used again before its item is taken", "ring.go",
		"r.pieces[0].completed && r.pieces[0].taken {", "r.pieces[0].completed {"},
	{"staging memory is used again before its put has completed", "ring.go",
		"r.pieces[0].completed && r.pieces[0].taken {", "r.pieces[0].taken {"},
	{"an extent is written while it is being read for a copy", "primary.go", "return x.reading && ", "return false && "},
	{"a member's own changes are not part of its filling", "jobs.go", "\t\tif e < last {", "\t\tif e < last && here {"},
	{"logs agree wherever they are as long", "history.go", "case x.Epoch == y.Epoch:", "case true:"},
	{"an image is whole before that is on the disk", "member.go", "return m.state.Whole && m.synced >= m.wholeAt", "return m.state.Whole"},
	{"a promise is not made durable",
		"backup.go", "m.state.Promised = epoch\n\treturn m.save()", "m.state.Promised = epoch\n\treturn m.tickets"},
	{"what is in memory counts as on the disk", "primary.go",
		"disk = min(disk, p.m.appended)\n\treturn disk, disk", "disk = min(memory, p.m.appended)\n\treturn disk, disk"},
}

// core is the package that is mutated, from the module's root.
const core = "examples/replicator/replica"

// mutated gives the source of a mutant's file.
func (m *mutant) mutated(root string) (path string, text []byte, err error) {
	path = filepath.Join(root, core, m.file)
	if text, err = os.ReadFile(path); err != nil {
		return "", nil, fmt.Errorf("no source to mutate: %w", err)
	}
	if n := bytes.Count(text, []byte(m.old)); n != 1 {
		return "", nil, fmt.Errorf("%s has %q %d times, not once: bring the mutant up to date", m.file, m.old, n)
	}
	return path, bytes.Replace(text, []byte(m.old), []byte(m.new), 1), nil
}

// hunt builds the simulator with a mutant and plays until a checker speaks.
func (m *mutant) hunt(ctx context.Context, root string, seeds uint64) (said string, err error) {
	dir, err := os.MkdirTemp("", "mutant")
	if err != nil {
		return "", fmt.Errorf("no room for a mutant: %w", err)
	}
	defer os.RemoveAll(dir)
	path, text, err := m.mutated(root)
	if err != nil {
		return "", err
	}
	changed, overlay, sim := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {path: changed}})
	if err = errors.Join(err, os.WriteFile(changed, text, 0o600), os.WriteFile(overlay, list, 0o600)); err != nil {
		return "", fmt.Errorf("a mutant cannot be written: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-overlay", overlay, "-o", sim, "./examples/replicator/sim")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("a mutant does not build: %w\n%s", err, out)
	}
	out, err := exec.CommandContext(ctx, sim, "--seeds", fmt.Sprint(seeds)).Output()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "", nil
	case errors.As(err, &exit) && exit.ExitCode() == codeBroken:
		lines := strings.Split(string(out), "\n")
		for _, l := range lines {
			if strings.HasPrefix(l, "seed ") {
				return l, nil
			}
		}
	}
	return "", fmt.Errorf("a mutant's simulator ended otherwise: %w", err)
}

// huntAll shows for each mutant what caught it.
func huntAll(out io.Writer, seeds uint64) int {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		fmt.Fprintf(out, "the module's root is not found: %v\n", err)
		return codeUsage
	}
	survived := 0
	for _, m := range mutants {
		begun := time.Now()
		said, err := m.hunt(context.Background(), strings.TrimSpace(string(dir)), seeds)
		if err != nil || said == "" {
			survived++
			said = fmt.Sprintf("NOT CAUGHT in %d worlds (%v)", seeds, err)
		}
		fmt.Fprintf(out, "%-70s %5.1fs  %s\n", m.bug, time.Since(begun).Seconds(), said)
	}
	fmt.Fprintf(out, "%d mutants, %d not caught\n", len(mutants), survived)
	if survived > 0 {
		return codeBroken
	}
	return codeHeld
}
