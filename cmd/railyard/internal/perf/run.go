package perf

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/internal/hist"
	"railyard/rail"
)

// Waits that a test bears.
const (
	connectWait = 10 * time.Second
	railsWait   = 2 * time.Second // for the other rails, once the first is up
	controlWait = 15 * time.Second
	restWait    = 30 * time.Second // beyond the time that is measured
	endWait     = 10 * time.Second
	warmest     = 500 * time.Millisecond
	watchEvery  = 200 * time.Millisecond
)

// ErrFailed is wrapped by the error of a test that ran, but not well; its Result is still worth a look.
var ErrFailed = errors.New("the test failed")

// Run runs one test. ctx ends it early.
func Run(ctx context.Context, o Options) (r Result, err error) {
	k, err := o.test()
	if err != nil {
		return r, err
	}
	to, bindings, rails := o.To, loopback(o.Rails), o.Rails
	if to == "" {
		s, err := startSecond(ctx, o)
		if err != nil {
			return r, err
		}
		defer func() { err = errors.Join(err, s.End()) }()
		to = s.address
	} else if bindings, err = Bindings(o.Local); err != nil {
		return r, err
	} else {
		rails = len(bindings)
	}
	system := quietSystem()
	defer system.Shutdown()
	node, err := actors.Start(system, actors.Config{Name: "perf initiator", Rails: bindings})
	if err != nil {
		return r, fmt.Errorf("this side's node: %w", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), endWait)
		defer cancel()
		if down := node.Shutdown(ctx); down != nil {
			err = errors.Join(err, fmt.Errorf("this side's node did not shut down in order: %w", down))
		}
	}()
	b := &bench{o: &o, kind: k, node: node, system: system}
	stop := b.watch()
	defer stop()
	if err := b.connect(ctx, to, rails); err != nil {
		return r, err
	}
	r, err = b.run(ctx)
	b.diary.tell(&r)
	r.Settings = settings(&o, to, rails)
	return r, err
}

// watch keeps the diary until stop is called.
func (b *bench) watch() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() { b.diary.keep(ctx, b.node) })
	return func() {
		cancel()
		done.Wait()
	}
}

