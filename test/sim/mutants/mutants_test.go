package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// everything has the tests hunt the whole list, which takes minutes; without it they try one mutant.
const everything = "RAILYARD_MUTANTS"

// elsewhere are the rules that no code of session, rma or health can break, and where they are tested.
var elsewhere = map[string]string{
	"10": "a bug in the endpoint's actor is the endpoint's",
	"19": "TLS is the transport's",
	"22": "that the queue pair is destroyed is the transport's; that the session waits for it is rule 20",
}

func TestTheListFitsTodaysSource(t *testing.T) {
	root, err := moduleRoot()
	require.NoError(t, err)
	list := mutants()
	woven, err := weave(root, list)
	require.NoError(t, err, "change the old texts of the mutants along with the code")
	assert.GreaterOrEqual(t, len(list), 25)
	for file, text := range woven {
		assert.NotContains(t, text, "«", file)
	}
}

func TestEachMutantHasANameAndARule(t *testing.T) {
	known := make(map[string]bool)
	for _, m := range mutants() {
		assert.False(t, known[m.name], "two mutants are called %s", m.name)
		known[m.name] = true
		assert.NotEmpty(t, m.rule, m.name)
		assert.NotEmpty(t, m.bug, m.name)
		assert.NotEmpty(t, m.edits, m.name)
	}
}

func TestEachRuleHasAMutant(t *testing.T) {
	broken := make(map[string]bool)
	for _, m := range mutants() {
		broken[m.rule] = true
	}
	for _, rule := range strings.Fields("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 P3 P4 P8") {
		assert.NotEqual(t, elsewhere[rule] != "", broken[rule], "rule %s needs a mutant, or a reason why there is none; not both", rule)
	}
}

func TestWeavingRefusesWhatDoesNotFit(t *testing.T) {
	const text = "package x\n\nfunc f() bool { return true }\n"
	for _, c := range []struct {
		name, want string
		edits      []edit
	}{
		{"absent", "has 0 times", []edit{{"x.go", "return false", "return «on»"}}},
		{"ambiguous", "has 2 times", []edit{{"x.go", "f", "«on»"}}},
		{"no switch", "no switch", []edit{{"x.go", "return true", "return false"}}},
		{"overlap", "the same text", []edit{{"x.go", "return true", "return «on»"}, {"x.go", "true", "«on»"}}},
		{"no code", "does not parse", []edit{{"x.go", "return true", "return («on»"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var places []place
			for _, e := range c.edits {
				places = append(places, place{edit: e, name: c.name, on: "true"})
			}
			_, err := weaveFile(text, places)
			require.ErrorIs(t, err, errWeave)
			assert.ErrorContains(t, err, c.want)
		})
	}
}

func TestWeavingKeepsTheLines(t *testing.T) {
	woven, err := weaveFile("package x\n\nfunc f() bool { return true }\n",
		[]place{{edit: edit{"x.go", "return true", "return !«on»"}, on: "mutantson.Is(3)"}})
	require.NoError(t, err)
	assert.Equal(t, "package x; import mutantson \"railyard/test/sim/mutants/on\"\n\nfunc f() bool { return !mutantson.Is(3) }\n", woven)
}

// standIn is a simulator that behaves as the shell lines say, by the first seed ($2) and the mutant.
func standIn(t *testing.T, lines string) *hunter {
	t.Helper()
	name := filepath.Join(t.TempDir(), "sim")
	require.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+lines), 0o700)) //nolint:gosec // it is to be run
	return &hunter{sim: name, seeds: 5, limit: time.Minute}
}

func TestOnlyCheckersCatch(t *testing.T) {
	const plainHolds = "[ $" + switchVariable + " = 0 ] && exit 0\n"
	for _, c := range []struct {
		name, lines string
		want        catch
	}{
		{"a checker", plainHolds + "printf 'seed 3 at 1.5s: a byte is wrong\\nseen by: (*area).check\\n'; exit 1",
			catch{caught: true, seed: 3, checker: "(*area).check", said: "a byte is wrong"}},
		{"panics", "[ $2 -gt 3 ] && exit 0\necho seed 3 at 1s: panic: index; exit 3", catch{panics: 1, said: "panic: index"}},
		{"worlds without an end", "echo seed 5 at 1s: not done; echo 'seen by: (*World).settleDown'; exit 1",
			catch{endless: 1, said: "not done"}},
		{"a panic, then a checker", plainHolds + "[ $2 = 1 ] && { echo seed 1 at 1s: panic: x; exit 3; }\n" +
			"echo seed 2 at 1s: twice; echo 'seen by: f'; exit 1",
			catch{caught: true, seed: 2, checker: "f", said: "twice", panics: 1}},
		{"nothing", "exit 0", catch{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := standIn(t, c.lines).hunt(t.Context(), 7, &mutant{})
			require.NoError(t, got.err)
			c.want.number, c.want.took = 7, got.took
			assert.Equal(t, c.want, got)
		})
	}
}

func TestAHuntThatProvesNothingFails(t *testing.T) {
	for name, c := range map[string]struct{ lines, want string }{
		"the world breaks by itself":  {"echo seed 1 at 1s: wrong; echo 'seen by: f'; exit 1", "without the mutant as well"},
		"no seed is named":            {"echo something; exit 1", "names no seed"},
		"the simulator does not know": {"echo no such profile; exit 2", "no such profile"},
	} {
		t.Run(name, func(t *testing.T) {
			got := standIn(t, c.lines).hunt(t.Context(), 7, &mutant{})
			require.ErrorContains(t, got.err, c.want)
			assert.Equal(t, 1, survivors([]catch{got}))
		})
	}
	t.Run("too slow", func(t *testing.T) {
		h := standIn(t, "exec sleep 600")
		h.limit = 100 * time.Millisecond
		require.ErrorContains(t, h.hunt(t.Context(), 7, &mutant{}).err, "not done after")
	})
}

func TestTheSimulatorNotices(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	defer cancel()
	only := "cancel-decided-by-initiator"
	if os.Getenv(everything) != "" {
		only = ""
	}
	list := mutants()
	catches, err := huntAll(ctx, list, only, hunter{seeds: 120, limit: 10 * time.Minute})
	require.NoError(t, err)
	require.NotEmpty(t, catches)
	for _, c := range catches {
		assert.NoError(t, c.err, list[c.number-1].name)
		assert.True(t, c.caught, "%s survived", list[c.number-1].name)
	}
}

func TestWhatIsNoBugSurvives(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	list := []mutant{{name: "none", edits: []edit{{retireFile, "	s.settle(g)\n	return nil\n", "	if «on» {\n		s.now += 0\n	}\n«old»"}}}}
	catches, err := huntAll(ctx, list, "", hunter{seeds: 3, limit: 5 * time.Minute})
	require.NoError(t, err)
	require.Len(t, catches, 1)
	assert.NoError(t, catches[0].err)
	assert.False(t, catches[0].caught, "%s: %s", catches[0].checker, catches[0].said)
	assert.Equal(t, 1, survivors(catches))
}
