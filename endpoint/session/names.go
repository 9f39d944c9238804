package session

// Name is a string that travels often: an actor's id, a sender's address and id, a type. Each end knows
// it by a number once it has been defined on a generation's stream.
type Name struct {
	S string
	// Value is the owner's cache for this name (a PID, a constructor); the session never reads it.
	Value any

	slot   uint16 // 0: not interned, travels in full
	bucket uint8
}

// String gives the name itself.
func (n *Name) String() string {
	if n == nil {
		return ""
	}
	return n.S
}

// Interned tells whether the name has a number, so that both ends keep one record of it.
func (n *Name) Interned() bool { return n.slot != 0 }

// names is a bounded set of interned names.
type names struct {
	byString map[string]*Name
	next     uint16
}

// maxNames bounds each end's table of names; names beyond it travel in full.
const maxNames = 1<<16 - 2

func newNames() names { return names{byString: make(map[string]*Name)} }

func (t *names) get(s string) *Name {
	if n, ok := t.byString[s]; ok {
		return n
	}
	n := &Name{S: s, bucket: bucketOf(s)}
	if len(t.byString) < maxNames {
		t.next++
		n.slot = t.next
		t.byString[s] = n
	}
	return n
}

// known gives a name that came in full: its record where there is one, else one that is not kept. So names that
// are used once, such as those of futures, never fill the table.
func (t *names) known(b []byte) *Name {
	if n, ok := t.byString[string(b)]; ok {
		return n
	}
	return Inline(string(b))
}

// Inline gives a name that is not interned: it travels in full with each message, and takes no place in the tables.
func Inline(s string) *Name { return &Name{S: s, bucket: bucketOf(s)} }

// getBytes is get without an allocation for a name that is known.
func (t *names) getBytes(b []byte) *Name {
	if n, ok := t.byString[string(b)]; ok {
		return n
	}
	return t.get(string(b))
}

// bucketOf hashes a name (FNV-1a) to one of the affinity buckets.
func bucketOf(s string) uint8 {
	h := uint32(2166136261)
	for i := range len(s) {
		h = (h ^ uint32(s[i])) * 16777619
	}
	return uint8(h ^ h>>8 ^ h>>16 ^ h>>24)
}
