package main

import (
	"fmt"
	"io"
	"reflect"
	"text/tabwriter"
	"time"
)

// tally sums up worlds.
type tally struct {
	Counts
	had [faultKinds]uint64 // in how many worlds there was a fault of the kind
}

// What a thousand plain seeds must have, or they find nothing.
const (
	leastOperations = 200  // a seed, on average
	leastFaults     = 4    // a seed, on average
	leastShare      = 0.05 // of the seeds, for each kind of fault
	mixSeeds        = 1000 // so many have to have it
)

// add puts one more world in.
func (t *tally) add(c *Counts) {
	t.Counts.add(c)
	for k := range faultKinds {
		if k.Of(c) > 0 {
			t.had[k]++
		}
	}
}

// add sums up two counts, field by field.
func (c *Counts) add(o *Counts) {
	a, b := reflect.ValueOf(c).Elem(), reflect.ValueOf(o).Elem()
	for i := range a.NumField() {
		a.Field(i).SetUint(a.Field(i).Uint() + b.Field(i).Uint())
	}
}

// operations is what the applications asked for.
func (c *Counts) operations() uint64 { return c.Messages + c.Puts + c.Gets + c.Flushes }

// average is how many come on a seed.
func (t *tally) average(n uint64) float64 { return float64(n) / float64(max(t.Seeds, 1)) }

// share is the part of the seeds that had a kind of fault.
func (t *tally) share(k FaultKind) float64 { return t.average(t.had[k]) }

// print shows what happened in the worlds.
func (t *tally) print(out io.Writer, took time.Duration) {
	fmt.Fprintf(out, "%d worlds held, in %s; operations %d, %.1f a seed; faults %d, %.1f a seed\n", t.Seeds,
		took.Round(time.Millisecond), t.operations(), t.average(t.operations()), t.Faults, t.average(t.Faults))
	if t.Seeds == 0 {
		return
	}
	w := tabwriter.NewWriter(out, 0, 0, 1, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\ncounted\tin all\ta seed\t")
	v := reflect.ValueOf(&t.Counts).Elem()
	for i := range v.NumField() {
		if n := v.Field(i).Addr().Interface().(*uint64); n != &t.Seeds && !t.counts(n) {
			fmt.Fprintf(w, "%s\t%d\t%.1f\t\n", v.Type().Field(i).Name, *n, t.average(*n))
		}
	}
	fmt.Fprintln(w, "\nkind of fault\tin all\ta seed\tof the seeds\t")
	for k := range faultKinds {
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f %%\t\n", k, k.Of(&t.Counts), t.average(k.Of(&t.Counts)), 100*t.share(k))
	}
	w.Flush()
}

// counts tells whether a counter is that of a kind of fault, which has a table of its own.
func (t *tally) counts(n *uint64) bool {
	for k := range faultKinds {
		if faults[k].count(&t.Counts) == n {
			return true
		}
	}
	return false
}

// missing says what the worlds had too little of; empty: nothing.
func (t *tally) missing() (lines []string) {
	if n := t.average(t.operations()); n < leastOperations {
		lines = append(lines, fmt.Sprintf("%.1f operations a seed; there should be %d (loadOf in test/sim/options.go)", n, leastOperations))
	}
	if n := t.average(t.Faults); n < leastFaults {
		lines = append(lines, fmt.Sprintf("%.1f faults a seed; there should be %d (faultsOf in test/sim/options.go)", n, leastFaults))
	}
	for k := range faultKinds {
		if n := t.share(k); n < leastShare {
			lines = append(lines, fmt.Sprintf("%s in %.1f %% of the seeds; it should be in %g %% (faultsOf in test/sim/options.go)",
				k, 100*n, 100*leastShare))
		}
	}
	return lines
}
