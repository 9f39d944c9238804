package script

import (
	"bytes"
	"errors"

	"railyard/endpoint/session"
	"railyard/rma"
)

// check looks, after each command, at what every page takes for granted.
func (w *world) check() {
	if w.a == nil {
		return
	}
	for _, e := range w.ends() {
		for _, r := range e.areas {
			if r.frozen != nil && !bytes.Equal(r.frozen, r.mem) {
				w.breach("%s: %s was written after its revoke", e.name, r.name)
			}
			if bytes.IndexByte(r.mem, freed) >= 0 {
				w.breach("%s: a byte in %s shows that a source was read after its operation had ended", e.name, r.name)
			}
		}
		for _, k := range e.works {
			w.checkWork(k)
		}
	}
}

func (w *world) checkWork(k *work) {
	switch {
	case k.ends == 0:
	case k.op.Kind == session.Get && bytes.Count(k.op.Data, []byte{freed}) != k.n:
		w.breach("%s: %c was written to after it had ended", k.e.name, k.letter)
	case k.op.Kind != session.Put:
	case k.err == nil && k.count != k.n:
		w.breach("%s: %c completed with %d of %d bytes", k.e.name, k.letter, k.count, k.n)
	case errors.Is(k.err, rma.ErrOutcomeUnknown): // it may still land (rule 15)
	case k.landed() > k.count:
		w.breach("%s: %d bytes of %c landed after it had ended", k.e.name, k.landed()-k.count, k.letter)
	}
}

// finish closes the page: what was begun has ended, once.
func (w *world) finish() {
	w.ended = true
	for _, e := range w.ends() {
		for _, k := range e.works {
			if k.ends != 1 {
				w.breach("%s: %c has not completed", e.name, k.letter)
			}
		}
		if n := len(e.works); n > 0 {
			e.say("%s, each completed once", plural(n, "operation"))
		}
		if e.sent > 0 {
			e.say("%s sent; the other side heard %d", plural(e.sent, "message"), e.peer.taken)
		}
		z := e.s.Sizes()
		if e.s.Closed() == nil && z.Cancels+z.Owed+z.Tombs+z.Serving+z.Assemblies+z.Held+z.Pending > 0 {
			e.show()
		}
	}
}
