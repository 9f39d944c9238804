package lint

import (
	"fmt"
	"go/ast"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// This file: what README and docs/ say must be there. A page that names a file, a test or a command names one that exists.

// block is one fenced part of a page.
type block struct {
	language string
	line     int // of its first line
	text     string
}

// blocks gives the fenced parts of a page.
func blocks(s *source) []block {
	var list []block
	var open *block
	n := 0
	for line := range strings.Lines(string(s.text)) {
		n++
		fence, ok := strings.CutPrefix(strings.TrimSpace(line), "```")
		switch {
		case ok && open == nil:
			open = &block{language: strings.TrimSpace(fence), line: n + 1}
		case ok:
			list = append(list, *open)
			open = nil
		case open != nil:
			open.text += line
		}
	}
	return list
}

// commands gives what a page tells its reader to type: the lines of its sh blocks without comments.
func commands(s *source) []finding {
	var list []finding
	for _, b := range blocks(s) {
		if b.language != "sh" {
			continue
		}
		n := b.line
		for line := range strings.Lines(b.text) {
			line, _, _ = strings.Cut(line, " #")
			if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
				list = append(list, finding{fmt.Sprintf("%s:%d", s.path, n), line})
			}
			n++
		}
	}
	return list
}

// tried says which test runs a command of README's that .ci/run does not run itself: the file, and what in it does.
var tried = map[string]string{}

// unknownCommands finds commands of README's that no test and no step of .ci/run runs.
func unknownCommands(files []*source) []finding {
	ci := ""
	for _, s := range files {
		if s.path == ".ci/run" {
			ci = uncommented(string(s.text))
		}
	}
	var found []finding
	for _, s := range files {
		if s.path != "README.md" {
			continue
		}
		for _, c := range commands(s) {
			if tried[c.what] == "" && !ranBy(ci, c.what) {
				found = append(found, finding{c.where, fmt.Sprintf("nothing runs %q: add it to .ci/run, or to tried with its test", c.what)})
			}
		}
	}
	return found
}

// ranBy tells whether a script has the command as a whole, not as the beginning of another one.
func ranBy(script, command string) bool {
	return regexp.MustCompile(regexp.QuoteMeta(command) + `(\n|$|'|"|\s*[|)&;])`).MatchString(script)
}

