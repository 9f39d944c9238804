package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// module is the path that all our own imports begin with.
const module = "railyard"

// source is one file of the tree.
type source struct {
	path string // from the root, with slashes
	text []byte
	// The rest is set for Go files only.
	file      *ast.File
	fset      *token.FileSet
	test      bool
	generated bool
}

// dir is the folder, which for Go files names the package.
func (s *source) dir() string { return path.Dir(s.path) }

// at gives a place in the file as people and editors write it.
func (s *source) at(pos token.Pos) string {
	return fmt.Sprintf("%s:%d", s.path, s.fset.Position(pos).Line)
}

// in tells whether the file lies in one of the folders or below.
func (s *source) in(dirs ...string) bool {
	for _, d := range dirs {
		if s.dir() == d || strings.HasPrefix(s.dir(), d+"/") {
			return true
		}
	}
	return false
}

// finding is one breach of a rule.
type finding struct{ where, what string }

// rule looks at files and names what breaks it.
type rule func(files []*source) []finding

// parse makes a source of a file's name and text.
func parse(name string, text []byte) (*source, error) {
	s := &source{path: name, text: text}
	if !strings.HasSuffix(name, ".go") {
		return s, nil
	}
	s.fset = token.NewFileSet()
	f, err := parser.ParseFile(s.fset, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s.file, s.test, s.generated = f, strings.HasSuffix(name, "_test.go"), ast.IsGenerated(f)
	return s, nil
}

// root is the module's folder: a test runs in its package's.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	require.FileExists(t, filepath.Join(dir, "go.mod"), "test/lint is not two folders below the module's root any more")
	return dir
}

var load = sync.OnceValues(func() ([]*source, error) {
	var files []*source
	base := filepath.Join("..", "..")
	err := filepath.WalkDir(base, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(base, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if d.IsDir() {
			if skipped[rel] {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() || skipped[rel] { // in a second work tree .git is a file
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if bytes.IndexByte(text, 0) >= 0 { // a picture, a binary
			return nil
		}
		s, err := parse(rel, text)
		if err != nil {
			return err
		}
		files = append(files, s)
		return nil
	})
	return files, err
})

// skipped are the folders that are not ours to judge.
var skipped = map[string]bool{".git": true, "bin": true}

// tree gives every text file of the project.
func tree(t *testing.T) []*source {
	t.Helper()
	files, err := load()
	require.NoError(t, err)
	require.Greater(t, len(files), 50, "the tree was not found")
	return files
}

// goFiles narrows to Go files, hand-written ones only.
func goFiles(files []*source) []*source {
	return only(files, func(s *source) bool { return s.file != nil && !s.generated })
}

// production narrows to hand-written Go files that end up in programs.
func production(files []*source) []*source {
	return only(goFiles(files), func(s *source) bool { return !s.test && !s.in("test") })
}

func only(files []*source, keep func(*source) bool) []*source {
	var kept []*source
	for _, s := range files {
		if keep(s) {
			kept = append(kept, s)
		}
	}
	return kept
}

// holds checks a rule over the whole tree.
func holds(t *testing.T, r rule) {
	t.Helper()
	found := r(tree(t))
	sort.Slice(found, func(i, j int) bool { return found[i].where < found[j].where })
	for _, f := range found {
		t.Errorf("%s: %s", f.where, f.what)
	}
}

// snippet is a small source for a rule's own test.
type snippet struct {
	name string // of the case
	path string
	text string
	want string // part of the finding; empty: nothing may be found
}

// catches checks that a rule finds what is wrong with the snippets, and nothing where nothing is.
func catches(t *testing.T, r rule, cases []snippet) {
	t.Helper()
	bad := 0
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s, err := parse(c.path, []byte(c.text))
			require.NoError(t, err)
			found := r([]*source{s})
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0].where+": "+found[0].what, c.want)
		})
		if c.want != "" {
			bad++
		}
	}
	require.Positive(t, bad, "a rule needs a case that it must catch")
}
