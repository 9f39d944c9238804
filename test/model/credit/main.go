package main

import (
	"os"

	"railyard/test/model/explore"
)

// Sizes of the model.
const (
	messages = 5
	window   = 2 // messages
	losses   = 2 // of the rail
	capacity = 3 // credits under way
)

type state struct {
	// The sender: messages that have been taken, room that they took, messages written and not lost, room granted.
	taken, reserved, written, granted uint8
	// The rail.
	flying  uint8 // messages
	credits [capacity]uint8
	credit  uint8 // how many
	lost    uint8
	// The receiver: messages that came, that are in a mailbox, room given back; the total said on this generation.
	came, mailbox, consumed, said uint8
	stopped                       bool
}

var design = explore.Design{
	Settings: []string{"a rail that is lost twice"},
	Mutations: []explore.Mutation{{Name: "credit-is-a-difference"}, {Name: "credit-said-once"}, {Name: "reroute-reserves-again"},
		{Name: "window-starts-anew-at-join"}, {Name: "stopped-actor-keeps-its-room"}, {Name: "sender-does-not-ask-for-room"}},
	Explore: func(_ int, mutation string, limit int) explore.Result {
		return explore.Run(explore.Space[state]{Start: state{granted: window, said: window}, Limit: limit,
			Next: func(s *state, out func(explore.Action, state)) { next(mutation, s, out) },
			Done: func(s *state) bool { return s.came == messages },
			Broken: func(s *state) string {
				if s.mailbox > window {
					return "the mailboxes hold more than the window"
				}
				return ""
			}})
	},
}

func next(mutation string, s *state, out func(explore.Action, state)) {
	sender(mutation, s, out)
	receiver(mutation, s, out)
	if s.lost == losses {
		return
	}
	// The rail is lost and comes back: the join says what had come, the rest goes again, and room is said again.
	t := *s
	t.lost++
	t.flying, t.credit, t.credits = 0, 0, [capacity]uint8{}
	t.written = t.came
	if mutation == "reroute-reserves-again" {
		t.reserved += s.written - s.came
	}
	if mutation == "window-starts-anew-at-join" {
		t.reserved = 0
	}
	if mutation != "credit-said-once" && mutation != "credit-is-a-difference" {
		t.said = window
	}
	out(explore.Do("the rail is lost and joined again"), t)
}

func sender(mutation string, s *state, out func(explore.Action, state)) {
	if s.taken < messages && (s.reserved < s.granted || mutation == "sender-does-not-ask-for-room") {
		t := *s
		t.taken++
		t.reserved++
		out(explore.Do("message %d is taken", s.taken), t)
	}
	if s.written < s.taken {
		t := *s
		t.written++
		t.flying++
		out(explore.Do("message %d is written", s.written), t)
	}
	if s.credit > 0 {
		t := *s
		if mutation == "credit-is-a-difference" {
			t.granted += t.credits[0]
		} else {
			t.granted = max(t.granted, t.credits[0])
		}
		copy(t.credits[:], t.credits[1:])
		t.credits[capacity-1] = 0
		t.credit--
		out(explore.Do("the sender hears of room: %d", s.credits[0]), t)
	}
}

func receiver(mutation string, s *state, out func(explore.Action, state)) {
	if s.flying > 0 {
		t := *s
		t.flying--
		t.came++
		t.mailbox++
		out(explore.Do("message %d comes", s.came), t)
	}
	if s.mailbox > 0 {
		t := *s
		t.mailbox--
		t.consumed++
		out(explore.Do("an actor takes a message"), t)
	}
	if s.mailbox > 0 && !s.stopped {
		t := *s
		t.stopped = true
		if mutation != "stopped-actor-keeps-its-room" {
			t.consumed += t.mailbox
		}
		t.mailbox = 0
		out(explore.Do("the actor stops with %d in its mailbox", s.mailbox), t)
	}
	if total := s.consumed + window; total > s.said && s.credit < capacity {
		t := *s
		t.credits[t.credit] = total
		if mutation == "credit-is-a-difference" {
			t.credits[t.credit] = total - s.said
		}
		t.credit++
		t.said = total
		out(explore.Do("the receiver says there is room: %d", total), t)
	}
}

func main() { os.Exit(design.Main(os.Args[1:], os.Stdout)) }
