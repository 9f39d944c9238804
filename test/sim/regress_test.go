package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestRegressions plays the worlds in which somebody has found something. After a change of the code a seed means another
// world; they cost little and are kept.
func TestRegressions(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/regressions/*")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var recipes []recipe
	for _, name := range files {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		what, r, err := readRegression(string(text))
		require.NoError(t, err, name)
		require.NotEmpty(t, what, name)
		recipes = append(recipes, r)
	}
	holds(t, recipes)
}

func TestWhatIsSavedIsReadAgain(t *testing.T) {
	t.Parallel()
	r := recipe{seed: 9, profile: "gets", without: []string{"lanes"}, faults: 3}
	f := &found{recipe: r, failure: &Failure{Text: "a byte\nis wrong"}}
	name := filepath.Join(t.TempDir(), "a-byte.txt")
	saved, err := f.save(name)
	require.NoError(t, err)
	assert.Equal(t, name, saved)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	what, again, err := readRegression(string(text))
	require.NoError(t, err)
	assert.Equal(t, "a byte is wrong", what)
	assert.Equal(t, r, again)

	_, err = f.save(name)
	require.ErrorContains(t, err, "a new file is needed", "nobody's regression is written over")
	for _, text := range []string{"", "one line", "a\nb\nc"} {
		_, _, err := readRegression(text)
		require.ErrorContains(t, err, "has two lines", text)
	}
}

func TestRegressionsAreSavedInTheRepository(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	info, err := os.Stat(filepath.Join(root, filepath.FromSlash(regressions)))
	require.NoError(t, err)
	assert.True(t, info.IsDir())
	t.Chdir(t.TempDir())
	_, err = saveRegression("x", &found{})
	require.ErrorContains(t, err, "run it inside")
}
