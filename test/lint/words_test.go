package lint

import (
	"fmt"
	"path"
	"regexp"
	"strings"
	"testing"
)

// onlyHere are paths of one machine: nobody else has them. (They are put together here so that this file passes.)
var onlyHere = regexp.MustCompile(`(^|[^A-Za-z0-9_.~-])/(` + strings.Join([]string{"wo" + "rk", "ro" + "ot", "ho" + "me", "tm" + "p", "Us" + "ers"}, "|") + `)/[A-Za-z0-9_.$*-]`)

// registries are hosts that serve modules, packages or images: which one is in use is each machine's affair.
var registries = regexp.MustCompile(`(?i)(` + strings.Join([]string{
	`proxy\.golang\.` + "org", `sum\.golang\.` + "org", `goproxy\.` + "(io|cn)", `pypi\.` + "org", `registry\.npmjs`, `docker\.` + "io",
	`ghcr\.` + "io", `quay\.` + "io", `deb\.debian\.` + "org", "GO" + `(PROXY|SUMDB|NOSUMDB|PRIVATE|FLAGS)=`,
}, "|") + `)`)

// unfinished is a note for later; it has to say what.
var unfinished = regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X|HA` + `CK)\b(.*)`)

// said is the form in which a note is all right: a colon and some words.
var said = regexp.MustCompile(`^(\([^)]+\))?: *\S+ +\S+`)

// lines applies f to every line of the files that people write.
func lines(files []*source, f func(s *source, line string) string) []finding {
	var found []finding
	for _, s := range files {
		if s.generated || path.Base(s.path) == "go.sum" {
			continue
		}
		n := 0
		for line := range strings.Lines(string(s.text)) {
			n++
			if what := f(s, line); what != "" {
				found = append(found, finding{fmt.Sprintf("%s:%d", s.path, n), what})
			}
		}
	}
	return found
}

func noMachinePaths(files []*source) []finding {
	return lines(files, func(_ *source, line string) string {
		if hit := onlyHere.FindString(line); hit != "" {
			return fmt.Sprintf("%q is a path of one machine", strings.TrimSpace(hit))
		}
		return ""
	})
}

func noRegistries(files []*source) []finding {
	return lines(files, func(_ *source, line string) string {
		if hit := registries.FindString(line); hit != "" {
			return fmt.Sprintf("%q: where modules and packages come from is the machine's setting", hit)
		}
		return ""
	})
}

func notesSayWhat(files []*source) []finding {
	return lines(files, func(_ *source, line string) string {
		m := unfinished.FindStringSubmatch(line)
		if m != nil && !said.MatchString(m[2]) {
			return fmt.Sprintf("%s without a word what: write %s: and what is to be done", m[1], m[1])
		}
		return ""
	})
}

func TestWords(t *testing.T) {
	for _, r := range []rule{noMachinePaths, noRegistries, notesSayWhat} {
		holds(t, r)
	}
}

func TestWordsCatch(t *testing.T) {
	slash := "/"
	catches(t, noMachinePaths, []snippet{
		{"in a script", "x.sh", "cd " + slash + "wo" + "rk/main", "a path of one machine"},
		{"in code", "rail/x.go", "package rail\nconst p = \"" + slash + "tm" + "p/x\"", "rail/x.go:2"},
		{"in prose", "README.md", "see " + slash + "ho" + "me/me/notes", "a path of one machine"},
		{"a folder of ours", "README.md", "see test/wo" + "rk/x and ./tm" + "p/y", ""},
		{"the kernel's", "rail/x.go", "package rail\nconst p = \"/proc/self/fd\"", ""},
	})
	catches(t, noRegistries, []snippet{
		{"a host", "x.sh", "curl https://proxy.golang." + "org/x", "the machine's setting"},
		{"a variable", "x.sh", "export GO" + "PROXY=direct", "the machine's setting"},
		{"a module", "go.mod", "require go.uber.org/zap v1.28.0", ""},
	})
	catches(t, notesSayWhat, []snippet{
		{"bare", "rail/x.go", "package rail\n// TO" + "DO", "without a word what"},
		{"one word", "x.sh", "# FIX" + "ME: later", "without a word what"},
		{"said", "rail/x.go", "package rail\n// TO" + "DO: take the measured rate", ""},
		{"another word", "README.md", "to" + "do lists", ""},
	})
}
