package cell

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
)

// profileVariable names the environment variable that says where profiles go.
const profileVariable = "RAILYARD_BENCH_PROFILE"

// How much of what waits is sampled.
const (
	blockNanoseconds = 10_000 // waits of this length are seen once each
	mutexFraction    = 10     // one of so many contentions
)

// profiler writes profiles of one side, from the first mark to the second. Nil: it does not.
type profiler struct {
	files string // what their names begin with
	marks int
	cpu   *os.File
}

func newProfiler() *profiler {
	files := os.Getenv(profileVariable)
	if files == "" {
		return nil
	}
	runtime.SetBlockProfileRate(blockNanoseconds)
	runtime.SetMutexProfileFraction(mutexFraction)
	return &profiler{files: files}
}

// mark begins at the first mark, and writes at the second.
func (p *profiler) mark() error {
	if p == nil {
		return nil
	}
	p.marks++
	switch p.marks {
	case 1:
		var err error
		if p.cpu, err = os.Create(p.files + ".cpu.prof"); err != nil {
			return fmt.Errorf("no place for a profile: %w", err)
		}
		return pprof.StartCPUProfile(p.cpu)
	case 2:
		pprof.StopCPUProfile()
		err := p.cpu.Close()
		for _, kind := range []string{"allocs", "block", "mutex"} {
			err = errors.Join(err, p.write(kind))
		}
		return err
	}
	return nil
}

func (p *profiler) write(kind string) error {
	f, err := os.Create(p.files + "." + kind + ".prof")
	if err != nil {
		return fmt.Errorf("no place for a profile of %s: %w", kind, err)
	}
	return errors.Join(pprof.Lookup(kind).WriteTo(f, 0), f.Close())
}

// profiling is what tells a program to write profiles; nothing where no folder is given.
func (c Cell) profiling(side string) []string {
	if c.Profiles == "" {
		return []string{profileVariable + "="}
	}
	name := fmt.Sprintf("%s %s %s", filepath.Base(c.Program), c.Spec, side)
	name = strings.NewReplacer(", ", "_", " ", "-").Replace(name)
	return []string{profileVariable + "=" + filepath.Join(c.Profiles, name)}
}
