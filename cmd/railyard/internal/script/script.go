package script

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"railyard/cmd/railyard/internal/units"
)

// Limits of a script. They keep a typing error from becoming a run of hours.
const (
	MaxSteps = 1000
	MaxTime  = 10 * time.Minute
	MaxFlaps = 1000
)

// Action is what a step does.
type Action uint8

// The actions; Wait is the zero value, so that an empty step is harmless.
const (
	Wait Action = iota
	Cut
	Heal
	Flap
	Turn
	Slow
	Delay
	Detect
	Rejoin
)

var actions = [...]string{"wait", "cut", "heal", "flap", "turn", "slow", "delay", "detect", "rejoin"}

func (a Action) String() string {
	if int(a) < len(actions) {
		return actions[a]
	}
	return fmt.Sprintf("action %d", uint8(a))
}

// Fault is how a cable is cut.
type Fault uint8

// The faults.
const (
	NoFault Fault = iota
	Reset
	BlackHole
	OneWayToTarget
	OneWayToSource
	Refuse
)

var faults = [...]string{"none", "reset", "blackhole", "oneway to-target", "oneway to-source", "refuse"}

func (f Fault) String() string {
	if int(f) < len(faults) {
		return faults[f]
	}
	return fmt.Sprintf("fault %d", uint8(f))
}

// Rail names a cable: its number, or one of First and All.
type Rail int

// The rails that have no number.
const (
	All   Rail = -1
	First Rail = -2
)

func (r Rail) String() string {
	switch r {
	case All:
		return "all"
	case First:
		return "first"
	}
	return strconv.Itoa(int(r))
}

// Step is one command.
type Step struct {
	Line  int           // in the text, from 1 on
	Timed bool          // the step waits until At
	At    time.Duration // since the script began
	Do    Action
	Rail  Rail
	Fault Fault
	Count int           // of Flap
	Time  time.Duration // of Wait, Flap (its period), Turn (how long each rail stays cut), Delay
	Rate  float64       // of Slow, bytes per second
}

// ErrScript is wrapped by every error of Parse.
var ErrScript = errors.New("script")

// Error says which word of which line was not understood, and what would be.
type Error struct {
	Line   int
	Word   string
	Reason string
}

func (e *Error) Error() string {
	return fmt.Sprintf("script line %d, at %q: %s", e.Line, e.Word, e.Reason)
}

// Unwrap makes errors.Is(err, ErrScript) true.
func (e *Error) Unwrap() error { return ErrScript }

// Parse reads a script for a demo with so many rails. The error is an *Error.
func Parse(text string, rails int) ([]Step, error) {
	var steps []Step
	var last time.Duration
	number := 0
	for line := range strings.Lines(text) {
		number++
		line, _, _ = strings.Cut(line, "#")
		p := &parser{line: number, words: strings.Fields(line), rails: rails}
		if len(p.words) == 0 {
			continue
		}
		step, err := p.step()
		if err != nil {
			return nil, err
		}
		if step.Timed && step.At < last {
			return nil, &Error{number, step.At.String(), fmt.Sprintf("an earlier line already waits until %v", last)}
		}
		last = max(last, step.At)
		if steps = append(steps, step); len(steps) > MaxSteps {
			return nil, &Error{number, p.words[0], fmt.Sprintf("more than %d commands", MaxSteps)}
		}
	}
	if len(steps) == 0 {
		return nil, &Error{max(number, 1), "", "no command in the script"}
	}
	return steps, nil
}

// parser walks over the words of one line.
type parser struct {
	line  int
	words []string
	next  int
	rails int
}

func (p *parser) step() (Step, error) {
	s := Step{Line: p.line}
	if p.words[0] == "at" {
		p.next++
		at, err := p.time("the time of the command")
		if err != nil {
			return s, err
		}
		s.Timed, s.At = true, at
	}
	word, err := p.word("a command: " + strings.Join(actions[:], ", "))
	if err != nil {
		return s, err
	}
	action := -1
	for i, name := range actions {
		if name == word {
			action = i
		}
	}
	if action < 0 {
		return s, p.fail(word, "unknown command; there are "+strings.Join(actions[:], ", "))
	}
	s.Do = Action(action)
	if err := p.arguments(&s); err != nil {
		return s, err
	}
	if p.next < len(p.words) {
		return s, p.fail(p.words[p.next], "nothing more is expected after "+word)
	}
	return s, nil
}

