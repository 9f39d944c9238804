package endpoint

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"railyard/endpoint/session"
	"railyard/rma"
)

// This file: loads whose every byte says what it is, and the host that checks them.

// witness is a Host that checks each message at its arrival.
type witness struct {
	mu      sync.Mutex
	streams map[string]*stream
	wrong   []string
	downs   []ended
	ups     int
	lost    []lostMessage
	// notified is called for each Notify, with the number that it carries.
	notified func(id uint64) error
	// withheld is what was not given back to the peer's window, while withhold is set.
	withhold bool
	withheld uint64
}

// stream is what has come for one target.
type stream struct{ next, bytes uint64 }

type ended struct {
	e     *Endpoint
	cause error
}

type lostMessage struct {
	target string
	seq    uint64
	err    error
}

// The types of messages: numbered ones of a stream, those of Notify, and those that nobody checks.
const (
	numberedType = "numbered"
	notifyType   = "landed"
)

func newWitness() *witness { return &witness{streams: make(map[string]*stream)} }

// Deliver implements Host.
func (w *witness) Deliver(e *Endpoint, d *session.Delivery) {
	var err error
	switch d.Type.S {
	case numberedType:
		err = w.numbered(d)
	case notifyType:
		err = w.notify(d)
	}
	w.mu.Lock()
	if err != nil {
		w.note(err)
	}
	if w.withhold {
		w.withheld += d.Cost
		w.mu.Unlock()
		return
	}
	w.mu.Unlock()
	e.Consumed(d.Cost)
}

// note keeps a finding. The caller holds mu.
func (w *witness) note(err error) {
	if len(w.wrong) < 10 {
		w.wrong = append(w.wrong, err.Error())
	}
}

// accuse keeps a finding of a load.
func (w *witness) accuse(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note(err)
}

func (w *witness) faults() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]string(nil), w.wrong...)
}

// numbered checks a message of a stream: the next number, and the bytes that belong to it.
func (w *witness) numbered(d *session.Delivery) error {
	seq, err := unstamp(d.Target.S, d.Payload)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.streams[d.Target.S]
	if s == nil {
		s = &stream{}
		w.streams[d.Target.S] = s
	}
	if seq != s.next {
		return fmt.Errorf("message %d of %s came where %d was due", seq, d.Target.S, s.next)
	}
	s.next++
	s.bytes += uint64(len(d.Payload))
	return nil
}

func (w *witness) notify(d *session.Delivery) error {
	if len(d.Payload) != 8 {
		return fmt.Errorf("a notification of %d bytes", len(d.Payload))
	}
	w.mu.Lock()
	f := w.notified
	w.mu.Unlock()
	if f == nil {
		return nil
	}
	return f(binary.LittleEndian.Uint64(d.Payload))
}

// arrived is how many messages of a stream have come.
func (w *witness) arrived(target string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.streams[target]; s != nil {
		return s.next
	}
	return 0
}

// Marshal implements Host: a Notify carries a number.
func (w *witness) Marshal(pid rma.PID, message any) (*Outgoing, error) {
	return &Outgoing{Target: NewRef(pid.GetId()), Type: NewRef(notifyType),
		Payload: binary.LittleEndian.AppendUint64(nil, message.(uint64))}, nil
}

// Undelivered implements Host.
func (w *witness) Undelivered(_ *Endpoint, m *Outgoing, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := lostMessage{target: m.Target.S, err: err}
	if m.Type.S == numberedType {
		seq, wrong := unstamp(m.Target.S, m.Payload)
		if wrong != nil {
			w.note(fmt.Errorf("a message came back changed: %w", wrong))
		}
		l.seq = seq
	}
	w.lost = append(w.lost, l)
}

// undelivered gives what came back.
func (w *witness) undelivered() []lostMessage {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]lostMessage(nil), w.lost...)
}

// EndpointUp implements Host.
func (w *witness) EndpointUp(*Endpoint) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ups++
}

// EndpointDown implements Host.
func (w *witness) EndpointDown(e *Endpoint, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.downs = append(w.downs, ended{e, cause})
}

func (w *witness) downCauses() []error {
	w.mu.Lock()
	defer w.mu.Unlock()
	var list []error
	for _, d := range w.downs {
		list = append(list, d.cause)
	}
	return list
}

// stamp fills a payload that says which message of which stream it is, in every byte.
func stamp(target string, seq uint64, b []byte) {
	word := hash(target) ^ seq*0x9e3779b97f4a7c15
	var head [16]byte
	binary.LittleEndian.PutUint64(head[:], seq)
	binary.LittleEndian.PutUint64(head[8:], uint64(len(b)))
	n := copy(b, head[:])
	fill(b[n:], word)
}

// leastStamp is the size of the smallest payload that stamp can fill.
const leastStamp = 16

// unstamp gives the number of a stamped payload; an error says what is wrong with its bytes.
func unstamp(target string, b []byte) (uint64, error) {
	if len(b) < leastStamp {
		return 0, fmt.Errorf("a message of %d bytes for %s", len(b), target)
	}
	seq, n := binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint64(b[8:])
	if n != uint64(len(b)) {
		return seq, fmt.Errorf("message %d of %s has %d bytes, and had %d", seq, target, len(b), n)
	}
	if at := foreign(b[leastStamp:], hash(target)^seq*0x9e3779b97f4a7c15); at >= 0 {
		return seq, fmt.Errorf("message %d of %s has a foreign byte at %d of %d", seq, target, at+leastStamp, len(b))
	}
	return seq, nil
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// fill writes a pattern of which every eight bytes differ from those of other words and places.
func fill(b []byte, word uint64) {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		binary.LittleEndian.PutUint64(b[i:], word+uint64(i))
	}
	for ; i < len(b); i++ {
		b[i] = byte(word) + byte(i)
	}
}

