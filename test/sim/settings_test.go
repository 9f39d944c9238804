package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrongUsageIsOneLineAndCode2(t *testing.T) {
	for line, word := range map[string]string{
		"--seeds 0":                     "plays nothing",
		"--seeds many":                  `"many"`,
		"--seeds 3 7":                   `what is "7"?`,
		"--from -1":                     `"-1"`,
		"--from 18446744073709551615":   "end before that",
		"--profile haste":               `"haste": there is no such profile`,
		"--without sorrow,gets":         `"sorrow,gets": there is no such feature`,
		"--length -1s":                  "less than no time",
		"--faults -2":                   "at the least it is 0",
		"--for -1s":                     "less than none",
		"--shrink -1s":                  "less than none",
		"--soak 1s --profile gets":      "all profiles in turn",
		"--save ../other":               "small letters",
		"--cpuprofile /does/not/exist/": "no profile",
		"--fast":                        "--help lists the flags",
		"--length":                      "needs an argument",
	} {
		var out, errOut bytes.Buffer
		assert.Equal(t, codeUsage, run(strings.Fields(line), &out, &errOut), line)
		assert.Empty(t, out.String(), line)
		assert.Contains(t, errOut.String(), word, line)
		assert.Equal(t, 1, strings.Count(errOut.String(), "\n"), "%s: %q", line, errOut.String())
	}
}

func TestHelpListsTheFlags(t *testing.T) {
	var out, errOut bytes.Buffer
	assert.Equal(t, codeHeld, run([]string{"--help"}, &out, &errOut))
	assert.Contains(t, out.String(), "-check-mix")
	assert.Empty(t, errOut.String())
}

func TestARecipeIsTheFlagsThatPlayIt(t *testing.T) {
	for text, want := range map[string]recipe{
		"--seeds 1 --from 7": {seed: 7, faults: allFaults},
		"--seeds 1 --from 7 --profile gets --without lanes,evil --length 30ms --faults 0": {seed: 7, profile: "gets",
			without: []string{"lanes", "evil"}, length: 30e6},
		"--seeds 1 --from 18446744073709551615 --faults 4": {seed: 1<<64 - 1, faults: 4},
	} {
		got, err := parseRecipe(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got)
		assert.Equal(t, text, got.String())
	}
	for text, word := range map[string]string{
		"--seeds 2 --from 7":     "one world",
		"--from 7 again":         "one world",
		"--fast":                 "is no recipe",
		"--profile x":            "no such profile",
		"--without gets,sorrows": "no such feature",
	} {
		_, err := parseRecipe(text)
		assert.ErrorContains(t, err, word, text)
	}
}

func TestARecipeChangesTheWorld(t *testing.T) {
	opt, err := recipe{seed: 3, profile: "cancels", without: []string{"lanes", "puts"}, length: 30e6, faults: 2}.options()
	require.NoError(t, err)
	assert.Equal(t, 1, opt.Lanes, "what is left out stays so under every profile")
	assert.Zero(t, opt.Load.Puts)
	assert.EqualValues(t, 30e6, opt.Length)
	assert.Equal(t, 2, opt.MaxFaults)

	opt, err = recipe{seed: 3}.options()
	require.NoError(t, err)
	assert.Equal(t, -1, opt.MaxFaults, "none at all")
	opt, err = recipe{seed: 3, faults: allFaults}.options()
	require.NoError(t, err)
	assert.Equal(t, OptionsOf(3), opt)
}

// FuzzFlags: whatever is typed, parsing neither panics nor accepts what cannot be played.
func FuzzFlags(f *testing.F) {
	for _, line := range []string{"--seeds 3 --from 9", "--without lanes --profile gets -v", "--soak 1h --shrink 0", "--help",
		"--faults -1 --length 3s --save a-b", "-- x", "--from=1 --without=,,"} {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		s, err := parse(strings.Split(line, " "))
		if err != nil {
			require.NotContains(t, oneLine(err), "\n")
			return
		}
		require.NotZero(t, s.seeds)
		_, err = s.recipe.options()
		require.NoError(t, err)
		again, err := parseRecipe(s.recipe.String())
		require.NoError(t, err)
		require.Equal(t, s.recipe.String(), again.String())
	})
}
