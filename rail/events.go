package rail

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"railyard/supervision"
	"railyard/wire"
)

// EventKind says what happened.
type EventKind uint8

const (
	// RailUp: the rail took its first generation, or is out of probation.
	RailUp EventKind = iota + 1
	// RailSuspect: silent beyond its limit; takes no new work.
	RailSuspect
	// RailTrusted: a suspect rail answered before it was retired.
	RailTrusted
	// RailDown: a generation was lost. Local, Remote, Class and Cause say which card and why; InFlight how many
	// bytes moved to other rails.
	RailDown
	// RailRejoined: the rail is back with a new generation after Outage.
	RailRejoined
	// RailRetired: both ends have settled how far the lost generation had got. Rerouted of the InFlight bytes had not
	// arrived, and are first in the queue of the other rails from this moment on; Gap is how long they had stood still.
	RailRetired
	// RailGaveUp: the policy stopped the rail for the endpoint's life.
	RailGaveUp
	// RailNeverUp: a configured rail has not come up since the endpoint began; it is still being tried.
	RailNeverUp
	// EndpointUp: the first rail to a peer is up.
	EndpointUp
	// EndpointDown: the peer is gone; everything open has completed with an error.
	EndpointDown
	// MessageRefused: the peer could not take one message (unknown actor, type, or a panic there); Cause says which.
	MessageRefused
	// DeviceLink: a local card's carrier changed; Local is its name, Cause is nil when it came up.
	DeviceLink
	// DeviceWarning: a device is not used, or not as it was meant. Local and Remote name it (or the local cards), Peer for whom
	// it holds, where it does not hold for all; Cause says why, and what to do.
	DeviceWarning
	// DeviceIgnored: a card of this host carries no rail of a node that looks for its cards itself. Local is its name, Cause says
	// why, as `railyard info` does. It is said for each Peer when its endpoint begins, and for all when it changes.
	DeviceIgnored
	// DeviceJoined: a card or an address came after the start, or came back. Local is its address; peers are told.
	DeviceJoined
	// DeviceGone: a device was away for too long. Its rails end, and peers are told. Local is its address, Cause says why.
	DeviceGone
	// RailEnded: a rail is over, since one of its devices is gone or others took its place (Cause). Its number may serve again.
	RailEnded
)

var eventNames = [...]string{
	RailUp: "RailUp", RailSuspect: "RailSuspect", RailTrusted: "RailTrusted", RailDown: "RailDown",
	RailRejoined: "RailRejoined", RailRetired: "RailRetired", RailGaveUp: "RailGaveUp",
	RailNeverUp: "RailNeverUp", EndpointUp: "EndpointUp", EndpointDown: "EndpointDown",
	MessageRefused: "MessageRefused", DeviceLink: "DeviceLink", DeviceWarning: "DeviceWarning",
	DeviceIgnored: "DeviceIgnored", DeviceJoined: "DeviceJoined", DeviceGone: "DeviceGone", RailEnded: "RailEnded",
}

// String gives the constant's name.
func (k EventKind) String() string {
	if int(k) < len(eventNames) && eventNames[k] != "" {
		return eventNames[k]
	}
	return fmt.Sprintf("EventKind(%d)", uint8(k))
}

// MarshalText makes JSON and logs show the name.
func (k EventKind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// Event is one fact about rails or endpoints. Fields that a kind does not use are zero.
type Event struct {
	Kind EventKind
	// Peer names the node at the other end, Rail the rail to it, Local and Remote the rail's two devices.
	Peer          string
	Rail          wire.RailID
	Local, Remote string
	Generation    wire.Generation
	// At is the wall clock's time; Publish fills it in where it is zero.
	At time.Time
	// Cause is why; Class whose fault it was (RailDown, RailGaveUp).
	Cause error
	Class supervision.Class
	// InFlight are the bytes that were unacknowledged when the rail went down (RailDown, RailRetired).
	InFlight uint64
	// Rerouted are those of them that the peer had not got, and Gap the time from the last byte that was heard on the lost
	// rail to the moment when another one could carry them (RailRetired).
	Rerouted uint64
	Gap      time.Duration
	// Outage is how long the rail had been away (RailRejoined).
	Outage time.Duration
	// Missed counts the events that this subscriber lost just before this one because it was slow.
	Missed uint64
}

// String is one line for a log.
func (e Event) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s peer=%s rail=%d generation=%d", e.Kind, e.Peer, e.Rail, e.Generation)
	if e.Local != "" || e.Remote != "" {
		fmt.Fprintf(&b, " %s->%s", e.Local, e.Remote)
	}
	if e.Outage > 0 {
		fmt.Fprintf(&b, " outage=%s", e.Outage)
	}
	if e.Gap > 0 {
		fmt.Fprintf(&b, " gap=%s rerouted=%d", e.Gap, e.Rerouted)
	}
	if e.Cause != nil {
		fmt.Fprintf(&b, " cause=%q", e.Cause)
	}
	if e.Missed > 0 {
		fmt.Fprintf(&b, " missed=%d", e.Missed)
	}
	return b.String()
}

// subscriberRoom bounds each subscriber's queue: several bursts of every rail going down and coming back.
const subscriberRoom = 256

// Events hands facts about rails to whoever wants them. The zero value is ready to use; all methods may be
// called from any goroutine, and on nil, where they do nothing.
//
// Invariant: Publish never waits for a subscriber.
type Events struct {
	mu          sync.Mutex
	closed      bool
	subscribers map[*subscriber]struct{}
}

// subscriber is one Subscribe call. Owner: Events.mu guards the fields, and sending on or closing to.
type subscriber struct {
	to     chan Event
	missed uint64
	// unwatch releases the subscription's hold on its context.
	unwatch func() bool
}

// NewEvents gives an Events without subscribers.
func NewEvents() *Events { return &Events{} }

// Subscribe gives a channel of the events from now on, until ctx ends or Close; then it is closed. It holds 256
// events; what does not fit is counted in the next event's Missed.
func (e *Events) Subscribe(ctx context.Context) <-chan Event {
	s := &subscriber{to: make(chan Event, subscriberRoom)}
	if e == nil {
		close(s.to)
		return s.to
	}
	e.mu.Lock()
	if e.closed {
		close(s.to)
		e.mu.Unlock()
		return s.to
	}
	if e.subscribers == nil {
		e.subscribers = make(map[*subscriber]struct{})
	}
	e.subscribers[s] = struct{}{}
	s.unwatch = context.AfterFunc(ctx, func() { e.drop(s) })
	e.mu.Unlock()
	return s.to
}

func (e *Events) drop(s *subscriber) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if _, there := e.subscribers[s]; there {
		delete(e.subscribers, s)
		close(s.to)
	}
}

// Publish gives ev to every subscriber that has room for it. It never blocks.
func (e *Events) Publish(ev Event) {
	if e == nil {
		return
	}
	if ev.At.IsZero() {
		ev.At = time.Now()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.subscribers {
		ev.Missed = s.missed
		select {
		case s.to <- ev:
			s.missed = 0
		default:
			s.missed++
		}
	}
}

// Close ends all subscriptions; later ones are closed at once. Events not yet received stay readable.
func (e *Events) Close() {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closed = true
	for s := range e.subscribers {
		s.unwatch()
		close(s.to)
	}
	clear(e.subscribers)
}
