package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"railyard/cmd/railyard/internal/cable"
	"railyard/cmd/railyard/internal/sabotage"
	"railyard/cmd/railyard/internal/script"
	"railyard/internal/clock"
	"railyard/internal/load"
	"railyard/rail"
)

// Options of a run.
type Options struct {
	Rails    int
	Pairs    int
	Steps    []script.Step
	Seed     uint64
	Sabotage sabotage.Kind
	Second   []string // the arguments that make this program call Serve
	JSON     bool
	// Page is where a page shows the run and takes cuts and heals, host:port; then no script is played. Empty: none. Browse is
	// told its URL.
	Page   string
	Browse func(url string)
	Screen Screen
	Err    io.Writer // for what the second process has to complain about
}

// Limits of Options.
const (
	MinRails = 2
	MaxRails = 16
	MinPairs = 1
	MaxPairs = 64
)

// ErrBroken is wrapped by Run's error where a promise was broken.
var ErrBroken = errors.New("a promise was broken")

// Sabotage begins when the load has got going, and does a handful of deeds.
const (
	sabotageAfter = time.Second
	sabotageEvery = 400 * time.Millisecond
	sabotageLimit = 5
	sabotageWait  = 30 * time.Second // beyond the script
)

// outageLimit is longer than any time that the default script leaves no rail.
const outageLimit = 30 * time.Second

// What was under way when the sending stopped is waited for, drainWait at most, and not beyond restWait without
// anything arriving.
const (
	drainWait = 30 * time.Second
	restWait  = 5 * time.Second
)

// run is one run of the demo.
type run struct {
	options  Options
	saboteur *sabotage.Saboteur
	cables   []*cable.Cable
	targets  []string // where the cables lead
	a        *half
	b        *remote
	book     *book
	stage    *stage
	printer  *printer
	began    time.Duration // the load
	live     *live         // nil: a script is played

	mu sync.Mutex
	// Owner: mu.
	summary Summary
}

// Run plays the script and gives what became of it. The error wraps ErrBroken where a promise was broken; other
// errors say that the run did not come to its end.
func Run(ctx context.Context, o Options) (Summary, error) {
	r := &run{options: o, book: newBook(o.Rails), printer: newPrinter(o.Screen, o.JSON)}
	if o.Page != "" {
		r.live = newLive()
	}
	r.summary = Summary{Rails: o.Rails, Pairs: o.Pairs, Seed: o.Seed, Broken: []string{}}
	if o.Sabotage != sabotage.None {
		r.summary.Sabotage = o.Sabotage.String()
	}
	err := r.open(ctx)
	if err == nil {
		err = r.perform(ctx)
	}
	if closeErr := r.close(); closeErr != nil {
		r.summary.Broken = append(r.summary.Broken, "shutdown: "+closeErr.Error())
	}
	if err != nil {
		return r.summary, err
	}
	r.printer.summary(r.summary)
	if len(r.summary.Broken) > 0 {
		return r.summary, fmt.Errorf("%w: %v", ErrBroken, r.summary.Broken)
	}
	return r.summary, nil
}

// open makes the cables, both nodes, and connects them.
func (r *run) open(ctx context.Context) error {
	r.saboteur = sabotage.New(sabotage.Config{
		Kind: r.options.Sabotage, Numbered: load.NumberedName(), Filler: load.FillerName(), Now: clock.Now,
		Start: clock.Now() + sabotageAfter, Every: sabotageEvery, Limit: sabotageLimit,
	})
	secret := make([]byte, 32)
	_, _ = rand.Read(secret) // it does not fail: the program would end
	near := setup{Name: "a", OtherName: "b", Secret: secret, Pairs: r.options.Pairs, Seed: 2 * r.options.Seed,
		Filler: r.options.Sabotage != sabotage.None, Outage: outageLimit}
	if r.options.Page != "" {
		near.Outage = pageOutage
	}
	far := near
	far.Name, far.OtherName, far.Seed = "b", "a", near.Seed+1
	err := r.second(ctx, &near, &far, freePorts)
	if err != nil {
		return err
	}
	if r.a, err = newHalf(near); err != nil {
		return err
	}
	r.stage = &stage{
		cables: r.cables, book: r.book, say: r.printer.say, cut: make([]bool, r.options.Rails),
		superseded: r.finish, detected: r.detected,
	}
	return r.connect(ctx)
}

