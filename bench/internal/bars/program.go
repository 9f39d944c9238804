package bars

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"railyard/bench/internal/cell"
)

// Exit codes.
const (
	exitMissed = 1
	exitUsage  = 2
)

// Program is one of the two that measure.
type Program struct {
	Name       string   // of the program, and of its section of a page
	Contenders []string // whose programs are built
	Rows       []Row
	Extra      *Extra // what is no row; nil: nothing
}

// Extra is a measurement of another shape, beside the rows.
type Extra struct {
	Load string
	// Flags adds flags of its own.
	Flags func(*flag.FlagSet)
	// Measure gives a line for each of its bars, and what it has to tell besides.
	Measure func(context.Context, *Books, Options) ([]Line, any, error)
}

// Options are what a user asked for.
type Options struct {
	Rounds int
	Time   time.Duration // of one measurement

	only     string // loads that begin so
	json     bool
	markdown string // page to fill
	profiles string // folder for profiles of ours
}

// ErrUsage is wrapped by errors about the command line.
var ErrUsage = errors.New("wrong flags")

// Main runs the program with the process's arguments, and exits with 1 where a bar was missed or something failed, with 2 where
// the command line is wrong. Ctrl-C ends it, and all that it has started.
func (p Program) Main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := p.Run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, ErrUsage) {
		os.Exit(exitUsage)
	}
	os.Exit(exitMissed)
}

func (p Program) parse(args []string) (o Options, err error) {
	f := flag.NewFlagSet(p.Name, flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&o.Rounds, "rounds", 5, "")
	f.DurationVar(&o.Time, "time", 2*time.Second, "")
	f.StringVar(&o.only, "only", "", "")
	f.BoolVar(&o.json, "json", false, "")
	f.StringVar(&o.markdown, "markdown", "", "")
	f.StringVar(&o.profiles, "profile", "", "")
	if p.Extra != nil {
		p.Extra.Flags(f)
	}
	switch err := f.Parse(args); {
	case err != nil:
		return o, fmt.Errorf("%w: %w", ErrUsage, err)
	case f.NArg() > 0:
		return o, fmt.Errorf("%w: %q is no flag", ErrUsage, f.Arg(0))
	case o.Rounds < 1 || o.Time <= 0:
		return o, fmt.Errorf("%w: --rounds %d and --time %v must be positive", ErrUsage, o.Rounds, o.Time)
	}
	return o, nil
}

// choose leaves what is asked for.
func (p Program) choose(only string) (Program, error) {
	var list []Row
	var names []string
	for _, r := range p.Rows {
		names = append(names, r.Load)
		if strings.HasPrefix(r.Load, only) {
			list = append(list, r)
		}
	}
	p.Rows = list
	if p.Extra != nil {
		names = append(names, p.Extra.Load)
		if !strings.HasPrefix(p.Extra.Load, only) {
			p.Extra = nil
		}
	}
	if len(list) == 0 && p.Extra == nil {
		return p, fmt.Errorf("%w: no load begins with %q; there are: %s", ErrUsage, only, strings.Join(names, "; "))
	}
	return p, nil
}

// Run measures and prints. The error says that bars were missed, or what went wrong.
func (p Program) Run(ctx context.Context, args []string, out io.Writer) (err error) {
	o, err := p.parse(args)
	if err != nil {
		return err
	}
	if p, err = p.choose(o.only); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "railyard-bench-")
	if err != nil {
		return fmt.Errorf("no folder for the contenders' programs: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	if err := Build(ctx, folder, p.Contenders); err != nil {
		return err
	}
	if o.profiles != "" {
		if err := os.MkdirAll(o.profiles, 0o755); err != nil {
			return fmt.Errorf("no folder for profiles: %w", err)
		}
		if o.profiles, err = filepath.Abs(o.profiles); err != nil {
			return err
		}
	}
	papers, err := cell.NewPapers()
	if err != nil {
		return err
	}
	c := outcome{Settings: currentSettings(o)}
	b := NewBooks(Books{Programs: folder, Papers: papers, Profiles: o.profiles, Log: os.Stderr})
	if err := b.measure(ctx, p.Rows, o); err != nil {
		return err
	}
	c.Lines = b.Lines(p.Rows)
	if p.Extra != nil {
		lines, more, err := p.Extra.Measure(ctx, b, o)
		if err != nil {
			return err
		}
		c.Lines, c.More = append(c.Lines, lines...), more
	}
	if err := c.deliver(p.Name, o, out); err != nil {
		return err
	}
	return c.verdict()
}

// Build makes contenders' programs in a folder.
func Build(ctx context.Context, folder string, contenders []string) error {
	args := []string{"build", "-o", folder + string(filepath.Separator)}
	for _, name := range contenders {
		args = append(args, "railyard/bench/"+name)
	}
	if said, err := exec.CommandContext(ctx, "go", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("the contenders' programs do not build: %w\n%s", err, said)
	}
	return nil
}

// outcome is all that there is to tell.
type outcome struct {
	Settings settings `json:"settings"`
	Lines    []Line   `json:"lines"`
	More     any      `json:"more,omitempty"`
}

// deliver prints and writes what was asked for.
func (c outcome) deliver(section string, o Options, out io.Writer) error {
	if o.markdown != "" {
		if err := fillPage(o.markdown, section, markdown(c.Lines, c.Settings)); err != nil {
			return err
		}
	}
	if o.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(c)
	}
	fmt.Fprintln(out, c.Settings)
	printTable(out, c.Lines)
	return nil
}

func (c outcome) verdict() error {
	missed := 0
	for _, l := range c.Lines {
		if !l.OK {
			missed++
		}
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d bars are missed", missed, len(c.Lines))
	}
	return nil
}
