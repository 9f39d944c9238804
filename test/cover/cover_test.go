package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func read(t *testing.T, texts ...string) profile {
	t.Helper()
	p := profile{}
	for _, text := range texts {
		require.NoError(t, p.read(strings.NewReader(text)))
	}
	return p
}

func TestAStatementCountsOnce(t *testing.T) {
	p := read(t, `mode: set
railyard/wire/a.go:1.2,3.4 3 0
railyard/wire/a.go:5.2,6.4 2 1
railyard/wire/a.go:1.2,3.4 3 0
railyard/wire/b.go:1.2,3.4 5 0
`, `mode: count
railyard/wire/b.go:1.2,3.4 5 100
`)
	ran, all := p.share("wire")
	assert.Equal(t, 7, ran)
	assert.Equal(t, 10, all)
	ran, all = p.share("wire/a.go")
	assert.Equal(t, 2, ran)
	assert.Equal(t, 5, all)
}

func TestWhatIsPartOfWhat(t *testing.T) {
	for _, c := range []struct {
		file, part string
		in         bool
	}{
		{"railyard/wire/a.go", "wire", true},
		{"railyard/wire/control.pb.go", "wire", false},
		{"railyard/wire/deep/a.go", "wire", false},
		{"railyard/wireless/a.go", "wire", false},
		{"other/wire/a.go", "wire", false},
		{"railyard/rail/health.go", "rail/health.go", true},
		{"railyard/rail/health.go", "rail", true},
		{"railyard/rail/healthy.go", "rail/health.go", false},
		{"railyard/endpoint/session/a.go", "endpoint/session", true},
	} {
		assert.Equal(t, c.in, within(c.file, c.part), "%s in %s", c.file, c.part)
	}
}

func TestWhatIsNoProfileIsRefused(t *testing.T) {
	for text, word := range map[string]string{
		"":                              "no mode",
		"railyard/a.go:1.2,3.4 1 1\n":   "no mode",
		"mode: set\nok railyard/wire\n": "is no block",
		"mode: set\na.go:1.1,2.2 99999999999999999999 1\n":  "so many statements",
		"mode: set\na.go:1.1,2.2 1 1\na.go:1.1,2.2 2 1\n":   "the tree has changed",
		"mode: set\n" + strings.Repeat("x", 1<<17) + " 1 1": "cannot be read",
	} {
		err := profile{}.read(strings.NewReader(text))
		require.ErrorIs(t, err, errProfile)
		assert.ErrorContains(t, err, word)
	}
}

// most gives a profile in which so many of a hundred statements of each part ran.
func most(n int) profile {
	p := profile{}
	for _, d := range demands {
		file := module + "/" + d.part
		if !strings.HasSuffix(file, ".go") {
			file += "/a.go"
		}
		p[file+":1.1,2.2"] = block{statements: n, ran: true}
		p[file+":3.1,4.2"] = block{statements: 100 - n}
	}
	return p
}

func TestTooLittleFails(t *testing.T) {
	var out bytes.Buffer
	assert.True(t, judge(&out, map[string]profile{byTests: most(90), bySimulator: most(85)}))
	assert.NotContains(t, out.String(), "TOO LITTLE")
	assert.Equal(t, 1+len(demands), strings.Count(out.String(), "\n"))

	assert.False(t, judge(&out, map[string]profile{byTests: most(89), bySimulator: most(85)}))
	out.Reset()
	assert.False(t, judge(&out, map[string]profile{byTests: most(90), bySimulator: most(84)}))
	assert.Equal(t, 1, strings.Count(out.String(), "TOO LITTLE"), out.String())

	out.Reset()
	assert.False(t, judge(&out, map[string]profile{}), "nothing measured is not enough")
	assert.Contains(t, out.String(), "0.0 %")
}

func TestWrongUsageIsOneLine(t *testing.T) {
	var out, errOut bytes.Buffer
	assert.Equal(t, codeUsage, run(t.Context(), []string{"all"}, &out, &errOut))
	assert.Equal(t, "cover: what is \"all\"? It takes no arguments\n", errOut.String())
}
