package script

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"time"

	"railyard/endpoint/session"
	"railyard/rma"
)

// command is one word of a page.
type command struct {
	usage string
	words int // at least, after the command's own
	run   func(w *world, c call)
}

// call is a command's words and its settings, which are written name=value or name.
type call struct {
	w    *world
	word []string
	set  map[string]string
}

func (c call) end(i int) *end {
	switch c.word[i] {
	case "a":
		return c.w.a
	case "b":
		return c.w.b
	}
	c.w.breach("%q is neither a nor b", c.word[i])
	return nil
}

func (c call) rail(i int) int {
	n, err := strconv.Atoi(c.word[i])
	if err != nil || n < 0 || n >= len(c.w.cables) {
		c.w.breach("%q is no rail", c.word[i])
	}
	return n
}

func (c call) link(i int) *link { return c.end(i).link(c.rail(i + 1)) }

func (c call) size(i int) int { return c.w.bytes(c.word[i]) }

// limit is the size at i, or more than any call takes where the page names none.
func (c call) limit(i int) int {
	if len(c.word) > i {
		return c.size(i)
	}
	return most
}

func (c call) time(i int) time.Duration {
	d, err := time.ParseDuration(c.word[i])
	if err != nil {
		c.w.breach("%q is no time", c.word[i])
	}
	return d
}

func (c call) has(name string) bool { _, ok := c.set[name]; return ok }

