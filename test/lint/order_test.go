package lint

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ordered are the packages whose results must not depend on the order in which Go walks a map.
var ordered = []string{"wire", "rma", "endpoint/session", "supervision"}

// anyOrder are the functions that may walk a map, each with the reason why the order cannot show.
var anyOrder = map[string]string{
	"endpoint/session.Session.buryTombs": "it only deletes, and whether a tombstone goes does not depend on the others",
	"endpoint/session.Session.Sizes":     "it only sums up lengths, for tests",
	"endpoint/session.Session.Held":      "it counts into a map again",
	"endpoint/session.card.room":         "it counts those that are live",
	"rma.shard.all":                      "its list is for Table.Close, which revokes each; every revoke stands for itself",
}

// walk is one place where a map is walked.
type walk struct{ where, function string }

// walks finds every range over a map, or over an iterator of package maps, in type-checked files.
func walks(fset *token.FileSet, files []*ast.File, info *types.Info, pkg string) []walk {
	var list []walk
	for _, f := range files {
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok {
				continue
			}
			ast.Inspect(fn, func(n ast.Node) bool {
				r, ok := n.(*ast.RangeStmt)
				if !ok || !unordered(info, r.X) {
					return true
				}
				pos := fset.Position(r.Pos())
				list = append(list, walk{fmt.Sprintf("%s:%d", pos.Filename, pos.Line), pkg + "." + functionName(fn)})
				return true
			})
		}
	}
	return list
}

func unordered(info *types.Info, x ast.Expr) bool {
	if tv, ok := info.Types[x]; ok {
		if _, ok := tv.Type.Underlying().(*types.Map); ok {
			return true
		}
	}
	call, ok := x.(*ast.CallExpr)
	if !ok {
		return false
	}
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	obj := info.Uses[sel.Sel]
	return obj != nil && obj.Pkg() != nil && obj.Pkg().Path() == "maps"
}

// functionName gives Type.Method or Function.
func functionName(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return fn.Name.Name
	}
	t := fn.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return id.Name + "." + fn.Name.Name
	}
	return fn.Name.Name
}

// check gives types to a package's files.
func check(fset *token.FileSet, pkg string, files []*ast.File, imp types.Importer) (*types.Info, error) {
	info := &types.Info{Types: make(map[ast.Expr]types.TypeAndValue), Uses: make(map[*ast.Ident]types.Object)}
	conf := types.Config{Importer: imp}
	_, err := conf.Check(pkg, fset, files, info)
	return info, err
}

// exported asks the go command for the compiled interfaces of the packages and of everything that they import.
func exported(t *testing.T, pkgs ...string) types.Importer {
	t.Helper()
	args := append([]string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}, pkgs...)
	cmd := exec.Command("go", args...)
	cmd.Dir = root(t)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go list: %s", stderr.String())
	where := make(map[string]string)
	for line := range strings.Lines(string(out)) {
		if name, file, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			where[name] = file
		}
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		return os.Open(where[name])
	})
}

func TestNoMapOrderInResults(t *testing.T) {
	var paths []string
	for _, p := range ordered {
		paths = append(paths, module+"/"+p)
	}
	imp := exported(t, paths...)
	used := make(map[string]bool)
	for _, pkg := range ordered {
		fset := token.NewFileSet()
		var files []*ast.File
		for _, s := range tree(t) {
			if s.file == nil || s.test || s.dir() != pkg {
				continue
			}
			f, err := parser.ParseFile(fset, s.path, s.text, 0)
			require.NoError(t, err)
			files = append(files, f)
		}
		require.NotEmpty(t, files, "no file of %s was looked at", pkg)
		info, err := check(fset, module+"/"+pkg, files, imp)
		require.NoError(t, err)
		for _, w := range walks(fset, files, info, pkg) {
			used[w.function] = true
			if anyOrder[w.function] == "" {
				t.Errorf("%s: %s walks a map: its results must not depend on the order. Keep a list, or sort, or say in anyOrder why it cannot show",
					w.where, w.function)
			}
		}
	}
	for name := range anyOrder {
		if !used[name] {
			t.Errorf("%s walks no map any more: take it out of anyOrder", name)
		}
	}
}

func TestMapOrderIsCaught(t *testing.T) {
	imp := exported(t, "maps")
	for name, c := range map[string]struct {
		text string
		want int
	}{
		"a map":          {"func f(m map[string]int) { for range m {} }", 1},
		"a named map":    {"type table map[int]bool\nfunc f(m table) { for k := range m { _ = k } }", 1},
		"a field":        {"type s struct{ m map[int]int }\nfunc (x *s) f() { for k, v := range x.m { _, _ = k, v } }", 1},
		"a slice":        {"func f(m []int) { for range m {} }", 0},
		"in a closure":   {"func f(m map[int]int) func() { return func() { for range m {} } }", 1},
		"an iterator":    {"import \"maps\"\nfunc f(m map[int]int) { for range maps.Keys(m) {} }", 1},
		"clear is a set": {"func f(m map[int]int) { clear(m) }", 0},
	} {
		t.Run(name, func(t *testing.T) {
			fset := token.NewFileSet()
			f, err := parser.ParseFile(fset, "x.go", "package p\n"+c.text, 0)
			require.NoError(t, err)
			info, err := check(fset, "p", []*ast.File{f}, imp)
			require.NoError(t, err)
			require.Len(t, walks(fset, []*ast.File{f}, info, "p"), c.want)
		})
	}
}
