package explore

import (
	"fmt"
	"io"
	"slices"
)

// Sound is the name of the rules as they are.
const Sound = "sound"

// Full is a limit that no model here reaches.
const Full = 20_000_000

// Design is a model with its settings and mutations.
type Design struct {
	// Settings are the names of what the model may contain: each is a walk of its own.
	Settings []string
	// Mutations are rules left out.
	Mutations []Mutation
	// Explore walks one setting under one mutation, or Sound.
	Explore func(setting int, mutation string, limit int) Result
}

// Mutation is one rule left out. It must be caught.
type Mutation struct {
	Name string
	// In is the setting that catches it.
	In int
	// Long: it takes so many states that only a full walk catches it.
	Long bool
	// Harmless says why no setting catches it: what is left out saves time, or lies outside of the model. Then it must hold
	// in all of them, so that a model which has grown says what it can see now.
	Harmless string
}

// Judge plays the sound rules and every mutation, or those named only, and reports what is not as it should be. limit bounds
// each walk; below Full the long mutations are left out. show may be nil.
func (d *Design) Judge(limit int, show io.Writer, only ...string) (wrong []string) {
	if show == nil {
		show = io.Discard
	}
	j := &judge{d: d, limit: limit, show: show, traces: len(only) > 0}
	if len(only) == 0 || slices.Contains(only, Sound) {
		for i := range d.Settings {
			if j.broken(i, Sound) {
				wrong = append(wrong, fmt.Sprintf("the rules break a promise with %s", d.Settings[i]))
			}
		}
	}
	known := []string{Sound}
	for _, m := range d.Mutations {
		known = append(known, m.Name)
		if len(only) > 0 && !slices.Contains(only, m.Name) || (m.Long || m.Harmless != "") && limit < Full {
			continue
		}
		if what := j.mutation(m); what != "" {
			wrong = append(wrong, what)
		}
	}
	for _, name := range only {
		if !slices.Contains(known, name) {
			wrong = append(wrong, fmt.Sprintf("there is no mutation %s", name))
		}
	}
	return wrong
}

type judge struct {
	d      *Design
	limit  int
	show   io.Writer
	traces bool
}

// mutation tells what is wrong with one; empty: it is as it should be.
func (j *judge) mutation(m Mutation) string {
	if m.Harmless == "" {
		if !j.broken(m.In, m.Name) {
			return fmt.Sprintf("nothing catches the mutation %s", m.Name)
		}
		return ""
	}
	for i := range j.d.Settings {
		if j.broken(i, m.Name) {
			return fmt.Sprintf("%s breaks a promise, and was taken for harmless (%s)", m.Name, m.Harmless)
		}
	}
	return ""
}

// broken walks one setting.
func (j *judge) broken(setting int, name string) bool {
	r := j.d.Explore(setting, name, j.limit)
	with := j.d.Settings[setting]
	switch {
	case r.Broken != "":
		_, _ = fmt.Fprintf(j.show, "%-34s caught with %s, %d states: %s\n", name, with, r.States, r.Broken)
	case r.Complete:
		_, _ = fmt.Fprintf(j.show, "%-34s holds with %s, all of %d states\n", name, with, r.States)
	default:
		_, _ = fmt.Fprintf(j.show, "%-34s holds with %s, in the first %d states\n", name, with, r.States)
	}
	if j.traces {
		for _, a := range r.Trace {
			_, _ = fmt.Fprintln(j.show, "   ", a)
		}
	}
	return r.Broken != ""
}

// Main is the body of a model's command: all of it, or the mutations named, with the way to each fault. It gives the exit code.
func (d *Design) Main(args []string, out io.Writer) int {
	wrong := d.Judge(Full, out, args...)
	for _, w := range wrong {
		_, _ = fmt.Fprintln(out, "WRONG:", w)
	}
	if len(wrong) > 0 {
		return 1
	}
	return 0
}