// foreign gives the place of the first byte that fill did not write; -1: there is none.
func foreign(b []byte, word uint64) int {
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:]) != word+uint64(i) {
			return i
		}
	}
	for ; i < len(b); i++ {
		if b[i] != byte(word)+byte(i) {
			return i
		}
	}
	return -1
}

// talk sends numbered messages of mixed sizes to some targets until it is told to stop.
type talk struct {
	t        testing.TB
	from, to *peer
	route    *Route
	work     sync.WaitGroup
	stopping chan struct{}
	once     sync.Once
	sent     []atomic.Uint64
	prefix   string
	pause    time.Duration
	large    int
}

// talkSpec says how a talk goes: to how many targets, with a pause after each message, and how many bytes the
// largest messages have (0: 300 KiB).
type talkSpec struct {
	targets int
	pause   time.Duration
	large   int
	seed    uint64
}

// startTalk starts a sender for each target; finish ends it.
func startTalk(t testing.TB, from, to *peer, spec talkSpec) *talk {
	if spec.large == 0 {
		spec.large = 300 << 10
	}
	tk := &talk{t: t, from: from, to: to, route: from.Route(to.Address()), stopping: make(chan struct{}),
		sent: make([]atomic.Uint64, spec.targets), prefix: "from " + from.Address() + " ", pause: spec.pause, large: spec.large}
	for i := range spec.targets {
		rnd := rand.New(rand.NewPCG(spec.seed, uint64(i)))
		tk.work.Go(func() { tk.send(i, rnd) })
	}
	t.Cleanup(tk.stop)
	return tk
}

func (tk *talk) target(i int) string { return fmt.Sprint(tk.prefix, i) }

func (tk *talk) send(i int, rnd *rand.Rand) {
	target := tk.target(i)
	ref, sender, typ := NewRef(target), NewRef(tk.from.Address()+"/me"), NewRef(numberedType)
	for seq := uint64(0); ; seq++ {
		select {
		case <-tk.stopping:
			return
		default:
		}
		payload := make([]byte, tk.size(rnd))
		stamp(target, seq, payload)
		ctx, done := context.WithTimeout(context.Background(), patience)
		err := tk.route.Send(ctx, &Outgoing{Target: ref, Sender: sender, Type: typ, Payload: payload})
		done()
		if err != nil {
			if !errors.Is(err, rma.ErrShutdown) {
				tk.from.accuse(fmt.Errorf("message %d to %s was not taken: %w", seq, target, err))
			}
			return
		}
		tk.sent[i].Store(seq + 1)
		tk.keepUp(i)
		if tk.pause > 0 {
			time.Sleep(tk.pause)
		}
	}
}

// ahead bounds the messages of one stream under way, so that a test ends soon after its sending, on a busy machine too.
const ahead = 100

// keepUp waits while the stream is too far ahead of its receiver.
func (tk *talk) keepUp(i int) {
	for tk.sent[i].Load() > tk.to.arrived(tk.target(i))+ahead {
		select {
		case <-time.After(time.Millisecond):
		case <-tk.stopping:
			return
		}
	}
}

// size is mostly small, at times the largest that travels whole, and at times large.
func (tk *talk) size(rnd *rand.Rand) int {
	switch n := rnd.IntN(100); {
	case n < 90:
		return leastStamp + rnd.IntN(1000)
	case n < 95:
		return leastStamp + rnd.IntN(32<<10)
	default:
		return 33<<10 + rnd.IntN(max(1, tk.large-33<<10))
	}
}

// stop ends the sending.
func (tk *talk) stop() {
	tk.once.Do(func() { close(tk.stopping) })
	tk.work.Wait()
}

// total is how many messages have been sent.
func (tk *talk) total() uint64 {
	var n uint64
	for i := range tk.sent {
		n += tk.sent[i].Load()
	}
	return n
}

// finish stops, and waits until everything has arrived exactly once and in order.
func (tk *talk) finish() {
	tk.t.Helper()
	tk.stop()
	eventually(tk.t, "all messages arrive", func() (bool, any) {
		var missing []string
		for i := range tk.sent {
			if got, want := tk.to.arrived(tk.target(i)), tk.sent[i].Load(); got != want {
				missing = append(missing, fmt.Sprintf("%s: %d of %d", tk.target(i), got, want))
			}
		}
		return len(missing) == 0 || len(tk.to.faults()) > 0, []any{missing, tk.from.sizes(), tk.to.sizes()}
	})
	require.Empty(tk.t, tk.to.faults())
	require.Empty(tk.t, tk.from.faults())
}

// sizes shows what the node's sessions keep, for a failure's report.
func (p *peer) sizes() string {
	s := ""
	for _, e := range p.all() {
		e.mu.Lock()
		s += fmt.Sprintf("to %s: %+v stats %+v\n", e.address, e.s.Sizes(), e.s.Stats())
		e.mu.Unlock()
		for _, r := range e.Rails() {
			s += fmt.Sprintf("  %+v\n", r)
		}
	}
	return s
}