func (p *parser) arguments(s *Step) (err error) {
	if s.Do != Wait && s.Do != Turn {
		if s.Rail, err = p.rail(); err != nil {
			return err
		}
	}
	switch s.Do {
	case Wait:
		s.Time, err = p.time("how long to wait")
	case Cut:
		s.Fault, err = p.fault()
	case Flap:
		err = p.flap(s)
	case Turn:
		if s.Fault, err = p.fault(); err == nil {
			s.Time, err = p.time("how long each rail stays cut")
		}
	case Slow:
		err = p.rate(s)
	case Delay:
		s.Time, err = p.time("the delay")
	case Heal, Detect, Rejoin:
	}
	return err
}

func (p *parser) word(expected string) (string, error) {
	if p.next >= len(p.words) {
		return "", p.fail(p.words[len(p.words)-1], "after it is missing "+expected)
	}
	p.next++
	return p.words[p.next-1], nil
}

func (p *parser) rail() (Rail, error) {
	word, err := p.word("a rail: its number, first or all")
	if err != nil {
		return 0, err
	}
	switch word {
	case "all":
		return All, nil
	case "first":
		return First, nil
	}
	n, err := strconv.Atoi(word)
	if err != nil {
		return 0, p.fail(word, "a rail is a number, first or all")
	}
	if n < 0 || n >= p.rails {
		return 0, p.fail(word, fmt.Sprintf("no such rail; the rails of this run are 0 to %d", p.rails-1))
	}
	return Rail(n), nil
}

func (p *parser) fault() (Fault, error) {
	word, err := p.word("a fault: reset, blackhole, oneway or refuse")
	if err != nil {
		return NoFault, err
	}
	switch word {
	case "reset":
		return Reset, nil
	case "blackhole":
		return BlackHole, nil
	case "refuse":
		return Refuse, nil
	case "oneway":
	default:
		return NoFault, p.fail(word, "unknown fault; there are reset, blackhole, oneway and refuse")
	}
	way, err := p.word("the direction that is lost: to-target or to-source")
	if err != nil {
		return NoFault, err
	}
	switch way {
	case "to-target":
		return OneWayToTarget, nil
	case "to-source":
		return OneWayToSource, nil
	}
	return NoFault, p.fail(way, "a direction is to-target or to-source")
}

func (p *parser) flap(s *Step) error {
	word, err := p.word("how often it flaps")
	if err != nil {
		return err
	}
	if s.Count, err = strconv.Atoi(word); err != nil || s.Count < 1 || s.Count > MaxFlaps {
		return p.fail(word, fmt.Sprintf("a flap's count is a number from 1 to %d", MaxFlaps))
	}
	if s.Time, err = p.time("the time from one flap to the next"); err != nil {
		return err
	}
	s.Fault = Reset
	if p.next < len(p.words) {
		s.Fault, err = p.fault()
	}
	return err
}

func (p *parser) rate(s *Step) error {
	word, err := p.word("the rate, such as 10MB/s")
	if err != nil {
		return err
	}
	if s.Rate, err = units.Rate(word); err != nil {
		return p.fail(word, err.Error())
	}
	return nil
}

func (p *parser) time(what string) (time.Duration, error) {
	word, err := p.word(what + ", such as 200ms")
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(word)
	if err != nil {
		return 0, p.fail(word, what+" must be a time such as 200ms or 1.5s")
	}
	if d < 0 || d > MaxTime {
		return 0, p.fail(word, fmt.Sprintf("%s must be between 0s and %v", what, MaxTime))
	}
	return d, nil
}

func (p *parser) fail(word, reason string) error {
	return &Error{Line: p.line, Word: word, Reason: reason}
}
