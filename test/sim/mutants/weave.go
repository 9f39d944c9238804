package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// switchPackage is where woven code asks which mutant is on, and switchVariable what tells it. The package exists in the
// overlay only.
const (
	switchPackage  = "test/sim/mutants/on"
	switchVariable = "RAILYARD_MUTANT"
	switchSource   = `package on

import (
	"os"
	"strconv"
)

var chosen, _ = strconv.Atoi(os.Getenv("` + switchVariable + `"))

// Is tells whether mutant n is on; they are counted from 1.
func Is(n int) bool { return chosen == n }
`
)

// errWeave is wrapped by every error about a mutant that does not fit today's source.
var errWeave = errors.New("the mutant does not fit the source")

// weave gives the new text of each mutated file, by its path below the module's root.
func weave(root string, list []mutant) (map[string]string, error) {
	places := make(map[string][]place)
	var wrong []error
	for i, m := range list {
		for _, e := range m.edits {
			p := place{edit: e, name: m.name, on: fmt.Sprintf("mutantson.Is(%d)", i+1)}
			places[e.file] = append(places[e.file], p)
		}
	}
	woven := make(map[string]string)
	for file, list := range places {
		text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
		if err != nil {
			return nil, err
		}
		woven[file], err = weaveFile(string(text), list)
		wrong = append(wrong, err)
	}
	return woven, errors.Join(wrong...)
}

// place is an edit, and where in the file its old text begins.
type place struct {
	edit
	name, on string
	at       int
}

// weaveFile puts all edits of one file in.
func weaveFile(text string, list []place) (string, error) {
	var wrong []error
	for i := range list {
		p := &list[i]
		if n := strings.Count(text, p.old); n != 1 {
			wrong = append(wrong, fmt.Errorf("%w: %s: %s has %d times\n%s", errWeave, p.name, p.file, n, p.old))
		}
		if !strings.Contains(p.new, "«on»") {
			wrong = append(wrong, fmt.Errorf("%w: %s: an edit of %s has no switch", errWeave, p.name, p.file))
		}
		p.at = strings.Index(text, p.old)
	}
	if len(wrong) > 0 {
		return "", errors.Join(wrong...)
	}
	slices.SortFunc(list, func(a, b place) int { return cmp.Compare(a.at, b.at) })
	var b strings.Builder
	done := 0
	for i := range list {
		p := &list[i]
		if p.at < done {
			return "", fmt.Errorf("%w: %s and %s change the same text of %s", errWeave, list[i-1].name, p.name, p.file)
		}
		b.WriteString(text[done:p.at])
		b.WriteString(strings.NewReplacer("«on»", p.on, "«old»", p.old).Replace(p.new))
		done = p.at + len(p.old)
	}
	b.WriteString(text[done:])
	woven, err := withImport(b.String())
	if err == nil {
		_, err = parser.ParseFile(token.NewFileSet(), list[0].file, woven, parser.SkipObjectResolution)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %s does not parse with its mutants: %w", errWeave, list[0].file, err)
	}
	return woven, nil
}

// withImport adds the import of the switch behind the package clause, on the same line, so that line numbers stay.
func withImport(text string) (string, error) {
	f, err := parser.ParseFile(token.NewFileSet(), "", text, parser.PackageClauseOnly)
	if err != nil {
		return "", err
	}
	at := int(f.Name.End()) - 1
	return text[:at] + `; import mutantson "railyard/` + switchPackage + `"` + text[at:], nil
}

// overlay writes the woven files into dir and gives the file that tells the go command of them.
func overlay(root, dir string, woven map[string]string) (string, error) {
	woven[switchPackage+"/on.go"] = switchSource
	replace := make(map[string]string)
	for file, text := range woven {
		name := filepath.Join(dir, strings.ReplaceAll(file, "/", "-"))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[filepath.Join(root, filepath.FromSlash(file))] = name
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(dir, "overlay.json")
	return name, os.WriteFile(name, text, 0o600)
}

// moduleRoot is the folder of the go.mod above the current one.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(text), "module railyard\n") {
			return dir, nil
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", errors.New("no go.mod of railyard here or above: run it inside the repository")
		}
		dir = above
	}
}
