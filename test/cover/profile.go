package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
)

// profile says of each block of statements how many they are, and whether any of them ran.
type profile map[string]block

// block is a piece of code without a branch.
type block struct {
	statements int
	ran        bool
}

// errProfile is wrapped by every error about what the go command has written.
var errProfile = errors.New("no profile of coverage")

// blockLine is "file:line.column,line.column statements count".
var blockLine = regexp.MustCompile(`^([^ ]+:\d+\.\d+,\d+\.\d+) (\d+) (\d+)$`)

// read puts a profile in, along with what is there.
func (p profile) read(in io.Reader) error {
	lines := bufio.NewScanner(in)
	if !lines.Scan() || !strings.HasPrefix(lines.Text(), "mode: ") {
		return fmt.Errorf("%w: the first line says no mode: %q", errProfile, lines.Text())
	}
	for lines.Scan() {
		m := blockLine.FindStringSubmatch(lines.Text())
		if m == nil {
			return fmt.Errorf("%w: a line that is no block: %q", errProfile, lines.Text())
		}
		statements, err := strconv.Atoi(m[2])
		if err != nil {
			return fmt.Errorf("%w: so many statements: %w", errProfile, err)
		}
		have, known := p[m[1]]
		if known && have.statements != statements {
			return fmt.Errorf("%w: %s has %d statements and also %d; the tree has changed meanwhile", errProfile, m[1],
				have.statements, statements)
		}
		p[m[1]] = block{statements: statements, ran: have.ran || strings.Trim(m[3], "0") != ""}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%w: it cannot be read: %w", errProfile, err)
	}
	return nil
}

// share counts the statements of a part, and those that ran.
func (p profile) share(part string) (ran, all int) {
	for place, b := range p {
		file, _, _ := strings.Cut(place, ":")
		if !within(file, part) {
			continue
		}
		all += b.statements
		if b.ran {
			ran += b.statements
		}
	}
	return ran, all
}

// within tells whether a file is the part, or lies in the package that is the part, and is written by hand.
func within(file, part string) bool {
	path, ours := strings.CutPrefix(file, module+"/")
	if !ours || strings.HasSuffix(path, ".pb.go") {
		return false
	}
	rest, inside := strings.CutPrefix(path, part+"/")
	return path == part || inside && !strings.Contains(rest, "/")
}
