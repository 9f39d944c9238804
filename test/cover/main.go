package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"text/tabwriter"
)

const module = "railyard"

// demand is how much of a part has to run.
type demand struct {
	part string // a package or a file, below the module's root
	by   string // who runs it
	// least is in percent of the statements.
	least float64
}

// Who runs the code.
const (
	byTests     = "tests"
	bySimulator = "simulator"
)

// demands is everything that is asked for.
var demands = []demand{
	{"wire", byTests, 90},
	{"rma", byTests, 90},
	{"endpoint/session", byTests, 90},
	{"supervision", byTests, 90},
	{"rail/health.go", byTests, 90},
	{"endpoint/session", bySimulator, 85},
}

// tests are the packages whose tests run the code. Those of endpoint would add time and no certainty: what they
// reach depends on the scheduler.
var tests = []string{"./wire", "./rma", "./endpoint/session", "./supervision", "./rail", "./test/script", "./test/sim"}

// worlds is what the simulator plays.
var worlds = []string{"--seeds", "150", "--from", "1"}

// codes of the exit.
const (
	codeEnough = 0
	codeLittle = 1
	codeUsage  = 2
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	if len(args) > 0 {
		fmt.Fprintf(errOut, "cover: what is %q? It takes no arguments\n", args[0])
		return codeUsage
	}
	dir, err := os.MkdirTemp("", "cover")
	if err != nil {
		fmt.Fprintf(errOut, "cover: no place for the profiles: %v\n", err)
		return codeUsage
	}
	defer os.RemoveAll(dir)
	m := measurement{ctx: ctx, dir: dir, out: errOut}
	profiles := map[string]profile{}
	if profiles[byTests], err = m.tests(); err == nil {
		profiles[bySimulator], err = m.simulator()
	}
	if err != nil {
		fmt.Fprintf(errOut, "cover: %v\n", err)
		return codeUsage
	}
	if judge(out, profiles) {
		return codeEnough
	}
	return codeLittle
}

// measurement starts what is measured.
type measurement struct {
	ctx context.Context
	dir string
	out io.Writer // for what the commands say
}

// tests runs the tests.
func (m *measurement) tests() (profile, error) {
	name := filepath.Join(m.dir, "tests")
	packages := map[string]bool{}
	var list []string
	for _, d := range demands {
		p := module + "/" + d.part
		if strings.HasSuffix(p, ".go") {
			p = p[:strings.LastIndex(p, "/")]
		}
		if !packages[p] {
			packages[p], list = true, append(list, p)
		}
	}
	args := append([]string{"test", "-count=1", "-coverpkg=" + strings.Join(list, ","), "-coverprofile=" + name}, tests...)
	if err := m.command(nil, "go", args...); err != nil {
		return nil, fmt.Errorf("the tests did not pass: %w", err)
	}
	return readProfile(name)
}

// simulator plays worlds.
func (m *measurement) simulator() (profile, error) {
	sim, data, name := filepath.Join(m.dir, "sim"), filepath.Join(m.dir, "data"), filepath.Join(m.dir, "simulator")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, fmt.Errorf("no place for what the simulator reaches: %w", err)
	}
	// A program whose main package is not measured writes nothing at its end.
	measured := module + "/endpoint/session," + module + "/test/sim"
	err := m.command(nil, "go", "build", "-cover", "-coverpkg="+measured, "-o", sim, "./test/sim")
	if err == nil {
		err = m.command([]string{"GOCOVERDIR=" + data}, sim, worlds...)
	}
	if err == nil {
		err = m.command(nil, "go", "tool", "covdata", "textfmt", "-i="+data, "-o="+name)
	}
	if err != nil {
		return nil, fmt.Errorf("what the simulator reaches is not known: %w", err)
	}
	return readProfile(name)
}

// command runs one and shows what it says.
func (m *measurement) command(env []string, name string, args ...string) error {
	cmd := exec.CommandContext(m.ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdout, cmd.Stderr = m.out, m.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", filepath.Base(name), args[0], errors.Join(m.ctx.Err(), err))
	}
	return nil
}

func readProfile(name string) (profile, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errProfile, err)
	}
	defer f.Close()
	p := profile{}
	return p, p.read(f)
}

// judge prints the table and tells whether all of it is enough.
func judge(out io.Writer, profiles map[string]profile) bool {
	enough := true
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "code\tby\tstatements\tran\tat least\t")
	for _, d := range demands {
		ran, all := profiles[d.by].share(d.part)
		percent, word := 0.0, ""
		if all > 0 {
			percent = 100 * float64(ran) / float64(all)
		}
		if percent < d.least {
			enough, word = false, "TOO LITTLE"
		}
		fmt.Fprintf(t, "%s\t%s\t%d\t%.1f %%\t%g %%\t%s\n", d.part, d.by, all, percent, d.least, word)
	}
	t.Flush()
	return enough
}
