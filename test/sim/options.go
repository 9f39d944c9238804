package main

import (
	"math/rand/v2"
	"strings"
	"time"

	"railyard/endpoint/session"
)

// Options is everything that a seed chooses before its world begins. Each is drawn by itself, so that some worlds have
// a single fault in an otherwise quiet life and others all of them at once.
type Options struct {
	Seed    uint64
	Verbose bool
	// MaxFaults ends all trouble after so many faults; 0: no bound, -1: none at all.
	MaxFaults int

	Nodes, Lanes int
	BothDial     bool
	Length       time.Duration // of the time with faults and new work
	Ending       Ending
	Return       bool // after a goodbye the two nodes begin another epoch

	// The paths.
	MinDelay, MaxDelay, Jitter time.Duration
	MinRate, MaxRate           float64
	MinBuffer, MaxBuffer       int
	ShortWrites                float64 // chance that a write takes less than there is room for
	Verbs                      float64 // chance, for each path, that its cards write into memory

	// The nodes' own time: how long a goroutine waits for its turn.
	Turn     time.Duration
	LateTurn float64 // chance of ten times that
	LateFx   float64 // chance that effects are carried out late

	Session     session.Config
	Secret      bool          // all nodes share one
	BothOpen    float64       // chance that both nodes of a pair open their first session
	OutageLimit time.Duration // how long an endpoint without a rail lives
	Uneven      bool          // the second end of a pair takes larger messages, and has a larger window
	Load        Load
	Faults      Faults
	Hasty       bool    // dialers do not wait for quiet before they say which generations they have fenced
	LanesLost   bool    // one path of each pair stays dead until everything is done
	JoinCut     float64 // chance, at each step of a join, that its connection is cut soon after
	JoinHole    float64 // chance, at each step of a join, that its path becomes a black hole one way
	Gone        float64 // chance that a node that crashed stays dead
	Zombies     float64 // chance that a killed connection's bytes still go out
	Swallow     float64 // chance that an end, once closed, answers nothing
}

// Load is the work of each end.
type Load struct {
	Every               time.Duration // mean time between two bursts of work
	Burst               int           // pieces of work in a burst, at the most
	Budget              int           // bytes of payload of each end
	Messages            int           // weights of what a piece of work is
	Large               int
	Puts                int
	Gets                int
	Flushes             int
	Targets             int
	BigPut              int // bytes of the largest put or get
	Regions             int
	RegionSize          int
	Cancel, Abandon     float64 // chance for each operation
	Fence, Notify, Evil float64
	System              float64
	RevokeEvery         time.Duration // 0: never
	Consume             time.Duration // how long a message stays in its mailbox
	Slow                float64       // chance of fifty times that
}

// Faults are the mean times between two of a kind; 0: none of it.
type Faults struct {
	Reset, HalfReset, Hole, OneWay, Slow, Freeze time.Duration
	Broken                                       time.Duration // a transport fails for a reason of its own
	Alarm                                        time.Duration // a card says that its carrier is gone, and nothing is wrong
	HoleFor, FreezeFor                           time.Duration // at the most
	Crash                                        time.Duration // a node's process dies
	Bug                                          time.Duration // an endpoint's actor fails: its epoch ends, its node lives
	Jump                                         time.Duration // a node's clock leaps
	Stuck                                        time.Duration // one connection carries nothing for a while
	HalfFrame                                    time.Duration // a connection ends in the middle of a write
	Sleep                                        time.Duration // a path swallows everything for minutes
	Replay                                       time.Duration // a stranger plays back a hello that he has recorded
}

