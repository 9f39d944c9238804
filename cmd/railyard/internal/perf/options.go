package perf

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"railyard/rail"
)

// Options of a test.
type Options struct {
	Test    string
	Rails   int           // loopback rails, without To
	To      string        // where a target serves; empty: start one
	Local   []string      // addresses of this node's cards, with To; none: discovered
	Size    int64         // bytes of an operation; 0: what suits the test
	Time    time.Duration // that is measured
	Window  int           // operations under way, of each sender
	Senders int
	Verify  bool

	Second []string // the arguments that make this program call ServeSecond
	Err    io.Writer
	// Progress is called now and then with what is going on; nil: nobody watches.
	Progress func(line string)
}

// Limits of Options.
const (
	MaxRails   = 16
	MaxSenders = 64
	MaxWindow  = 4096
	MaxSize    = 1 << 30
	MaxTime    = 10 * time.Minute
	maxMessage = 16 << 20 // bytes of a message; larger data is put
	regionSize = 64 << 20 // bytes of the target's region, unless one operation is larger
	maxBuffers = 2 << 30  // bytes that gets may land in
)

// ErrOptions is wrapped by every error about Options.
var ErrOptions = errors.New("wrong usage")

// kind is a test.
type kind struct {
	name    string
	about   string
	size    int64 // default
	window  int   // 0: as asked for
	message bool
	get     bool
	start   func(*bench) // makes the senders
}

var kinds = []kind{
	{name: "put-bw", about: "bandwidth of puts", size: 4 << 20, start: (*bench).startPuts},
	{name: "put-lat", about: "time of one put at a time", size: 8, window: 1, start: (*bench).startPuts},
	{name: "get-bw", about: "bandwidth of gets", size: 4 << 20, get: true, start: (*bench).startGets},
	{name: "msg-rate", about: "small messages one way", size: 64, message: true, start: (*bench).startStreams},
	{name: "msg-lat", about: "round trip of one message at a time", size: 64, window: 1, message: true,
		start: (*bench).startEchoes},
	{name: "msg-bw", about: "large messages one way", size: 1 << 20, message: true, start: (*bench).startStreams},
}

// Tests lists the names and what they measure.
func Tests() (names, abouts []string) {
	for _, k := range kinds {
		names, abouts = append(names, k.name), append(abouts, k.about)
	}
	return names, abouts
}

// Check refuses what Run would refuse before it begins; the error wraps ErrOptions and says what is possible.
func (o Options) Check() error {
	_, err := o.test()
	return err
}

// test finds the kind and checks the options against it.
func (o *Options) test() (kind, error) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.name == o.Test })
	if i < 0 {
		names, _ := Tests()
		return kind{}, fmt.Errorf("%w: there is no test %q; there are %s", ErrOptions, o.Test, strings.Join(names, ", "))
	}
	k := kinds[i]
	if o.Size == 0 {
		o.Size = k.size
	}
	if k.window > 0 {
		o.Window = k.window
	}
	return k, o.check(k)
}

func (o *Options) check(k kind) error {
	limit := int64(MaxSize)
	if k.message {
		limit = maxMessage
	}
	switch {
	case o.Rails < 1 || o.Rails > MaxRails:
		return fmt.Errorf("%w: %d rails; 1 to %d are possible", ErrOptions, o.Rails, MaxRails)
	case o.Size < 1 || o.Size > limit:
		return fmt.Errorf("%w: size %d of %s; 1 to %d bytes are possible", ErrOptions, o.Size, k.name, limit)
	case o.Time <= 0 || o.Time > MaxTime:
		return fmt.Errorf("%w: time %v; more than 0 and at most %v is possible", ErrOptions, o.Time, MaxTime)
	case o.Window < 1 || o.Window > MaxWindow:
		return fmt.Errorf("%w: window %d; 1 to %d are possible", ErrOptions, o.Window, MaxWindow)
	case o.Senders < 1 || o.Senders > MaxSenders:
		return fmt.Errorf("%w: %d senders; 1 to %d are possible", ErrOptions, o.Senders, MaxSenders)
	case k.get && o.Size*int64(o.Window)*int64(o.Senders) > maxBuffers:
		return fmt.Errorf("%w: gets of size %d with window %d and %d senders need more than %d bytes of memory",
			ErrOptions, o.Size, o.Window, o.Senders, int64(maxBuffers))
	case len(o.Local) > 0 && o.To == "":
		return fmt.Errorf("%w: rails of this host are of use only towards another: say where it serves", ErrOptions)
	}
	_, err := Bindings(o.Local)
	return err
}

// Bindings makes rails of addresses, and checks them.
func Bindings(addresses []string) ([]rail.Binding, error) {
	var all []rail.Binding
	for _, a := range addresses {
		all = append(all, rail.TCP(a))
	}
	if err := rail.ValidateBindings(all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return all, nil
}

// loopback makes so many rails on this host alone.
func loopback(n int) []rail.Binding {
	var all []rail.Binding
	for range n {
		all = append(all, rail.TCP("127.0.0.1:0"))
	}
	return all
}
