package lint

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// bounded: every channel made in production code is unbuffered, or its room is a constant or a setting.
func bounded(files []*source) []finding {
	files = production(files)
	consts := constants(files)
	var found []finding
	for _, s := range files {
		ast.Inspect(s.file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			if fn, ok := call.Fun.(*ast.Ident); !ok || fn.Name != "make" {
				return true
			}
			if _, ok := call.Args[0].(*ast.ChanType); ok && !fixed(call.Args[1], consts[s.dir()]) {
				found = append(found, finding{s.at(call.Pos()), "the room of this channel is no constant and no setting: what bounds it?"})
			}
			return true
		})
	}
	return found
}

// constants collects the names of each package's constants.
func constants(files []*source) map[string]map[string]bool {
	all := make(map[string]map[string]bool)
	for _, s := range files {
		names := all[s.dir()]
		if names == nil {
			names = make(map[string]bool)
			all[s.dir()] = names
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			if g, ok := n.(*ast.GenDecl); ok && g.Tok == token.CONST {
				for _, spec := range g.Specs {
					for _, id := range spec.(*ast.ValueSpec).Names {
						names[id.Name] = true
					}
				}
			}
			return true
		})
	}
	return all
}

// fixed tells whether an expression is made of literals, constants and fields of a configuration.
func fixed(e ast.Expr, consts map[string]bool) bool {
	switch e := e.(type) {
	case *ast.BasicLit:
		return true
	case *ast.Ident:
		return consts[e.Name]
	case *ast.ParenExpr:
		return fixed(e.X, consts)
	case *ast.BinaryExpr:
		return fixed(e.X, consts) && fixed(e.Y, consts)
	case *ast.SelectorExpr:
		return isConfig(e)
	}
	return false
}

// isConfig: some part of a.b.c is called cfg, config or …Config.
func isConfig(e ast.Expr) bool {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name == "cfg" || strings.HasSuffix(strings.ToLower(e.Name), "config")
	case *ast.SelectorExpr:
		return isConfig(e.Sel) || isConfig(e.X)
	}
	return false
}

func TestQueuesAreBounded(t *testing.T) { holds(t, bounded) }

func TestUnboundedQueueIsCaught(t *testing.T) {
	catches(t, bounded, []snippet{
		{"a variable", "actors/x.go", "package actors\nfunc f(n int) chan int { return make(chan int, n) }", "what bounds it?"},
		{"a length", "actors/x.go", "package actors\nfunc f(l []int) chan int { return make(chan int, len(l)) }", "what bounds it?"},
		{"hidden in a sum", "rail/x.go", "package rail\nconst c = 3\nvar n = 4\nvar x = make(chan int, c+n)", "what bounds it?"},
		{"unbuffered", "rail/x.go", "package rail\nvar x = make(chan int)", ""},
		{"a number", "rail/x.go", "package rail\nvar x = make(chan int, 1)", ""},
		{"a constant", "rail/x.go", "package rail\nconst room = 1 << 3\nvar x = make(chan int, 2*room)", ""},
		{"a setting", "rail/x.go", "package rail\nfunc (r *t) f() { r.c = make(chan int, r.cfg.Room) }", ""},
	})
}
