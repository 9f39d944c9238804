package main

import (
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// recipe says which world is played: a seed, and what is done to what it chooses. As text it is the flags that play
// it again.
type recipe struct {
	seed    uint64
	profile string
	without []string      // features that are left out
	length  time.Duration // of the time with faults and new work; 0: what the seed chooses
	faults  int           // at the most; allFaults: as they come
}

// allFaults is no bound on the number of faults.
const allFaults = -1

// Errors of a recipe.
var (
	errProfile = errors.New("there is no such profile; test/sim/profiles.go has them")
	errFeature = errors.New("there is no such feature; test/sim/options.go has them")
	errLength  = errors.New("a world cannot last less than no time")
)

// flags defines the flags that are a recipe; the seed's is --from.
func (r *recipe) flags(fs *flag.FlagSet) {
	fs.Uint64Var(&r.seed, "from", 1, "the first seed")
	fs.StringVar(&r.profile, "profile", "", "put every world under this pressure (profiles.go)")
	fs.Func("without", "features to leave out, with commas between them (options.go)", func(list string) error {
		r.without = append(r.without, strings.FieldsFunc(list, func(c rune) bool { return c == ',' })...)
		return nil
	})
	fs.DurationVar(&r.length, "length", 0, "virtual time with faults and new work (0: as each seed chooses)")
	fs.IntVar(&r.faults, "faults", allFaults, "no more faults than this in each world (-1: as they come)")
}

// String is the flags.
func (r recipe) String() string {
	text := fmt.Sprintf("--seeds 1 --from %d", r.seed)
	if r.profile != "" {
		text += " --profile " + r.profile
	}
	if len(r.without) > 0 {
		text += " --without " + strings.Join(r.without, ",")
	}
	if r.length > 0 {
		text += " --length " + r.length.String()
	}
	if r.faults >= 0 {
		text += fmt.Sprintf(" --faults %d", r.faults)
	}
	return text
}

// command is what to type to see the world again.
func (r recipe) command() string { return "go run ./test/sim " + r.String() }

// parseRecipe reads what String has written.
func parseRecipe(text string) (recipe, error) {
	var r recipe
	fs := flag.NewFlagSet("recipe", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	r.flags(fs)
	one := fs.Int("seeds", 1, "")
	if err := fs.Parse(strings.Fields(text)); err != nil {
		return r, fmt.Errorf("%q is no recipe: %w", text, err)
	}
	if fs.NArg() > 0 || *one != 1 {
		return r, fmt.Errorf("%q is no recipe of one world", text)
	}
	_, err := r.options()
	return r, err
}

// plain tells whether worlds come as their seeds choose.
func (r recipe) plain() bool {
	return r.profile == "" && len(r.without) == 0 && r.length == 0 && r.faults == allFaults
}

// options gives the world. What is left out stays so under every profile.
func (r recipe) options() (Options, error) {
	opt := OptionsOf(r.seed)
	if !opt.press(r.profile) {
		return opt, fmt.Errorf("--profile %q: %w", r.profile, errProfile)
	}
	if !opt.without(strings.Join(r.without, ",")) {
		return opt, fmt.Errorf("--without %q: %w", strings.Join(r.without, ","), errFeature)
	}
	if r.length < 0 {
		return opt, fmt.Errorf("--length %s: %w", r.length, errLength)
	}
	opt.Length = cmp.Or(r.length, opt.Length)
	switch {
	case r.faults == 0:
		opt.MaxFaults = -1
	case r.faults > 0:
		opt.MaxFaults = r.faults
	}
	return opt, nil
}

// leave gives the recipe with one more feature left out.
func (r recipe) leave(feature string) recipe {
	r.without = append(slices.Clone(r.without), feature)
	return r
}
