package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"
)

// settings is the command line.
type settings struct {
	recipe   recipe // its seed is the first one
	seeds    uint64
	verbose  bool
	limit    time.Duration
	profile  string
	shrink   time.Duration
	save     string
	checkMix bool
	soak     time.Duration
}

// errHelp: somebody asks what flags there are.
var errHelp = errors.New("sim: a list of the flags was asked for")

// saveName is what a regression may be called.
var saveName = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (s *settings) flags() *flag.FlagSet {
	fs := flag.NewFlagSet("sim", flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	s.recipe.flags(fs)
	fs.Uint64Var(&s.seeds, "seeds", 100, "how many worlds")
	fs.BoolVar(&s.verbose, "v", false, "tell each story while it happens, one world at a time")
	fs.DurationVar(&s.limit, "for", 0, "begin no more worlds after this real time (0: play them all)")
	fs.StringVar(&s.profile, "cpuprofile", "", "write a profile of the processor's time to this `file`")
	fs.DurationVar(&s.shrink, "shrink", time.Minute, "real time to look for a smaller world that fails in the same way (0: none)")
	fs.StringVar(&s.save, "save", "", "write what is left of a failure to testdata/regressions, under this `name`")
	fs.BoolVar(&s.checkMix, "check-mix", false, "also fail where too little happens in the worlds; a thousand plain seeds always do")
	fs.DurationVar(&s.soak, "soak", 0, "play all profiles in turn for this real time, from seeds that nobody has chosen")
	return fs
}

// parse reads the command line. Nothing is begun where it gives an error, which says what to change.
func parse(args []string) (settings, error) {
	var s settings
	fs := s.flags()
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return s, errHelp
	case err != nil:
		return s, fmt.Errorf("%w; --help lists the flags", err)
	case fs.NArg() > 0:
		return s, fmt.Errorf("what is %q? There are only flags; --help lists them", fs.Arg(0))
	case s.limit < 0 || s.shrink < 0 || s.soak < 0:
		return s, errors.New("--for, --shrink and --soak take no time that is less than none")
	case s.seeds == 0:
		return s, errors.New("--seeds 0 plays nothing; say how many worlds")
	case s.recipe.seed+(s.seeds-1) < s.recipe.seed:
		return s, fmt.Errorf("--from %d --seeds %d: seeds end before that", s.recipe.seed, s.seeds)
	case s.recipe.faults < allFaults:
		return s, fmt.Errorf("--faults %d: at the least it is 0, or -1 for as they come", s.recipe.faults)
	case s.soak > 0 && s.recipe.profile != "":
		return s, errors.New("--soak takes all profiles in turn; leave --profile out, or play --seeds under it")
	case s.save != "" && !saveName.MatchString(s.save):
		return s, fmt.Errorf("--save %q: a name has small letters, digits and single hyphens between them", s.save)
	}
	_, err := s.recipe.options()
	return s, err
}

// usage lists the flags.
func usage(out io.Writer) {
	var s settings
	fs := s.flags()
	fmt.Fprintln(out, "Usage: go run ./test/sim [flags]")
	fs.SetOutput(out)
	fs.PrintDefaults()
}

// oneLine keeps an error on the line that it is given.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
