package lint

import (
	"go/ast"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// This file: docs/operations.md explains every setting and every event, and no others.

const operations = "docs/operations.md"

// explained are the tables of the page: the heading of the first column, and where its names come from.
var explained = []struct {
	heading string
	names   func(files []*source) []string
}{
	{"setting of actors.Config", func(files []*source) []string { return fields(files, "actors/config.go", "Config") }},
	{"setting of rail.HealthConfig", func(files []*source) []string { return fields(files, "rail/health.go", "HealthConfig") }},
	{"event", eventKinds},
}

// fields gives the exported fields of a struct.
func fields(files []*source, file, name string) (list []string) {
	for _, s := range files {
		if s.path != file {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			t, ok := n.(*ast.TypeSpec)
			if !ok || t.Name.Name != name {
				return true
			}
			if of, ok := t.Type.(*ast.StructType); ok {
				for _, f := range of.Fields.List {
					for _, n := range f.Names {
						if n.IsExported() {
							list = append(list, n.Name)
						}
					}
				}
			}
			return false
		})
	}
	return list
}

// eventKinds gives the keys of rail's table of names.
func eventKinds(files []*source) (list []string) {
	for _, s := range files {
		if s.path != "rail/events.go" {
			continue
		}
		ast.Inspect(s.file, func(n ast.Node) bool {
			v, ok := n.(*ast.ValueSpec)
			if !ok || v.Names[0].Name != "eventNames" {
				return true
			}
			for _, e := range v.Values[0].(*ast.CompositeLit).Elts {
				list = append(list, e.(*ast.KeyValueExpr).Key.(*ast.Ident).Name)
			}
			return false
		})
	}
	return list
}

// rows gives the names in backticks in the first column of the table with the heading.
func rows(page, heading string) (list []string) {
	inside := false
	for line := range strings.Lines(page) {
		cells := strings.Split(line, "|")
		if len(cells) < 3 {
			inside = false
			continue
		}
		if strings.TrimSpace(cells[1]) == heading {
			inside = true
			continue
		}
		if inside {
			for _, m := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
				list = append(list, m[1])
			}
		}
	}
	return list
}

func TestOperationsExplainsWhatThereIs(t *testing.T) {
	files := tree(t)
	page := ""
	for _, s := range files {
		if s.path == operations {
			page = string(s.text)
		}
	}
	for _, e := range explained {
		names := e.names(files)
		require.NotEmpty(t, names, e.heading)
		require.ElementsMatch(t, names, rows(page, e.heading), "%s: %s", operations, e.heading)
	}
	require.Equal(t, []string{"A", "B"}, rows("x\n| event | y |\n|---|---|\n| `A`, `B` | `C` |\n\n| other |\n| `D` |\n", "event"))
}
