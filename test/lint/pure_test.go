package lint

import (
	"go/ast"
	"go/token"
	"strings"
	"testing"
)

// pure tells whether the same input must always give the same output: what the simulator replays from a seed.
func pure(s *source) bool {
	switch s.dir() {
	case "wire", "rma", "endpoint/session", purest:
		return true
	case "supervision":
		return !strings.HasPrefix(s.path, "supervision/adapter")
	case "rail":
		return s.path == "rail/health.go"
	}
	return false
}

func pureFiles(files []*source) []*source { return only(production(files), pure) }

// noGoroutines: pure code starts none, and waits for none.
func noGoroutines(files []*source) []finding {
	var found []finding
	for _, s := range pureFiles(files) {
		ast.Inspect(s.file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				found = append(found, finding{s.at(n.Pos()), "a goroutine in pure code: its owner, the shell, starts them"})
			case *ast.SelectStmt:
				if s.dir() == "endpoint/session" || s.dir() == purest {
					found = append(found, finding{s.at(n.Pos()), "a select in the session: it waits for nothing"})
				}
			}
			return true
		})
	}
	return found
}

// clock are the ways to ask what time it is, or to be called when some has passed.
var clock = []string{"Now", "Since", "Until", "After", "AfterFunc", "Sleep", "Tick", "NewTimer", "NewTicker"}

// noClock: now comes in, deadlines go out.
func noClock(files []*source) []finding {
	var found []finding
	for _, s := range pureFiles(files) {
		for _, use := range uses(s, "time", clock...) {
			found = append(found, finding{s.at(use.Pos()), "pure code asks time." + use.Sel.Name + ": take now as an argument, give a deadline out"})
		}
	}
	return found
}

// seeded are the names of math/rand that make or describe a source of one's own.
var seeded = []string{"New", "NewPCG", "NewChaCha8", "NewZipf", "NewSource", "Rand", "Source", "Source64", "PCG", "ChaCha8", "Zipf"}

// noGlobalRandom: randomness is passed in.
func noGlobalRandom(files []*source) []finding {
	var found []finding
	for _, s := range pureFiles(files) {
		for _, pkg := range []string{"math/rand", "math/rand/v2"} {
			for _, use := range uses(s, pkg) {
				if !contains(seeded, use.Sel.Name) {
					found = append(found, finding{s.at(use.Pos()), "rand." + use.Sel.Name + " is global: have a source passed in"})
				}
			}
		}
		for _, imp := range s.file.Imports {
			if importPath(imp) == "crypto/rand" {
				found = append(found, finding{s.at(imp.Pos()), "crypto/rand in pure code: have an io.Reader passed in"})
			}
		}
	}
	return found
}

// noWorld: pure code touches no file, socket or system. supervision names their errors, so it is let off.
func noWorld(files []*source) []finding {
	var found []finding
	for _, s := range pureFiles(files) {
		for _, imp := range s.file.Imports {
			name := importPath(imp)
			switch {
			case (s.dir() == "endpoint/session" || s.dir() == purest) && (name == "sync" || name == "sync/atomic"):
				found = append(found, finding{s.at(imp.Pos()), "the session has no lock: its owner calls it under one"})
			case s.dir() == "wire" && (name == "sync" || name == "sync/atomic"):
				found = append(found, finding{s.at(imp.Pos()), "a codec shares nothing: it needs no " + name})
			case s.dir() != "supervision" && (below(name, "os") || below(name, "net") || name == "syscall" || name == "unsafe"):
				found = append(found, finding{s.at(imp.Pos()), "pure code imports " + name})
			}
		}
		if s.dir() == "supervision" { // errors and their types only
			for _, pkg := range []string{"os", "net", "syscall"} {
				for _, use := range uses(s, pkg) {
					if !strings.HasPrefix(use.Sel.Name, "E") && !strings.Contains(use.Sel.Name, "Err") {
						found = append(found, finding{s.at(use.Pos()), "the policy uses " + pkg + "." + use.Sel.Name + ", which is no error"})
					}
				}
			}
		}
	}
	return found
}

// noPackageState: what a package variable remembers, a seed does not replay.
func noPackageState(files []*source) []finding {
	var found []finding
	for _, s := range pureFiles(files) {
		names := packageVars(s)
		ast.Inspect(s.file, func(n ast.Node) bool {
			var targets []ast.Expr
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE {
					targets = n.Lhs
				}
			case *ast.IncDecStmt:
				targets = []ast.Expr{n.X}
			}
			for _, e := range targets {
				if id, ok := e.(*ast.Ident); ok && names[id.Name] && !shadowed(s.file, id) {
					found = append(found, finding{s.at(id.Pos()), "package variable " + id.Name + " is changed in pure code"})
				}
			}
			return true
		})
	}
	return found
}

