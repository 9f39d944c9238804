package demo

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"railyard/admin"
	"railyard/cmd/railyard/internal/script"
	"railyard/cmd/railyard/internal/units"
	"railyard/internal/clock"
	"railyard/internal/load"
)

//go:embed panel.js
var panelScript []byte

const (
	// pageOutage is how long somebody may leave all cables cut.
	pageOutage = 10 * time.Minute
	// maxCommands wait to be carried out; maxShown cuts are shown.
	maxCommands = 16
	maxShown    = 12
	// maxPress bounds what one press may take: a flap of so long.
	maxPress = 30 * time.Second
	// The fastest load that can be asked for, of both nodes together.
	maxMessages = 20000
	maxPuts     = 400e6
)

// live is the run as the page shows it. Safe from any goroutine, and on nil, where it does nothing.
type live struct {
	commands chan script.Step
	began    time.Duration

	mu sync.Mutex
	// Owner: mu.
	cables   []liveCable
	pace     livePace
	counters load.Counters
	holes    uint64
	records  []Record // the newest last
}

// liveState is what /api/state has of it.
type liveState struct {
	Cables   []liveCable   `json:"cables"`
	Pace     livePace      `json:"pace"`
	Counters load.Counters `json:"counters"`
	// Lost are messages that later ones have overtaken: at rest there are no others.
	Lost    uint64   `json:"lost"`
	Seconds float64  `json:"seconds"`
	Records []Record `json:"records"`
}

type liveCable struct {
	Rail    int    `json:"rail"`
	Address string `json:"address"`
	Target  string `json:"target"`
	// Fault is how it is cut; empty: it is whole.
	Fault string `json:"fault"`
	// Slow is its limit in bytes a second, Delay what each byte takes longer; 0: none.
	Slow    float64 `json:"slow_bytes_per_s"`
	DelayMs float64 `json:"delay_ms"`
}

// livePace is the load of both nodes together: messages and bytes a second.
type livePace struct {
	Messages float64 `json:"messages_per_s"`
	Puts     float64 `json:"puts_bytes_per_s"`
	// MaxMessages and MaxPuts are the most that can be asked for.
	MaxMessages float64 `json:"max_messages_per_s"`
	MaxPuts     float64 `json:"max_puts_bytes_per_s"`
}

// direct shows the run on a page, and does what is asked for there, until ctx ends. Nil: it was stopped in order.
func (r *run) direct(ctx context.Context) error {
	r.live.begin(r)
	page, err := admin.Start(admin.Config{
		Address: r.options.Page, Look: r.a.node.Snapshot, Events: r.a.node.Events(),
		Panels: []admin.Panel{{Name: "demo", Script: panelScript, State: r.live.state, Act: r.act}},
	})
	if err != nil {
		return fmt.Errorf("the demo's page: %w", err)
	}
	defer page.Close()
	r.printer.announce(page.URL())
	if r.options.Browse != nil {
		r.options.Browse(page.URL())
	}
	for {
		select {
		case step := <-r.live.commands:
			if err := r.stage.step(ctx, step); err != nil && ctx.Err() == nil {
				return err
			}
			r.live.did(step, r.stage.rails(step.Rail))
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errGone) {
				return errGone
			}
			return nil
		}
	}
}

func newLive() *live { return &live{commands: make(chan script.Step, maxCommands)} }

// begin takes over what the run has set up.
func (l *live) begin(r *run) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began = r.began
	l.pace = livePace{float64(2*r.options.Pairs) * messageRate, 2 * putRate, maxMessages, maxPuts}
	for i, c := range r.cables {
		l.cables = append(l.cables, liveCable{Rail: i, Address: c.Addr(), Target: r.targets[i]})
	}
}

// act takes a command from the page: a line of a script, or "pace MESSAGES RATE".
func (r *run) act(ctx context.Context, command string) error {
	if words := strings.Fields(command); len(words) > 0 && words[0] == "pace" {
		return r.setPace(ctx, words[1:])
	}
	steps, err := script.Parse(command, len(r.cables))
	if err != nil {
		return fmt.Errorf("from the page: %w", err)
	}
	for _, step := range steps {
		if err := pressable(step); err != nil {
			return err
		}
		select {
		case r.live.commands <- step:
		default:
			return errors.New("too many presses at once: wait until the earlier ones are done")
		}
	}
	return nil
}

// pressable tells whether a step may come from the page: nothing that holds up what comes behind it for long.
func pressable(step script.Step) error {
	switch {
	case step.Do == script.Cut, step.Do == script.Heal, step.Do == script.Slow, step.Do == script.Delay:
	case step.Do == script.Flap && time.Duration(step.Count)*step.Time <= maxPress:
	default:
		return fmt.Errorf("%v is for scripts; a page may cut, heal, slow, delay, and flap for up to %v", step.Do, maxPress)
	}
	return nil
}

// setPace changes the load of both nodes.
func (r *run) setPace(ctx context.Context, words []string) error {
	if len(words) != 2 {
		return errors.New("a pace is two words: messages a second, and a rate such as 90MB/s")
	}
	var messages float64
	if _, err := fmt.Sscanf(words[0], "%g", &messages); err != nil || !(messages >= 0 && messages <= maxMessages) {
		return fmt.Errorf("messages a second: %q is no number from 0 to %d", words[0], maxMessages)
	}
	puts := 0.0
	if words[1] != "0" {
		var err error
		if puts, err = units.Rate(words[1]); err != nil {
			return fmt.Errorf("rate of puts: %w", err)
		}
	}
	if puts > maxPuts {
		return fmt.Errorf("rate of puts: at most %.0f MB/s", maxPuts/1e6)
	}
	pace := load.Pace{Messages: messages / float64(2*r.options.Pairs), Puts: puts / 2}
	if _, err := r.b.ask(ctx, request{Do: doPace, Pace: pace}); err != nil {
		return fmt.Errorf("node b does not change its pace: %w", err)
	}
	r.a.side.SetPace(pace)
	r.live.mu.Lock()
	defer r.live.mu.Unlock()
	r.live.pace.Messages, r.live.pace.Puts = messages, puts
	return nil
}

// did notes what a step has made of its cables.
func (l *live) did(step script.Step, rails []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, i := range rails {
		c := &l.cables[i]
		switch step.Do {
		case script.Cut:
			c.Fault = step.Fault.String()
		case script.Heal:
			c.Fault, c.Slow, c.DelayMs = "", 0, 0
		case script.Flap:
			c.Fault = ""
		case script.Slow:
			c.Slow = step.Rate
		case script.Delay:
			c.DelayMs = float64(step.Time.Microseconds()) / 1000
		default: // nothing that a cable shows
		}
	}
}

// see takes over what the two halves have counted.
func (l *live) see(c load.Counters, holes uint64) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.counters, l.holes = c, holes
}

// add shows a complete cut.
func (l *live) add(r Record) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.records) == maxShown {
		l.records = l.records[:copy(l.records, l.records[1:])]
	}
	l.records = append(l.records, r)
}

// state is what the page shows.
func (l *live) state() any {
	l.mu.Lock()
	defer l.mu.Unlock()
	return liveState{
		Cables: append([]liveCable{}, l.cables...), Pace: l.pace, Counters: l.counters, Lost: l.holes,
		Seconds: (clock.Now() - l.began).Seconds(), Records: append([]Record{}, l.records...),
	}
}