// lays is how often ports are looked for: a free one may be taken before node b listens there.
const lays = 5

// second lays the cables and starts node b.
func (r *run) second(ctx context.Context, near, far *setup, free func(int) ([]string, error)) error {
	for try := 1; ; try++ {
		ports, err := free(r.options.Rails)
		if err != nil {
			return err
		}
		if err := r.lay(near, far, ports); err != nil {
			return err
		}
		if r.b, err = startRemote(ctx, r.options.Second, *far, r.options.Err); err == nil {
			return nil
		}
		// The other process's error comes as a text.
		if try == lays || !strings.Contains(err.Error(), syscall.EADDRINUSE.Error()) {
			return fmt.Errorf("node b: %w", err)
		}
		if err := r.take(); err != nil {
			return err
		}
		near.Rails, far.Rails = nil, nil
	}
}

// take takes the cables away.
func (r *run) take() error {
	var errs []error
	for _, c := range r.cables {
		errs = append(errs, c.Close())
	}
	r.cables, r.targets = nil, nil
	return errors.Join(errs...)
}

// lay makes the cables and writes them into the two setups.
func (r *run) lay(near, far *setup, ports []string) error {
	for _, target := range ports {
		config := cable.Config{Address: "127.0.0.1:0", Target: target}
		if r.options.Sabotage != sabotage.None {
			config.Edit = r.saboteur.Editor
		}
		c, err := cable.Listen(config)
		if err != nil {
			return err
		}
		r.cables, r.targets = append(r.cables, c), append(r.targets, target)
		near.Rails = append(near.Rails, railSetup{Address: "127.0.0.1:0"})
		far.Rails = append(far.Rails, railSetup{Address: target, Advertise: c.Addr()})
	}
	return nil
}

// freePorts finds ports that nobody listens on at the moment.
func freePorts(n int) (addresses []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("no free port on loopback: %w", err)
		}
		defer l.Close() // all at the end, so that no port is found twice
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, nil
}

// connect starts the load on both sides; a dials b, over cable 0.
func (r *run) connect(ctx context.Context) error {
	within, cancel := context.WithTimeout(ctx, connectWait)
	defer cancel()
	if err := r.a.start(within, r.cables[r.stage.first].Addr()); err != nil {
		return err
	}
	if _, err := r.b.ask(ctx, request{Do: doStart, Address: r.a.node.Address()}); err != nil {
		return fmt.Errorf("node b: %w", err)
	}
	r.began = clock.Now()
	return nil
}

// perform plays the script, with the monitor and the table beside it, and takes the verdict.
func (r *run) perform(ctx context.Context) error {
	ctx, abort := context.WithCancelCause(ctx)
	defer abort(nil)
	go func() {
		select {
		case <-r.b.process.Ended():
			abort(errGone)
		case <-ctx.Done():
		}
	}()
	watching, stop := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() { r.monitor(watching) })
	beside.Go(func() { r.show(watching) })
	var err error
	if r.options.Page != "" {
		err = r.direct(ctx) // nil where it is stopped: that is how it ends
	} else if err = r.stage.play(ctx, r.options.Steps); err == nil {
		err = r.stage.restore(ctx)
	}
	if err == nil {
		err = r.awaitSabotage(ctx)
	}
	stop()
	beside.Wait()
	if err != nil && ctx.Err() == nil {
		return err
	}
	// Interrupted or not, what was sent must arrive: the nodes come to rest in order.
	r.summary.Stopped = err != nil
	for _, c := range r.cables {
		c.Heal()
	}
	r.printer.say("the load stops; what is under way arrives")
	if rest := r.verdict(context.WithoutCancel(ctx)); rest != nil {
		return errors.Join(err, rest)
	}
	if err != nil {
		r.printer.summary(r.summary)
	}
	return err
}

