package explore

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
)

// Action is one step of a model, kept small: a text with up to three %d, and the numbers.
type Action struct {
	text string
	n    [3]uint8
}

// Do makes an Action.
func Do(text string, n ...uint8) Action {
	a := Action{text: text}
	copy(a.n[:], n)
	return a
}

// String fills the numbers in.
func (a Action) String() string {
	args := make([]any, strings.Count(a.text, "%d"))
	for i := range args {
		args[i] = a.n[i]
	}
	return fmt.Sprintf(a.text, args...)
}

// Space is what is walked.
type Space[S comparable] struct {
	Start S
	// Next gives every state that can follow s.
	Next func(s *S, out func(Action, S))
	// Broken names the promise that does not hold in s; empty: all do.
	Broken func(s *S) string
	// Done tells whether the work is finished in s. It must be reachable from everywhere.
	Done func(s *S) bool
	// Limit bounds the states; a walk that reaches it is not complete, and does not judge what can be finished.
	Limit int
}

// Result is what a walk has found.
type Result struct {
	States   int
	Complete bool
	// Broken is the promise that was broken, or that the work can never be finished; empty: all held. Trace leads there.
	Broken string
	Trace  []Action
}

// walk keeps of a state only a hash of 128 bits, and the state itself until it has been expanded.
type walk[S comparable] struct {
	sp     *Space[S]
	seeds  [2]maphash.Seed
	ids    map[[2]uint64]int32
	queue  []S
	parent []int32
	act    []Action
	done   []bool
	from   []int32 // edges: from[i] to to[i]
	to     []int32
	broken string
	at     int32 // where it broke
}

// Run walks the space breadth first.
func Run[S comparable](sp Space[S]) Result {
	w := &walk[S]{sp: &sp, seeds: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}, ids: make(map[[2]uint64]int32)}
	w.add(sp.Start, -1, Action{})
	for i := int32(0); len(w.queue) > 0 && w.broken == "" && len(w.parent) < sp.Limit; i++ {
		s := w.queue[0]
		w.queue = w.queue[1:]
		sp.Next(&s, func(a Action, t S) { w.add(t, i, a) })
	}
	r := Result{States: len(w.parent), Complete: len(w.queue) == 0 && w.broken == ""}
	if r.Complete {
		w.stuck()
	}
	if w.broken != "" {
		r.Broken, r.Trace = w.broken, w.trace(w.at)
	}
	return r
}

// add notes an edge, and the state where it is new.
func (w *walk[S]) add(s S, from int32, a Action) {
	key := [2]uint64{maphash.Comparable(w.seeds[0], s), maphash.Comparable(w.seeds[1], s)}
	id, known := w.ids[key]
	if !known {
		id = int32(len(w.parent))
		w.ids[key] = id
		w.queue = append(w.queue, s)
		w.parent, w.act, w.done = append(w.parent, from), append(w.act, a), append(w.done, w.sp.Done(&s))
		if what := w.sp.Broken(&s); what != "" && w.broken == "" {
			w.broken, w.at = what, id
		}
	}
	if from >= 0 {
		w.from, w.to = append(w.from, from), append(w.to, id)
	}
}

// stuck looks for the first state from which none that is done can be reached.
func (w *walk[S]) stuck() {
	first := make([]int32, len(w.parent)+1) // of each state's predecessors in pred
	for _, t := range w.to {
		first[t+1]++
	}
	for i := range w.parent {
		first[i+1] += first[i]
	}
	pred, fill := make([]int32, len(w.to)), slices.Clone(first)
	for i, t := range w.to {
		pred[fill[t]] = w.from[i]
		fill[t]++
	}
	reaches := slices.Clone(w.done)
	var todo []int32
	for i, d := range w.done {
		if d {
			todo = append(todo, int32(i))
		}
	}
	for len(todo) > 0 {
		last := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for _, p := range pred[first[last]:first[last+1]] {
			if !reaches[p] {
				reaches[p] = true
				todo = append(todo, p)
			}
		}
	}
	for i, ok := range reaches {
		if !ok {
			w.broken, w.at = "stuck: it can never be finished", int32(i)
			return
		}
	}
}

func (w *walk[S]) trace(at int32) []Action {
	var t []Action
	for ; at > 0; at = w.parent[at] {
		t = append(t, w.act[at])
	}
	slices.Reverse(t)
	return t
}