// Features that --without can take out, for looking at a failure.
var features = map[string]func(*Options){
	"endings":  func(o *Options) { o.Ending, o.Return = Peace, false },
	"returns":  func(o *Options) { o.Return = false },
	"faults":   func(o *Options) { o.Faults = Faults{} },
	"resets":   func(o *Options) { o.Faults.Reset, o.Faults.HalfReset = 0, 0 },
	"holes":    func(o *Options) { o.Faults.Hole, o.Faults.OneWay = 0, 0 },
	"slow":     func(o *Options) { o.Faults.Slow = 0 },
	"freezes":  func(o *Options) { o.Faults.Freeze = 0 },
	"crashes":  func(o *Options) { o.Faults.Crash = 0 },
	"bugs":     func(o *Options) { o.Faults.Bug = 0 },
	"jumps":    func(o *Options) { o.Faults.Jump = 0 },
	"stuck":    func(o *Options) { o.Faults.Stuck = 0 },
	"halves":   func(o *Options) { o.Faults.HalfFrame = 0 },
	"sleeps":   func(o *Options) { o.Faults.Sleep = 0 },
	"replays":  func(o *Options) { o.Faults.Replay = 0 },
	"outages":  func(o *Options) { o.OutageLimit = outageLimit },
	"broken":   func(o *Options) { o.Faults.Broken = 0 },
	"alarms":   func(o *Options) { o.Faults.Alarm = 0 },
	"hasty":    func(o *Options) { o.Hasty = false },
	"joincuts": func(o *Options) { o.JoinCut, o.JoinHole = 0, 0 },
	"lost":     func(o *Options) { o.LanesLost = false },
	"zombies":  func(o *Options) { o.Zombies = 0 },
	"swallow":  func(o *Options) { o.Swallow = 0 },
	"lanes":    func(o *Options) { o.Lanes = 1 },
	"nodes":    func(o *Options) { o.Nodes = 2 },
	"puts":     func(o *Options) { o.Load.Puts = 0 },
	"gets":     func(o *Options) { o.Load.Gets = 0 },
	"flushes":  func(o *Options) { o.Load.Flushes = 0 },
	"messages": func(o *Options) { o.Load.Messages, o.Load.Large = 0, 0 },
	"large":    func(o *Options) { o.Load.Large = 0 },
	"notify":   func(o *Options) { o.Load.Notify = 0 },
	"fences":   func(o *Options) { o.Load.Fence = 0 },
	"cancels":  func(o *Options) { o.Load.Cancel = 0 },
	"abandons": func(o *Options) { o.Load.Abandon = 0 },
	"revokes":  func(o *Options) { o.Load.RevokeEvery = 0 },
	"evil":     func(o *Options) { o.Load.Evil = 0 },
	"latefx":   func(o *Options) { o.LateFx = 0 },
	"verbs":    func(o *Options) { o.Verbs = 0 },
	"bothdial": func(o *Options) { o.BothDial = false },
}

// without takes features out.
func (o *Options) without(list string) bool {
	for _, name := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		f := features[name]
		if f == nil {
			return false
		}
		f(o)
	}
	return true
}

// draw is the dice of the options; not the world's, so that taking a feature out changes little else.
type draw struct{ *rand.Rand }

func (d draw) chance(p float64) bool { return d.Float64() < p }

func (d draw) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(d.Int64N(int64(hi-lo+1)))
}

// pick gives one of the values.
func pick[T any](d draw, values ...T) T { return values[d.IntN(len(values))] }

// maybe gives v with probability p, else 0.
func maybe[T any](d draw, p float64, v T) T {
	var zero T
	if d.chance(p) {
		return v
	}
	return zero
}

// OptionsOf gives what a seed chooses.
func OptionsOf(seed uint64) Options {
	d := draw{rand.New(rand.NewPCG(seed, 7))}
	o := Options{
		Seed: seed, Nodes: pick(d, 2, 2, 2, 2, 3), Lanes: pick(d, 1, 2, 2, 2, 3, 4), BothDial: d.chance(0.25),
		Length:   d.between(200*time.Millisecond, 1500*time.Millisecond),
		MinDelay: pick(d, 5*time.Microsecond, 50*time.Microsecond, time.Millisecond),
		Jitter:   pick(d, 0, 20*time.Microsecond, 2*time.Millisecond),
		MinRate:  pick(d, 3e6, 2e7, 2e8), ShortWrites: pick(d, 0, 0.1, 0.9),
		MinBuffer: pick(d, 2<<10, 64<<10, 256<<10),
		Turn:      pick(d, 2*time.Microsecond, 50*time.Microsecond, time.Millisecond),
		LateTurn:  pick(d, 0, 0.02), LateFx: pick(d, 0, 0.05, 0.5),
		Uneven: d.chance(0.2), Hasty: d.chance(0.2), LanesLost: d.chance(0.3),
		JoinCut: pick(d, 0, 0, 0.1, 0.3), JoinHole: pick(d, 0, 0, 0, 0.1),
		Zombies: pick(d, 0, 0.5, 1), Swallow: pick(d, 0, 0.3),
	}
	o.MaxDelay = o.MinDelay * time.Duration(1+d.IntN(20))
	o.MaxRate = o.MinRate * (1 + 4*d.Float64())
	if o.Ending = pick(d, Peace, Peace, Peace, Peace, BreakOff, Goodbye); o.Ending != Peace {
		o.Nodes = 2
	}
	o.Session = sessionOf(d, &o)
	// A path on which the least chunk takes as long as the silence limit is no rail: what a socket holds has to
	// reach the peer several times within it.
	round := 2*(o.MaxDelay+o.Jitter) + 8*o.Turn
	o.MinBuffer = max(o.MinBuffer, int(float64(o.Session.MinChunk)*float64(round)/float64(30*time.Millisecond)))
	o.MaxBuffer = o.MinBuffer * (1 + d.IntN(16))
	o.Load = loadOf(d, &o)
	o.Faults = faultsOf(d)
	o.Verbs = pick(draw{rand.New(rand.NewPCG(seed, 23))}, 0, 0, 0, 0, 0.5, 1)
	o.Return = o.Ending == Goodbye && (draw{rand.New(rand.NewPCG(seed, 29))}).chance(0.5)
	o.Secret, o.BothOpen, o.Gone = d.chance(0.5), pick(d, 0, 0, 0.5), pick(d, 0, 0.3)
	if o.OutageLimit = outageLimit; o.Ending == Peace {
		o.OutageLimit = pick(d, outageLimit, outageLimit, 2*time.Second, 400*time.Millisecond)
	}
	return o
}