// awaitSabotage lets the load run on until the sabotage has done its deeds: on a busy machine the script may be over
// before it finds an occasion.
func (r *run) awaitSabotage(ctx context.Context) error {
	if r.options.Sabotage == sabotage.None {
		return nil
	}
	for limit := clock.Now() + sabotageWait; r.saboteur.Deeds() < sabotageLimit && clock.Now() < limit; {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// monitor sees cuts to their ends.
func (r *run) monitor(ctx context.Context) {
	for sleep(ctx, 5*time.Millisecond) == nil {
		for _, c := range r.book.look(clock.Now(), r.look()) {
			r.finish(c)
		}
	}
}

// look sees the rails as node a has them.
func (r *run) look() []seen {
	rails := make([]seen, len(r.cables))
	for _, status := range r.a.endpoint.Rails() {
		if i := r.railOf(status.Local, status.Remote); i >= 0 {
			rails[i].works = status.State == rail.Up || status.State == rail.Probation
		}
	}
	for i, c := range r.cables {
		toTarget, toSource := c.Carried()
		rails[i].carried = toTarget + toSource
	}
	return rails
}

// railOf gives the cable that a rail goes through; -1: none.
func (r *run) railOf(local, remote string) int {
	for i, c := range r.cables {
		if a := c.Addr(); local == a || remote == a || local == r.targets[i] || remote == r.targets[i] {
			return i
		}
	}
	return -1
}

// since gives what both halves have to say of the time since a cut.
func (r *run) since(c *cut) []report {
	now := clock.Now()
	halves := []report{r.a.report(c.at, now)}
	if b, err := r.b.ask(context.Background(), request{Do: doReport, From: c.at, To: now}); err == nil {
		halves = append(halves, b.Report)
	} else {
		r.printer.say("node b does not report: %v", err)
	}
	return halves
}

// detected tells whether a node has noticed the cut.
func (r *run) detected(c *cut) bool { return r.recordOf(c).DetectedMs != nil }

func (r *run) recordOf(c *cut) Record {
	return c.complete(r.since(c), func(s sign) bool { return r.railOf(s.Local, s.Remote) == c.record.Rail })
}

// finish completes a cut's record and prints it.
func (r *run) finish(c *cut) {
	record := r.recordOf(c)
	r.mu.Lock()
	r.summary.add(record, c.late)
	r.mu.Unlock()
	r.live.add(record)
	r.printer.record(record)
}

// verdict stops both sides, waits until they are at rest and counts.
func (r *run) verdict(ctx context.Context) error {
	ran := clock.Now() - r.began
	r.a.halt()
	if _, err := r.b.ask(ctx, request{Do: doHalt}); err != nil {
		return fmt.Errorf("node b does not stop its load: %w", err)
	}
	if err := r.drain(ctx); err != nil {
		return err
	}
	// What is late comes now.
	if err := sleep(ctx, watch); err != nil {
		return err
	}
	if err := r.a.side.Finish(); err != nil {
		return err
	}
	if _, err := r.b.ask(ctx, request{Do: doFinish}); err != nil {
		return fmt.Errorf("node b does not look at its memory: %w", err)
	}
	both, err := r.both(ctx)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.summary.take(both[0].Counters.Add(both[1].Counters), ran)
	r.summary.Notes = slices.Concat(both[0].Notes, both[1].Notes)
	r.summary.Deeds = r.saboteur.Deeds()
	if r.options.Sabotage != sabotage.None && r.summary.Deeds == 0 {
		r.summary.Broken = append(r.summary.Broken, "sabotage: it found no occasion; let the script run longer")
	}
	return nil
}

// drain waits until everything that was sent has arrived, or nothing arrives any more.
func (r *run) drain(ctx context.Context) error {
	var before load.Counters
	began := clock.Now()
	moved := began
	for {
		both, err := r.both(ctx)
		if err != nil {
			return err
		}
		now, c := clock.Now(), both[0].Counters.Add(both[1].Counters)
		if c != before {
			before, moved = c, now
		}
		rest := c.Sent <= c.Delivered && both[0].Pending+both[1].Pending == 0
		if rest || now-moved > restWait || now-began > drainWait {
			return nil
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// both asks the two halves.
func (r *run) both(ctx context.Context) ([2]report, error) {
	b, err := r.b.ask(ctx, request{Do: doReport})
	if err != nil {
		return [2]report{}, fmt.Errorf("node b does not count: %w", err)
	}
	return [2]report{r.a.report(0, 0), b.Report}, nil
}

// close ends everything: the nodes first, over whole cables, then those.
func (r *run) close() error {
	var errs []error
	if r.a != nil {
		r.a.expectEnd()
	}
	if r.b != nil {
		_, _ = r.b.ask(context.Background(), request{Do: doPart}) // if it is gone, end says so
	}
	if r.a != nil {
		errs = append(errs, r.a.end())
	}
	if r.b != nil {
		errs = append(errs, r.b.end())
	}
	for _, c := range r.cables {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