func packageVars(s *source) map[string]bool {
	names := make(map[string]bool)
	for _, d := range s.file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok || g.Tok != token.VAR {
			continue
		}
		for _, spec := range g.Specs {
			for _, id := range spec.(*ast.ValueSpec).Names {
				names[id.Name] = true
			}
		}
	}
	return names
}

// shadowed tells roughly whether the function around id declares its name anew.
func shadowed(f *ast.File, id *ast.Ident) bool {
	for _, d := range f.Decls {
		fn, ok := d.(*ast.FuncDecl)
		if !ok || id.Pos() < fn.Pos() || id.Pos() > fn.End() {
			continue
		}
		again := false
		ast.Inspect(fn, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok == token.DEFINE {
					for _, e := range n.Lhs {
						if x, ok := e.(*ast.Ident); ok && x.Name == id.Name {
							again = true
						}
					}
				}
			case *ast.Field:
				for _, x := range n.Names {
					again = again || x.Name == id.Name
				}
			case *ast.ValueSpec:
				for _, x := range n.Names {
					again = again || x.Name == id.Name
				}
			}
			return !again
		})
		return again
	}
	return false
}

func TestPurePackages(t *testing.T) {
	for _, r := range []rule{noGoroutines, noClock, noGlobalRandom, noWorld, noPackageState} {
		holds(t, r)
	}
}

// TestPureFilesAreThere: a rule over files that have moved away would pass whatever they do.
func TestPureFilesAreThere(t *testing.T) {
	seen := make(map[string]int)
	for _, s := range pureFiles(tree(t)) {
		seen[s.dir()]++
	}
	for _, dir := range []string{"wire", "rma", "endpoint/session", "supervision", "rail", purest} {
		if seen[dir] == 0 {
			t.Errorf("no pure file in %s was looked at", dir)
		}
	}
}

func TestPureCatches(t *testing.T) {
	catches(t, noGoroutines, []snippet{
		{"go", "rma/x.go", "package rma\nfunc f() { go f() }", "a goroutine in pure code"},
		{"select", "endpoint/session/x.go", "package session\nfunc f() { select {} }", "a select in the session"},
		{"in the adapter", "supervision/adapter_x.go", "package supervision\nfunc f() { go f() }", ""},
		{"in a test", "rma/x_test.go", "package rma\nfunc f() { go f() }", ""},
	})
	catches(t, noClock, []snippet{
		{"now", "endpoint/session/x.go", "package session\nimport \"time\"\nvar t = time.Now()", "time.Now"},
		{"renamed", "wire/x.go", "package wire\nimport clock \"time\"\nfunc f() { clock.Sleep(1) }", "time.Sleep"},
		{"health", "rail/health.go", "package rail\nimport \"time\"\nvar t = time.After(1)", "time.After"},
		{"a duration", "rma/x.go", "package rma\nimport \"time\"\nvar d = 3 * time.Second", ""},
		{"the shell", "rail/rail.go", "package rail\nimport \"time\"\nvar t = time.Now()", ""},
	})
	catches(t, noGlobalRandom, []snippet{
		{"global", "supervision/x.go", "package supervision\nimport \"math/rand/v2\"\nvar x = rand.IntN(3)", "rand.IntN is global"},
		{"crypto", "rma/x.go", "package rma\nimport _ \"crypto/rand\"", "crypto/rand in pure code"},
		{"passed in", "supervision/x.go", "package supervision\nimport \"math/rand/v2\"\nfunc f(s rand.Source) *rand.Rand { return rand.New(s) }", ""},
	})
	catches(t, noWorld, []snippet{
		{"a file", "wire/x.go", "package wire\nimport _ \"os\"", "pure code imports os"},
		{"an address", "rma/x.go", "package rma\nimport _ \"net/netip\"", "pure code imports net/netip"},
		{"a lock", "endpoint/session/x.go", "package session\nimport _ \"sync/atomic\"", "the session has no lock"},
		{"a locking codec", "wire/x.go", "package wire\nimport _ \"sync\"", "shares nothing"},
		{"a policy that dials", "supervision/x.go", "package supervision\nimport \"net\"\nvar f = net.Dial", "net.Dial, which is no error"},
		{"a region may lock", "rma/x.go", "package rma\nimport _ \"sync\"", ""},
		{"a policy that knows errors", "supervision/x.go", "package supervision\nimport \"syscall\"\nvar e = syscall.ECONNRESET", ""},
	})
	catches(t, noPackageState, []snippet{
		{"a counter", "rma/x.go", "package rma\nvar n int\nfunc f() { n++ }", "package variable n is changed"},
		{"an assignment", "wire/x.go", "package wire\nvar last string\nfunc f(s string) { last = s }", "package variable last is changed"},
		{"a local of the same name", "wire/x.go", "package wire\nvar last string\nfunc f(s string) { last := s; last = s; _ = last }", ""},
	})
}