// outageLimit is the product's own.
const outageLimit = 30 * time.Second

// sessionFor gives the configuration of one end of a pair; it knows the other's limits from the handshake.
func (o *Options) sessionFor(side int) session.Config {
	limits := [2]session.Config{o.Session, o.Session}
	if o.Uneven {
		limits[1].MaxMessage, limits[1].Window = 2*o.Session.MaxMessage, 3*o.Session.Window
	}
	for i := range limits {
		limits[i], _ = limits[i].WithDefaults() // New tells of what is wrong with it
	}
	c := limits[side]
	return c
}

func sessionOf(d draw, o *Options) session.Config {
	c := session.Config{
		MaxMessage: pick(d, uint64(64<<10), 256<<10, 1<<20),
		MinChunk:   pick(d, 2<<10, 8<<10, 64<<10),
		MaxOpen:    pick(d, 4, 32, 1<<18, 1<<18),
	}
	c.MaxChunk = min(c.MinChunk*pick(d, 1, 4, 16), 1<<20)
	c.LaneBulk = c.MaxChunk * pick(d, 1, 4, 8)
	if o.MinDelay >= time.Millisecond { // one small chunk for each round trip would take for ever
		c.LaneBulk = max(c.LaneBulk, 64<<10)
	}
	c.Window = pick(d, uint64(0), c.MaxMessage*2, 16<<20)
	if c.Window == 0 {
		c.Window = 1 // as small as it may be
	}
	return c
}

func loadOf(d draw, o *Options) Load {
	l := Load{
		Burst:  pick(d, 1, 5, 5, 30, 30, 600),
		Budget: pick(d, 1<<20, 4<<20, 8<<20),
		Puts:   pick(d, 0, 3, 3, 10), Gets: pick(d, 0, 2, 5), Flushes: pick(d, 0, 1),
		Messages: pick(d, 0, 5, 5, 20), Large: pick(d, 0, 1, 3), Targets: pick(d, 1, 4, 40),
		BigPut:  pick(d, 100, 1<<10, 10<<10, 10<<10, 100<<10, 100<<10, 100<<10, 300<<10, 300<<10, 1<<20, 1<<20, 4<<20),
		Regions: pick(d, 1, 3),
		Cancel:  pick(d, 0, 0.1, 0.5), Abandon: pick(d, 0, 0.1, 0.3),
		Fence: pick(d, 0, 0.1), Notify: pick(d, 0, 0.3), Evil: pick(d, 0, 0.05, 0.4), System: pick(d, 0, 0.1),
		RevokeEvery: pick(d, 0, 50*time.Millisecond, 400*time.Millisecond),
		Consume:     pick(d, 10*time.Microsecond, 5*time.Millisecond), Slow: pick(d, 0, 0.02),
	}
	if o.Nodes > 2 {
		l.Budget /= 2
	}
	if l.Puts+l.Gets+l.Messages+l.Large == 0 {
		l.Messages, l.Puts = 1, 1
	}
	// The budget is to last for the whole time.
	all := l.Messages + l.Large + l.Puts + l.Gets
	mean := (l.Messages*1200 + l.Large*int(o.Session.MaxMessage)/2 + (l.Puts+l.Gets)*(200+l.BigPut/2)) / all
	pieces := min(l.Budget/(mean+1), pick(d, 100, 300, 600))
	l.Every = min(o.Length*time.Duration(1+l.Burst)/2/time.Duration(pieces+1), o.Length/3)
	l.RegionSize = max(64<<10, 2*l.BigPut)
	if l.BigPut > 1<<20 {
		l.Regions, l.RegionSize = 1, l.BigPut+l.BigPut/4
	}
	return l
}

func faultsOf(d draw) Faults {
	if d.chance(0.1) {
		return Faults{}
	}
	every := func(p float64) time.Duration {
		return maybe(d, p, d.between(20*time.Millisecond, 500*time.Millisecond))
	}
	return Faults{
		Reset: every(0.4), HalfReset: every(0.3), Hole: every(0.4), OneWay: every(0.3), Slow: every(0.2),
		Freeze: every(0.15), Broken: every(0.2), Alarm: every(0.2), Crash: every(0.2), Bug: every(0.15), Jump: every(0.16),
		Stuck: every(0.15), HalfFrame: every(0.2), Sleep: 2 * every(0.13), Replay: every(0.15),
		HoleFor: pick(d, 50*time.Millisecond, 500*time.Millisecond, 2*time.Second), FreezeFor: 600 * time.Millisecond,
	}
}
