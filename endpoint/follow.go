package endpoint

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"railyard/rail"
)

// This file decides what is to be done when the host's cards have changed. It is pure.

// presence is what is known of a device in use.
type presence struct {
	// asked is the binding as it was chosen, before the system gave it a port.
	asked rail.Binding
	// fixed: the configuration names its address. It is kept however long it is away.
	fixed bool
	// seen: the host was seen to have it. An address that the host does not list, though it can be listened at, is never away.
	seen bool
	// away is why it is not there, since when; nil: it is.
	away  error
	since time.Duration
}

// situation is the host as it was seen.
type situation struct {
	wanted []rail.Binding
	// lacks says why the host does not have a device; nil: it has.
	lacks func(rail.Binding) error
}

// moves are what is to be done; the numbers are places.
type moves struct {
	open             []rail.Binding
	lost, back, gone []int
	// next is how long until a device that is away is gone for good; 0: none is.
	next time.Duration
}

// errUnwanted: the card is there, and has the address, but another one is used, or none.
var errUnwanted = errors.New("the node uses another address of its card, or none")

// judgeCards compares the devices in use with what is wanted. It notes in each whether it is away; patience is how long it may be.
func judgeCards(now, patience time.Duration, have []*presence, s situation) (m moves) {
	for i, h := range have {
		why := missing(h, s)
		switch {
		case why == nil && h.away != nil:
			h.away = nil
			m.back = append(m.back, i)
		case why != nil && h.away == nil:
			h.away, h.since = errAway(why, patience, h.fixed), now
			m.lost = append(m.lost, i)
		}
		h.seen = h.seen || lacks(h, s.lacks) == nil
		if h.away == nil || h.fixed {
			continue
		}
		left := h.since + patience - now
		switch {
		case left <= 0:
			m.gone = append(m.gone, i)
		case m.next == 0 || left < m.next:
			m.next = left
		}
	}
	for _, b := range s.wanted {
		if !slices.ContainsFunc(have, func(h *presence) bool { return same(h.asked, b) }) {
			m.open = append(m.open, b)
		}
	}
	return m
}

func same(a, b rail.Binding) bool { return a.Kind == b.Kind && a.String() == b.String() }

// missing says why a device is not there; nil: it is.
func missing(h *presence, s situation) error {
	why := lacks(h, s.lacks)
	switch {
	case h.fixed && !h.seen:
		return nil
	case h.fixed:
		return why
	case slices.ContainsFunc(s.wanted, func(b rail.Binding) bool { return same(h.asked, b) }):
		return nil
	case why == nil:
		return errUnwanted
	}
	return why
}

// lacks says why the host does not have a device. One that is fixed is an address, whatever card has it.
func lacks(h *presence, lacks func(rail.Binding) error) error {
	b := h.asked
	if h.fixed {
		b.Name = ""
	}
	return lacks(b)
}

func errAway(why error, patience time.Duration, fixed bool) error {
	if fixed {
		return fmt.Errorf("the device is away: %w; its rails are tried until it is back", why)
	}
	return fmt.Errorf("the device is away: %w; its rails end unless it is back within %s", why, patience)
}