func uncommented(script string) string {
	var b strings.Builder
	for line := range strings.Lines(script) {
		if !strings.HasPrefix(strings.TrimSpace(line), "#") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// ticked are the words in backticks on a page, outside of fenced blocks.
var ticked = regexp.MustCompile("`([^`\n]+)`")

var (
	goFile   = regexp.MustCompile(`^[a-z][a-zA-Z0-9_./-]*\.(go|proto|md|yml)$`)
	story    = regexp.MustCompile(`^[a-z][a-z0-9-]*\.txt$`)
	testName = regexp.MustCompile(`^(Test|Fuzz|Benchmark|Example)[A-Z][A-Za-z0-9_]*$`)
	// placed is a file with the names in it that a page points at.
	placed = regexp.MustCompile("`([a-z][a-zA-Z0-9_./-]*\\.go)` \\(([A-Za-z0-9_., \n]+)\\)")
	link   = regexp.MustCompile(`\]\(([^)#\s]+)[^)]*\)`)
)

// mentions finds files, tests and links on the pages that are not in the tree.
func mentions(files []*source) []finding {
	have := make(map[string]bool)
	tests := make(map[string]bool)
	for _, s := range files {
		have[s.path] = true
		for d := path.Dir(s.path); d != "."; d = path.Dir(d) {
			have[d] = true
		}
		if s.test {
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark|Example)\w+)\(`).FindAllSubmatch(s.text, -1) {
				tests[string(m[1])] = true
			}
		}
	}
	var found []finding
	for _, s := range files {
		if !isPage(s) {
			continue
		}
		text := withoutBlocks(string(s.text))
		for _, m := range ticked.FindAllStringSubmatch(text, -1) {
			word := m[1]
			switch {
			case goFile.MatchString(word) && !have[word]:
				found = append(found, finding{s.path, fmt.Sprintf("names the file %s, which is not there", word)})
			case story.MatchString(word) && !have["test/script/testdata/"+word]:
				found = append(found, finding{s.path, fmt.Sprintf("names the story %s, which is not there", word)})
			case testName.MatchString(word) && !tests[word]:
				found = append(found, finding{s.path, fmt.Sprintf("names the test %s, which is not there", word)})
			}
		}
		for _, m := range placed.FindAllStringSubmatch(text, -1) {
			for name := range strings.FieldsFuncSeq(m[2], func(r rune) bool { return r == ',' || r == ' ' || r == '\n' }) {
				if names := declared(files, m[1]); names != nil && !names[name] {
					found = append(found, finding{s.path, fmt.Sprintf("names %s in %s, which is not there", name, m[1])})
				}
			}
		}
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if to := path.Join(s.dir(), m[1]); !strings.Contains(m[1], "://") && !have[to] {
				found = append(found, finding{s.path, fmt.Sprintf("links to %s, which is not there", m[1])})
			}
		}
	}
	return found
}

// declared gives the functions and types of a file, methods also as Type.Method; nil where the file is not there.
func declared(files []*source, name string) map[string]bool {
	for _, s := range files {
		if s.path != name || s.file == nil {
			continue
		}
		names := make(map[string]bool)
		for _, d := range s.file.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				names[d.Name.Name], names[functionName(d)] = true, true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if t, ok := spec.(*ast.TypeSpec); ok {
						names[t.Name.Name] = true
					}
				}
			}
		}
		return names
	}
	return nil
}

func isPage(s *source) bool {
	return s.path == "README.md" || s.path == "CHANGELOG.md" || s.in("docs") && strings.HasSuffix(s.path, ".md")
}

func withoutBlocks(text string) string {
	return regexp.MustCompile("(?ms)^```.*?^```").ReplaceAllString(text, "")
}

// exampleFile is where README's code comes from: it is compiled, run, and its output compared.
const exampleFile = "actors/example_test.go"

// sample finds code on README that is not, word for word, whole declarations of the example.
func sample(files []*source) []finding {
	var readme, example *source
	for _, s := range files {
		switch s.path {
		case "README.md":
			readme = s
		case exampleFile:
			example = s
		}
	}
	if readme == nil || example == nil {
		return []finding{{"README.md", "README or " + exampleFile + " is not there"}}
	}
	if !strings.Contains(string(example.text), "// Output:") {
		return []finding{{exampleFile, "is not run: an example without Output is only compiled"}}
	}
	var found []finding
	count := 0
	for _, b := range blocks(readme) {
		if b.language != "go" {
			continue
		}
		count++
		where := fmt.Sprintf("README.md:%d", b.line)
		if _, err := parse("sample.go", []byte("package p\n"+b.text)); err != nil {
			found = append(found, finding{where, "is no whole declaration: " + err.Error()})
		} else if !strings.Contains(string(example.text), "\n"+b.text) {
			found = append(found, finding{where, "is not in " + exampleFile + " word for word"})
		}
	}
	if count == 0 {
		found = append(found, finding{"README.md", "shows no code"})
	}
	return found
}

func TestPages(t *testing.T) {
	for _, r := range []rule{unknownCommands, mentions, sample} {
		holds(t, r)
	}
}

// TestTriedCommandsAreRun: what tried says must be there.
func TestTriedCommandsAreRun(t *testing.T) {
	for command, where := range tried {
		file, text, ok := strings.Cut(where, ": ")
		require.True(t, ok, "tried[%q] wants \"file: text in it\"", command)
		b, err := os.ReadFile("../../" + file)
		require.NoError(t, err)
		require.Contains(t, string(b), text, "%s does not run %q any more", file, command)
	}
}

// TestBothCommandsAreThere: README opens with the two commands that do everything.
func TestBothCommandsAreThere(t *testing.T) {
	for _, s := range tree(t) {
		if s.path != "README.md" {
			continue
		}
		list := commands(s)
		require.GreaterOrEqual(t, len(list), 2)
		require.Equal(t, "go run ./cmd/railyard demo failover", list[0].what)
		require.Equal(t, "go test ./...", list[1].what)
		return
	}
	t.Fatal("README.md is not there")
}

func TestPagesCatch(t *testing.T) {
	page := func(name, text string) *source {
		s, err := parse(name, []byte(text))
		require.NoError(t, err)
		return s
	}
	ci := page(".ci/run", "#!/bin/bash\n# go run ./lies\nstep x go test ./...\nstep y go run ./a --b\n")
	fence := "```"
	for name, c := range map[string]struct{ text, want string }{
		"run by a step":          {"go test ./...  # everything", ""},
		"run by nobody":          {"go run ./nothing", "nothing runs"},
		"only in a comment":      {"go run ./lies", "nothing runs"},
		"a beginning of another": {"go run ./a", "nothing runs"},
	} {
		t.Run(name, func(t *testing.T) {
			found := unknownCommands([]*source{ci, page("README.md", "text\n"+fence+"sh\n"+c.text+"\n"+fence+"\n")})
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Equal(t, "README.md:3", found[0].where)
			require.Contains(t, found[0].what, c.want)
		})
	}
	here := page("rail/x_test.go", "package rail\nfunc TestHere(t *testing.T) {}\n")
	for name, c := range map[string]struct{ text, want string }{
		"all there":    {"see `rail/x_test.go`, `TestHere`, [it](../rail/x_test.go) and [a page](https://example.org/x)", ""},
		"no such file": {"see `rail/y.go`", "names the file rail/y.go"},
		"no such test": {"see `TestThere`", "names the test TestThere"},
		"no story":     {"see `never.txt`", "names the story never.txt"},
		"a function":   {"see `rail/x_test.go` (TestHere)", ""},
		"no such name": {"see `rail/x_test.go` (TestHere, thing)", "names thing in rail/x_test.go"},
		"a dead link":  {"see [it](y.md)", "links to y.md"},
	} {
		t.Run(name, func(t *testing.T) {
			found := mentions([]*source{here, page("docs/x.md", c.text)})
			if c.want == "" {
				require.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			require.Contains(t, found[0].what, c.want)
		})
	}
	example := page(exampleFile, "package p\n\nfunc Example() {\n\tadd(1)\n\t// Output: 1\n}\n\n// add adds.\nfunc add(n int) {\n\tprint(n)\n}\n")
	good := "// add adds.\nfunc add(n int) {\n\tprint(n)\n}\n"
	require.Empty(t, sample([]*source{example, page("README.md", fence+"go\n"+good+fence+"\n")}))
	for name, text := range map[string]string{
		"changed":    fence + "go\n" + strings.Replace(good, "print", "println", 1) + fence + "\n",
		"cut":        fence + "go\n" + strings.TrimSuffix(good, "}\n") + fence + "\n",
		"no code":    "no sample",
		"two, a lie": fence + "go\n" + good + fence + "\n" + fence + "go\nfunc lie() {}\n" + fence + "\n",
	} {
		require.Len(t, sample([]*source{example, page("README.md", text)}), 1, name)
	}
}
