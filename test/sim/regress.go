package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// regressions is where the failures are kept that somebody has found, below the module's root: in each file first what was
// wrong, on a line, then the recipe of the world.
const regressions = "test/sim/testdata/regressions"

// saveRegression keeps a failure under a name, and gives the file's.
func saveRegression(name string, f *found) (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return f.save(filepath.Join(root, filepath.FromSlash(regressions), name+".txt"))
}

func (f *found) save(name string) (string, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // a file of the repository, for all to read
	if err != nil {
		return "", fmt.Errorf("a new file is needed for it: %w", err)
	}
	what := strings.Join(strings.Fields(f.failure.Text), " ")
	_, err = fmt.Fprintf(file, "%s\n%s\n", what, f.recipe)
	return name, errors.Join(err, file.Close())
}

// readRegression gives what was wrong, and the world.
func readRegression(text string) (what string, r recipe, err error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	if len(lines) != 2 {
		return "", r, fmt.Errorf("a regression has two lines, what was wrong and the flags of the world; here are %d", len(lines))
	}
	r, err = parseRecipe(lines[1])
	return lines[0], r, err
}

// moduleRoot is the folder of the go.mod above the current one.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("no regression can be kept: %w", err)
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module railyard\n") {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("regressions are kept in the repository; run it inside")
		}
		dir = above
	}
}
