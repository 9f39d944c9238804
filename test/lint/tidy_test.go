package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strconv"
	"strings"
	"testing"
)

// The hard limits. What we aim for is below them: 500 lines a file, 70 a function.
const (
	maxFileLines     = 600
	maxFunctionLines = 100
	maxParameters    = 4
)

func fileLength(files []*source) []finding {
	var found []finding
	for _, s := range goFiles(files) {
		if n := strings.Count(string(s.text), "\n"); n > maxFileLines {
			found = append(found, finding{s.path, fmt.Sprintf("%d lines; at most %d: what in it is another thing?", n, maxFileLines)})
		}
	}
	return found
}

func functionLength(files []*source) []finding {
	var found []finding
	for _, s := range goFiles(files) {
		for _, d := range s.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := s.fset.Position(fn.End()).Line - s.fset.Position(fn.Pos()).Line + 1
			if n > maxFunctionLines {
				found = append(found, finding{s.at(fn.Pos()), fmt.Sprintf("%s has %d lines; at most %d", fn.Name.Name, n, maxFunctionLines)})
			}
		}
	}
	return found
}

// manyParameters are functions whose shape somebody else has set, or the contract.
var manyParameters = map[string]string{
	"HandleFailure": "protoactor's SupervisorStrategy",
	"Put":           "the contract: where to, what, and options at the end",
	"Get":           "the contract: from where, into what, and options at the end",
}

// parameters counts what a caller must pass in order; a context does not count, nor do options at the end.
func parameters(files []*source) []finding {
	var found []finding
	for _, s := range production(files) {
		for _, d := range s.file.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || manyParameters[fn.Name.Name] != "" {
				continue
			}
			n := 0
			for _, f := range fn.Type.Params.List {
				if sel, ok := f.Type.(*ast.SelectorExpr); ok && sel.Sel.Name == "Context" {
					continue
				}
				if _, ok := f.Type.(*ast.Ellipsis); ok {
					continue
				}
				n += max(1, len(f.Names))
			}
			if n > maxParameters {
				found = append(found, finding{s.at(fn.Pos()), fmt.Sprintf("%s takes %d parameters; at most %d, then a struct", fn.Name.Name, n, maxParameters)})
			}
		}
	}
	return found
}

// packageComments: each package says what it is for, in doc.go unless it is one small file.
func packageComments(files []*source) []finding {
	type pkg struct {
		doc   bool
		count int
	}
	dirs := make(map[string]*pkg)
	var order []string
	for _, s := range goFiles(files) {
		if s.test {
			continue
		}
		p := dirs[s.dir()]
		if p == nil {
			p = &pkg{}
			dirs[s.dir()] = p
			order = append(order, s.dir())
		}
		p.count++
		if s.file.Doc != nil && (path.Base(s.path) == "doc.go" || s.file.Name.Name == "main") {
			p.doc = true
		}
		if s.file.Doc != nil && !s.in("wire", "rma", "endpoint", "supervision", "rail", "actors") {
			p.doc = true
		}
	}
	var found []finding
	for _, d := range order {
		if !dirs[d].doc {
			found = append(found, finding{d, "no doc.go with a package comment: purpose, owner, invariants, where to start reading"})
		}
	}
	return found
}

// distinctErrors: two errors never share one message.
func distinctErrors(files []*source) []finding {
	var found []finding
	first := make(map[string]string)
	for _, s := range production(files) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) == 0 {
				return true
			}
			if !makesError(call) {
				return true
			}
			text, ok := literal(call.Args[0])
			if !ok || strings.Contains(text, "%w") { // a wrapped error tells them apart
				return true
			}
			if where := first[text]; where != "" {
				found = append(found, finding{s.at(call.Pos()), fmt.Sprintf("says %q, as does %s: two errors never share one message", text, where)})
				return true
			}
			first[text] = s.at(call.Pos())
			return true
		})
	}
	return found
}

func makesError(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return ok && (x.Name == "errors" && sel.Sel.Name == "New" || x.Name == "fmt" && sel.Sel.Name == "Errorf")
}

// literal gives the value of a string literal, or of a sum of them.
func literal(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		if e.Kind != token.STRING {
			return "", false
		}
		s, err := strconv.Unquote(e.Value)
		return s, err == nil
	case *ast.BinaryExpr:
		a, ok := literal(e.X)
		b, also := literal(e.Y)
		return a + b, ok && also
	}
	return "", false
}

// noSkips: a test that is skipped is a promise that nobody checks. Only what needs root may be, and .ci/run, which is root,
// fails where it was.
func noSkips(files []*source) []finding {
	var found []finding
	for _, s := range goFiles(files) {
		if !s.test && !s.in("rail/railtest") || s.in("test/lab") {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || (sel.Sel.Name != "Skip" && sel.Sel.Name != "Skipf" && sel.Sel.Name != "SkipNow") {
				return true
			}
			if x, ok := sel.X.(*ast.Ident); ok && x.Name != "filepath" && x.Name != "fs" {
				found = append(found, finding{s.at(call.Pos()), "a test that can be skipped: make it run everywhere, or fail"})
			}
			return true
		})
	}
	return found
}

func TestTidy(t *testing.T) {
	for _, r := range []rule{fileLength, functionLength, parameters, packageComments, distinctErrors, noSkips} {
		holds(t, r)
	}
}

func TestTidyCatches(t *testing.T) {
	catches(t, fileLength, []snippet{
		{"long", "actors/x.go", "package actors\n" + strings.Repeat("// a line\n", maxFileLines), "601 lines"},
		{"generated", "wire/x.pb.go", "// Code generated by hand. DO NOT EDIT.\n\npackage wire\n" + strings.Repeat("// a line\n", maxFileLines), ""},
	})
	catches(t, functionLength, []snippet{
		{"long", "actors/x_test.go", "package actors\nfunc f() {\n" + strings.Repeat("f()\n", maxFunctionLines) + "}", "f has 102 lines"},
		{"short", "actors/x.go", "package actors\nfunc f() {\n" + strings.Repeat("f()\n", maxFunctionLines-2) + "}", ""},
	})
	catches(t, parameters, []snippet{
		{"five", "rail/x.go", "package rail\nfunc f(a, b, c int, d, e string) {}", "f takes 5 parameters"},
		{"context and options", "rail/x.go", "package rail\nfunc f(ctx context.Context, a, b, c, d int, opts ...int) {}", ""},
	})
	catches(t, packageComments, []snippet{
		{"none", "rail/x.go", "package rail", "no doc.go"},
		{"in another file", "rail/x.go", "// Package rail is.\npackage rail", "no doc.go"},
		{"there", "rail/doc.go", "// Package rail is.\npackage rail", ""},
		{"a program", "examples/x/main.go", "// X shows.\npackage main", ""},
	})
	catches(t, distinctErrors, []snippet{
		{"twice", "rail/x.go", "package rail\nvar a = errors.New(\"no\")\nvar b = fmt.Errorf(\"n\" + \"o\")", "says \"no\", as does rail/x.go:2"},
		{"wrapped", "rail/x.go", "package rail\nvar a = fmt.Errorf(\"x: %w\", c)\nvar b = fmt.Errorf(\"x: %w\", d)", ""},
	})
	catches(t, noSkips, []snippet{
		{"skip", "rail/x_test.go", "package rail\nfunc f(t *testing.T) { t.Skip(\"later\") }", "can be skipped"},
		{"skip now", "rail/x_test.go", "package rail\nfunc f(t *testing.T) { if short { t.SkipNow() } }", "can be skipped"},
		{"something else", "rail/x_test.go", "package rail\nfunc f() { fs.Skip() }", ""},
	})
}