// connect reaches the target and waits until all rails are up, or long enough.
func (b *bench) connect(ctx context.Context, to string, rails int) error {
	within, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	var err error
	if b.endpoint, err = b.node.Connect(within, to); err != nil {
		return fmt.Errorf("no target at %s (is `railyard perf serve` running there?): %w", to, err)
	}
	for limit := time.Now().Add(railsWait); b.railsUp() < rails && time.Now().Before(limit); {
		if err := sleep(ctx, 5*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) railsUp() int {
	up := 0
	for _, s := range b.endpoint.Rails() {
		if s.State == rail.Up || s.State == rail.Probation {
			up++
		}
	}
	return up
}

// ask sends a request to the target's control actor.
func (b *bench) ask(m any) (any, error) {
	control := actor.NewPID(b.endpoint.Address(), controlName)
	answer, err := b.system.Root.RequestFuture(control, m, controlWait).Result()
	if err != nil {
		return nil, fmt.Errorf("the target does not answer %T: %w", m, err)
	}
	return answer, nil
}

// initiator is the id of the actor whose end tells the target that the test is over.
const initiator = "perf-initiator"

// prepare has the target register memory, and makes what is sent.
func (b *bench) prepare() error {
	keeper := actor.PropsFromFunc(func(actor.Context) {})
	if _, err := b.system.Root.SpawnNamed(keeper, initiator); err != nil {
		return fmt.Errorf("an actor that the target watches: %w", err)
	}
	m := &Prepare{Initiator: initiator, Readable: b.kind.get}
	if !b.kind.message {
		m.Region = uint64(max(int64(regionSize), b.o.Size))
		b.slots = m.Region / uint64(b.o.Size)
	}
	answer, err := b.ask(m)
	if err != nil {
		return err
	}
	ready, ok := answer.(*Ready)
	if !ok || ready.Refused != "" {
		return fmt.Errorf("the target refuses the test: %s", ready.GetRefused())
	}
	b.test = ready.Test
	if m.Region > 0 {
		if err := b.key.UnmarshalBinary(ready.Key); err != nil {
			return fmt.Errorf("the target's key cannot be read: %w", err)
		}
	}
	return b.buffers()
}

// buffers makes the source, or the places where gets land.
func (b *bench) buffers() error {
	if b.kind.get {
		all, err := b.node.Alloc(b.o.Senders * b.o.Window * int(b.o.Size))
		if err != nil {
			return fmt.Errorf("no memory for gets to land in; make size, window or senders smaller: %w", err)
		}
		for len(all) > 0 {
			b.gets = append(b.gets, all[:b.o.Size:b.o.Size])
			all = all[b.o.Size:]
		}
		b.came = make([]uint64, len(b.gets))
		return nil
	}
	var err error
	if b.source, err = b.node.Alloc(int(b.o.Size)); err != nil {
		return fmt.Errorf("no memory for the source: %w", err)
	}
	Fill(b.source)
	for i := range b.source { // not what the target's memory holds already
		b.source[i] = ^b.source[i]
	}
	return nil
}

// mark is both sides' state at a phase's boundary.
type mark struct {
	at     time.Time
	cpu    float64
	target *Counted
}

func (b *bench) mark() (mark, error) {
	answer, err := b.ask(&Count{})
	if err != nil {
		return mark{}, err
	}
	counted, ok := answer.(*Counted)
	if !ok {
		return mark{}, fmt.Errorf("the target answers with %T instead of its counters", answer)
	}
	return mark{at: time.Now(), cpu: cpuSeconds(), target: counted}, nil
}

// run goes through the phases.
func (b *bench) run(ctx context.Context) (Result, error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	go func() {
		select {
		case <-b.endpoint.Done():
			leave(fmt.Errorf("%w: the target is gone: %w", ErrFailed, b.endpoint.Err()))
		case <-ctx.Done():
		}
	}()
	limit, cancel := context.WithTimeout(ctx, b.o.Time+restWait+2*controlWait)
	defer cancel()
	b.over = limit.Done()
	if err := b.prepare(); err != nil {
		return Result{}, err
	}
	var err error
	if b.base, err = b.mark(); err != nil {
		return Result{}, err
	}
	b.kind.start(b)
	before, after, err := b.phases(ctx)
	b.phase.Store(resting)
	b.senders.Wait() // until over, if need be
	if err != nil {
		return Result{Test: b.kind.name, Size: b.o.Size}, err
	}
	r := b.result(before, after)
	if err := b.settle(&r); err != nil {
		return r, err
	}
	if b.o.Verify {
		if err := b.verify(&r); err != nil {
			return r, err
		}
	}
	return r, r.verdict()
}

// phases warms up and measures; the marks are those at the beginning and the end of the measured time.
func (b *bench) phases(ctx context.Context) (before, after mark, err error) {
	if err = sleep(ctx, min(b.o.Time/5, warmest)); err != nil {
		return before, after, err
	}
	if before, err = b.mark(); err != nil {
		return before, after, err
	}
	b.phase.Store(measuring)
	if !b.kind.stream() {
		before.at = time.Now()
	}
	end := before.at.Add(b.o.Time)
	last, ops := before.at, b.live.Load()
	for left := b.o.Time; left > 0; left = time.Until(end) {
		if err = sleep(ctx, min(left, watchEvery)); err != nil {
			return before, after, err
		}
		now, n := time.Now(), b.live.Load()
		b.progress(float64(n-ops)/now.Sub(last).Seconds(), time.Until(end))
		last, ops = now, n
	}
	b.phase.Store(resting)
	rested := time.Now()
	after, err = b.mark()
	if !b.kind.stream() {
		after.at = rested
	}
	return before, after, err
}

// stream tells whether the target counts, not the initiator.
func (k kind) stream() bool { return k.name == "msg-rate" || k.name == "msg-bw" }

func (b *bench) progress(opsPerS float64, left time.Duration) {
	if b.o.Progress == nil {
		return
	}
	b.o.Progress(fmt.Sprintf("%s: %.0f/s, %.1f MB/s, %d rails, %.1f s left", b.kind.name, opsPerS,
		opsPerS*float64(b.o.Size)/1e6, b.railsUp(), max(left.Seconds(), 0)))
}

// result adds the senders up.
func (b *bench) result(before, after mark) Result {
	r := Result{Test: b.kind.name, Size: b.o.Size, Rails: b.railsUp()}
	var times hist.Histogram
	for _, t := range b.tallies {
		times.Add(&t.times)
		r.Ops += t.ops
		r.Bytes += t.bytes
		r.Errors += t.errors
		r.Verified += t.verified
		r.Bad += t.bad
		if t.first != nil && r.FirstErr == "" {
			r.FirstErr = t.first.Error()
		}
	}
	if b.kind.stream() {
		r.Ops = after.target.Messages - before.target.Messages
		r.Bytes = after.target.Bytes - before.target.Bytes
	}
	r.Seconds = round(after.at.Sub(before.at).Seconds(), 4)
	r.CPUSeconds = round(after.cpu-before.cpu, 3)
	r.CPUSecondsTarget = round(after.target.CpuSeconds-before.target.CpuSeconds, 3)
	r.times(&times)
	r.rates()
	return r
}

// settle waits until the target has all messages that were sent.
func (b *bench) settle(r *Result) error {
	if !b.kind.stream() {
		return nil
	}
	sent := b.next.Load()
	for limit := time.Now().Add(restWait); ; {
		m, err := b.mark()
		if err != nil {
			return err
		}
		r.Bad = m.target.Bad - b.base.target.Bad
		came := m.target.Messages - b.base.target.Messages
		if came >= sent {
			if b.o.Verify {
				r.Verified = sent
			}
			return nil
		}
		if time.Now().After(limit) {
			r.Errors += sent - came
			r.FirstErr = fmt.Sprintf("%d of %d messages have not come to the target", sent-came, sent)
			return nil
		}
		time.Sleep(5 * time.Millisecond) // the wait is bounded above
	}
}

// verify compares what landed.
func (b *bench) verify(r *Result) error {
	switch {
	case b.kind.get:
		region := make([]byte, b.key.Len())
		Fill(region)
		for i, from := range b.came {
			if from == 0 {
				continue
			}
			r.Verified++
			if !bytes.Equal(b.gets[i], region[from-1:][:b.o.Size]) {
				r.Bad++
			}
		}
	case !b.kind.message:
		return b.inspect(r)
	}
	return nil
}

// inspect has the target look at its memory, once it has been told of all puts, or should have been.
func (b *bench) inspect(r *Result) error {
	started := b.next.Load()
	m := &Inspect{Initiator: initiator, Size: uint64(b.o.Size), Count: min(started, b.slots), Sum: sumOf(b.source)}
	for limit := time.Now().Add(restWait); ; {
		answer, err := b.ask(m)
		if err != nil {
			return err
		}
		seen, ok := answer.(*Inspected)
		if !ok || seen.Refused != "" {
			return fmt.Errorf("the target does not look at its memory: %s", seen.GetRefused())
		}
		if done := started - r.Errors; seen.Landed >= done || time.Now().After(limit) {
			r.Verified, r.Bad, r.Doubled, r.Lost = m.Count, seen.Bad, seen.Doubled, done-min(seen.Landed, done)
			return nil
		}
		time.Sleep(5 * time.Millisecond) // the wait is bounded above
	}
}

// verdict says whether the test went well.
func (r *Result) verdict() error {
	switch {
	case r.Errors > 0:
		return fmt.Errorf("%w: %d operations failed, the first with: %s", ErrFailed, r.Errors, r.FirstErr)
	case r.Lost+r.Doubled > 0:
		return fmt.Errorf("%w: the target was not told of %d puts, and again of %d", ErrFailed, r.Lost, r.Doubled)
	case r.Bad > 0:
		return fmt.Errorf("%w: %d of %d pieces were not what was sent", ErrFailed, r.Bad, r.Verified)
	case r.Ops == 0:
		return fmt.Errorf("%w: not one operation ended in %v s; give it more --time", ErrFailed, r.Seconds)
	}
	return nil
}

// untilClosed is a context that ends with a channel.
func untilClosed(over <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-over:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("the test was stopped: %w", context.Cause(ctx))
	}
}
