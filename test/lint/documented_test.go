package lint

import (
	"go/ast"
	"testing"
)

// documented: every exported name of the library says what it is, so that go doc of a package reads as a guide. Of constants and variables in
// one group the group may say it.
func documented(files []*source) []finding {
	var found []finding
	for _, s := range production(files) {
		if _, ok := library[s.dir()]; !ok {
			continue
		}
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && ofExported(d) && d.Doc == nil && !wellKnown[d.Name.Name] {
					found = append(found, finding{s.at(d.Pos()), functionName(d) + " is exported and has no comment"})
				}
			case *ast.GenDecl:
				found = append(found, undocumented(s, d)...)
			}
		}
	}
	return found
}

// wellKnown are methods of the standard library's interfaces for errors and text: everybody knows what they do.
var wellKnown = map[string]bool{"Error": true, "Unwrap": true, "String": true}

// ofExported tells whether a function is no method, or one of an exported type.
func ofExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	switch g := t.(type) {
	case *ast.IndexExpr:
		t = g.X
	case *ast.IndexListExpr:
		t = g.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}

func undocumented(s *source, d *ast.GenDecl) (found []finding) {
	for _, spec := range d.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			if spec.Name.IsExported() && spec.Doc == nil && (d.Doc == nil || d.Lparen.IsValid()) {
				found = append(found, finding{s.at(spec.Pos()), spec.Name.Name + " is exported and has no comment"})
			}
		case *ast.ValueSpec:
			for _, name := range spec.Names {
				if name.IsExported() && d.Doc == nil && spec.Doc == nil && spec.Comment == nil {
					found = append(found, finding{s.at(name.Pos()), name.Name + " is exported and has no comment"})
				}
			}
		}
	}
	return found
}

func TestExportedNamesAreDocumented(t *testing.T) { holds(t, documented) }

func TestDocumentedCatches(t *testing.T) {
	catches(t, documented, []snippet{
		{"a function", "rail/x.go", "package rail\nfunc F() {}", "F is exported"},
		{"a method", "rail/x.go", "package rail\n// T is.\ntype T struct{}\nfunc (t *T) M() {}", "T.M is exported"},
		{"an error's text", "rail/x.go", "package rail\n// T is.\ntype T struct{}\nfunc (T) Error() string { return \"\" }", ""},
		{"of a type of one's own", "rail/x.go", "package rail\ntype t[K any] struct{}\nfunc (t[K]) M() {}", ""},
		{"a type", "rail/x.go", "package rail\ntype T struct{}", "T is exported"},
		{"in a group", "rail/x.go", "package rail\n// These are.\ntype (\nT struct{}\n)", "T is exported"},
		{"a constant", "rail/x.go", "package rail\nconst C = 1", "C is exported"},
		{"a group of constants", "rail/x.go", "package rail\n// The colors.\nconst (\nRed = 1\nBlue = 2\n)", ""},
		{"beside it", "rail/x.go", "package rail\nvar (\nV = 1 // what it is\n)", ""},
		{"a program's", "cmd/railyard/x.go", "package main\nfunc F() {}", ""},
	})
}