var units = []struct {
	name string
	n    int
}{{"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1}}

func (w *world) bytes(s string) int {
	for _, u := range units {
		if digits, ok := strings.CutSuffix(s, u.name); ok {
			if n, err := strconv.Atoi(digits); err == nil && n >= 0 {
				return n * u.n
			}
		}
	}
	w.breach("%q is no number of bytes", s)
	return 0
}

func size(n int) string {
	for _, u := range units {
		if n > 0 && n%u.n == 0 {
			return strconv.Itoa(n/u.n) + u.name
		}
	}
	return "0"
}

// commands are the words of a page. Set up in init, since repeat uses it.
var commands map[string]command

func init() {
	commands = map[string]command{
		"new":     {"new [rails=2] [chunk=64KiB] [window=…] [open=…]", 0, cmdNew},
		"join":    {"join RAIL [by=a]: hello, answer, confirm and accept", 1, cmdJoin},
		"hello":   {"hello RAIL [by=a]", 1, func(w *world, c call) { w.dial(c.by(), c.rail(0)) }},
		"answer":  {"answer RAIL", 1, func(w *world, c call) { w.answer(c.rail(0)) }},
		"confirm": {"confirm RAIL: the dialer's end is up", 1, func(w *world, c call) { w.confirm(c.rail(0)) }},
		"accept":  {"accept RAIL: the confirm arrives", 1, func(w *world, c call) { w.accept(c.rail(0)) }},

		"write": {"write END RAIL [BYTES]: one write call", 2, func(_ *world, c call) { c.moved(c.link(0).write(c.limit(2)), "written") }},
		"read":  {"read END RAIL [BYTES]: one read call", 2, func(_ *world, c call) { c.moved(c.link(0).read(c.limit(2)), "read") }},
		"fill":  {"fill END RAIL: a write call begins", 2, func(w *world, c call) { w.say("a call of %s", size(c.planned())) }},
		"wrote": {"wrote END RAIL [BYTES]: it ends", 2, func(_ *world, c call) { c.moved(c.link(0).wrote(c.limit(2)), "written") }},
		"want":  {"want END RAIL: a read call begins", 2, func(_ *world, c call) { c.link(0).want() }},
		"got":   {"got END RAIL [BYTES]: it ends", 2, func(_ *world, c call) { c.moved(c.link(0).got(c.limit(2)), "read") }},
		"late":  {"late END RAIL: what older connections still hold reaches END", 2, cmdLate},
		"step":  {"step: a write and a read call everywhere", 0, func(w *world, _ call) { w.step() }},
		"run":   {"run [TIME]: until nothing moves, or for a time", 0, cmdRun},
		"tick":  {"tick TIME: time goes, nothing moves", 1, cmdTick},

		"cut":     {"cut RAIL [from=a]: nothing arrives, nothing is said", 1, func(_ *world, c call) { c.cut(true) }},
		"heal":    {"heal RAIL", 1, func(_ *world, c call) { c.cut(false) }},
		"rate":    {"rate RAIL BYTES: a second", 2, func(w *world, c call) { w.cables[c.rail(0)].rate = c.size(1) }},
		"reset":   {"reset END RAIL: the connection is reset, and END sees it", 2, func(_ *world, c call) { c.link(0).lost(errReset) }},
		"suspect": {"suspect END RAIL", 2, cmdSuspect},
		"trust":   {"trust END RAIL", 2, cmdTrust},
		"beat":    {"beat END RAIL", 2, cmdBeat},
		"watch":   {"watch END: health is looked at while time goes", 1, func(_ *world, c call) { c.end(0).watched = true }},

		"region": {"region END NAME BYTES [readable]", 3, cmdRegion},
		"revoke": {"revoke END NAME", 2, func(_ *world, c call) { c.end(0).revoke(c.word[1]) }},
		"reuse":  {"reuse END NAME LETTER: the owner gives the memory to another request", 3, cmdReuse},
		"memory": {"memory END NAME", 2, func(_ *world, c call) { c.end(0).say("%s is %s", c.word[1], runs(c.end(0).area(c.word[1]).mem)) }},

		"put":     {"put END LETTER REGION BYTES [at=0] [fence] [notify=ACTOR] [forged]", 4, cmdPut},
		"get":     {"get END LETTER REGION BYTES [at=0] [fence]", 4, cmdGet},
		"flush":   {"flush END LETTER", 2, cmdFlush},
		"cancel":  {"cancel END LETTER", 2, cmdCancel},
		"abandon": {"abandon END LETTER", 2, cmdAbandon},
		"send":    {"send END ACTOR TEXT [BYTES]", 3, cmdSend},
		"stuck":   {"stuck END: its actors take nothing", 1, func(_ *world, c call) { c.end(0).stuck = true }},
		"consume": {"consume END: they take everything", 1, cmdConsume},

		"goodbye": {"goodbye END", 1, cmdGoodbye},
		"close":   {"close END: its endpoint ends", 1, cmdClose},
		"show":    {"show [END]", 0, cmdShow},
		"rates":   {"rates END: the measured rates", 1, cmdRates},
		"repeat":  {"repeat N COMMAND; COMMAND …: # is the round's letter, % its number; shows the last round", 2, cmdRepeat},
		"end":     {"end", 0, func(w *world, _ call) { w.finish() }},
	}
}

// do finds and does a command.
func (w *world) do(line string) {
	words := strings.Fields(line)
	if len(words) == 0 {
		return
	}
	cmd, ok := commands[words[0]]
	if !ok {
		w.breach("there is no command %s", words[0])
	}
	c := call{w: w, set: make(map[string]string)}
	for _, word := range words[1:] {
		name, value, set := strings.Cut(word, "=")
		if set || flagged(word) {
			c.set[name] = value
		} else {
			c.word = append(c.word, word)
		}
	}
	if words[0] == "repeat" { // its words are other commands'
		c.word = words[1:]
	}
	if len(c.word) < cmd.words {
		w.breach("%s wants: %s", words[0], cmd.usage)
	}
	if w.a == nil && words[0] != "new" {
		w.breach("a page begins with > new")
	}
	cmd.run(w, c)
}

func flagged(word string) bool { return word == "fence" || word == "forged" || word == "readable" }

// moved says how many bytes went.
func (c call) moved(n int, how string) { c.w.say("%s %s", size(n), how) }

func (c call) planned() int {
	if l := c.link(0); l.fill() {
		return l.gather.Size()
	}
	return 0
}

func (c call) by() *end {
	if c.set["by"] == "b" {
		return c.w.b
	}
	return c.w.a
}

func (c call) cut(cut bool) {
	cable := c.w.cables[c.rail(0)]
	from := c.set["from"]
	cable.cut[0] = pick(from != "b", cut, cable.cut[0])
	cable.cut[1] = pick(from != "a", cut, cable.cut[1])
}

func pick(first, a, b bool) bool {
	if first {
		return a
	}
	return b
}

func cmdNew(w *world, c call) {
	cfg := session.Config{}
	rails := 2
	for name, value := range c.set {
		n := w.bytes(value)
		switch name {
		case "rails":
			rails = n
		case "chunk":
			cfg.MinChunk, cfg.MaxChunk = n, n
		case "window":
			cfg.Window, cfg.MaxMessage = uint64(n), uint64(n)/2
		case "open":
			cfg.MaxOpen = n
		default:
			w.breach("new knows no %s", name)
		}
	}
	w.open(cfg, rails)
}

func cmdJoin(w *world, c call) {
	id := c.rail(0)
	if w.dial(c.by(), id) && w.answer(id) && w.confirm(id) {
		w.accept(id)
	}
}

// cmdLate lets an end read what dead connections of a rail hold for it.
func cmdLate(_ *world, c call) {
	e, id := c.end(0), c.rail(1)
	total := 0
	for _, l := range e.all() {
		if int(l.rail) != id || l.in == nil || len(l.in.bytes) == 0 || (l == e.links[id] && !e.peer.links[id].dead) {
			continue
		}
		held := len(l.in.bytes)
		for l.read(most) > 0 {
			continue
		}
		n := held - len(l.in.bytes)
		total += n
		e.say("%s: %s arrive, %s are read", l, size(held), size(n))
	}
}

func cmdRun(w *world, c call) {
	if len(c.word) == 0 {
		w.settle()
		return
	}
	w.pass(c.time(0))
}

func cmdTick(w *world, c call) {
	w.now += c.time(0)
	for _, e := range w.ends() {
		e.keep()
	}
}

func cmdSuspect(w *world, c call) {
	l := c.link(0)
	l.e.s.Suspect(w.now, l.gen, fmt.Errorf("the page says so"))
	l.e.pump()
}

func cmdTrust(w *world, c call) {
	l := c.link(0)
	l.e.s.Trust(w.now, l.gen)
	l.e.pump()
}

func cmdBeat(w *world, c call) {
	l := c.link(0)
	l.e.s.Beat(w.now, l.gen)
	l.e.pump()
}

func cmdRegion(_ *world, c call) {
	rights := rma.RemoteWrite
	if c.has("readable") {
		rights |= rma.RemoteRead
	}
	c.end(0).register(c.word[1], c.size(2), rights)
}

func cmdReuse(_ *world, c call) {
	r := c.end(0).area(c.word[1])
	copy(r.mem, bytes.Repeat([]byte(c.word[2][:1]), len(r.mem)))
	if r.frozen != nil {
		r.frozen = append([]byte(nil), r.mem...)
	}
}

func cmdPut(w *world, c call) { w.begin(c, session.Put) }

func cmdGet(w *world, c call) { w.begin(c, session.Get) }

// begin starts a put or a get.
func (w *world) begin(c call, kind session.OpKind) {
	e := c.end(0)
	r := e.peer.area(c.word[2])
	key := r.region.Key()
	k := &work{letter: c.word[1][0], area: r, n: c.size(3)}
	k.op = session.Op{Kind: kind, Region: key.Region(), Token: key.Token(), Fence: c.has("fence")}
	if at, ok := c.set["at"]; ok {
		k.op.Offset = uint64(w.bytes(at))
	}
	if c.has("forged") {
		k.op.Token[0] ^= 1
	}
	if actor := c.set["notify"]; actor != "" {
		k.op.Notify = &session.Message{Target: e.s.Intern(actor), Type: e.s.Intern(note),
			Payload: []byte(c.word[1] + " is there")}
	}
	e.start(k)
}

func cmdFlush(_ *world, c call) {
	c.end(0).start(&work{letter: c.word[1][0], op: session.Op{Kind: session.Flush}})
}

func cmdCancel(w *world, c call) {
	e := c.end(0)
	e.s.Cancel(w.now, &e.work(c.word[1]).op)
	e.pump()
}

func cmdAbandon(w *world, c call) {
	e := c.end(0)
	e.s.Abandon(w.now, &e.work(c.word[1]).op)
	e.pump()
}

func cmdSend(_ *world, c call) {
	n := 0
	if len(c.word) > 3 {
		n = c.size(3)
	}
	c.end(0).send(c.word[1], c.word[2], n)
}

func cmdConsume(w *world, c call) {
	e := c.end(0)
	e.stuck = false
	e.say("the last of %s in the mailboxes: %s", plural(len(e.heard), "message"), e.heard[len(e.heard)-1])
	e.s.Consumed(w.now, e.unspent)
	e.unspent = 0
	e.pump()
}

func cmdGoodbye(w *world, c call) {
	e := c.end(0)
	e.s.SayGoodbye(w.now)
	e.pump()
}

func cmdClose(w *world, c call) {
	e := c.end(0)
	e.s.Close(w.now, rma.ErrEndpointDown)
	e.pump()
}

func cmdShow(w *world, c call) {
	if len(c.word) > 0 {
		c.end(0).show()
		return
	}
	for _, e := range w.ends() {
		e.show()
	}
}

func cmdRates(_ *world, c call) {
	e := c.end(0)
	for _, l := range e.links {
		if l != nil {
			e.say("rail %d: %.0f MiB/s", l.rail, l.gen.Lane().Rate/(1<<20))
		}
	}
}

// maxRounds bounds a repeat.
const maxRounds = 1000

func cmdRepeat(w *world, c call) {
	rounds, err := strconv.Atoi(c.word[0])
	if err != nil || rounds < 1 || rounds > maxRounds {
		w.breach("repeat does 1 to %d rounds", maxRounds)
	}
	before := w.take()
	for i := range rounds {
		w.said = nil
		for _, line := range strings.Split(strings.Join(c.word[1:], " "), ";") {
			w.do(strings.NewReplacer("#", string(rune('A'+i)), "%", strconv.Itoa(i)).Replace(line))
			w.check()
		}
	}
	w.said = append(before, w.said...)
}
