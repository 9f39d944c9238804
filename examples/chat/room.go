package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/rail"
)

// rails is how many there are from the room to each guest.
const rails = 3

// open is the first terminal: the room, and somebody in it.
func open(ctx context.Context, t *terminal, address netip.AddrPort) (err error) {
	var cables []*cable
	var bindings []rail.Binding
	for i := range rails {
		at := address
		if i > 0 && at.Port() != 0 {
			at = netip.AddrPortFrom(at.Addr(), at.Port()+uint16(i))
		}
		c, err := lay(at)
		if err != nil {
			return err
		}
		defer c.remove()
		cables = append(cables, c)
		// The node listens behind the cable, and tells peers to dial the cable.
		bindings = append(bindings, rail.TCP(c.target, rail.Advertised(c.address)))
	}
	h, err := start(t.name, bindings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.end()) }()
	pid, err := h.system.Root.SpawnNamed(actor.PropsFromProducer(func() actor.Actor {
		return &room{cables: cables, guests: make(map[string]guest)}
	}), "room")
	if err != nil {
		return err
	}
	t.print("the room is open: chat join %s NAME", cables[0].address)
	return talk(ctx, t, h, pid)
}

// room says to all what one says. It watches its guests, and so learns of those that are gone.
type room struct {
	cables []*cable
	guests map[string]guest // by their PIDs
}

type guest struct {
	pid  *actor.PID
	name string
}

// Receive implements actor.Actor.
func (r *room) Receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case hello:
		ctx.Watch(ctx.Sender())
		r.guests[ctx.Sender().String()] = guest{ctx.Sender(), m.Name}
		r.tell(ctx, line{Text: m.Name + " is here"})
	case line:
		if g, ok := r.guests[ctx.Sender().String()]; ok {
			r.tell(ctx, line{Name: g.name, Text: m.Text})
		}
	case cut:
		r.cut(ctx, m)
	case *actor.Terminated:
		if g, ok := r.guests[m.Who.String()]; ok {
			delete(r.guests, m.Who.String())
			r.tell(ctx, line{Text: g.name + " has left"})
		}
	}
}

func (r *room) tell(ctx actor.Context, l line) {
	for _, g := range r.guests {
		ctx.Send(g.pid, l)
	}
}

func (r *room) cut(ctx actor.Context, m cut) {
	name := r.guests[ctx.Sender().String()].name
	if m.Rail < 1 || m.Rail > len(r.cables) {
		ctx.Send(ctx.Sender(), line{Text: fmt.Sprintf("there are rails 1 to %d", len(r.cables))})
		return
	}
	// What is said of it goes the way that is left.
	r.cables[m.Rail-1].cut(!m.Mend)
	r.tell(ctx, line{Text: fmt.Sprintf("%s %s rail %d", name, map[bool]string{false: "cuts", true: "mends"}[m.Mend], m.Rail)})
}

// command is a line that begins with a slash. False: it is to be the last.
func (s *speaker) command(text string) bool {
	name, rest, _ := strings.Cut(text, " ")
	var n int
	switch name {
	case "/quit":
		return false
	case "/rails":
		s.showRails()
	case "/cut", "/mend":
		if _, err := fmt.Sscan(rest, &n); err != nil {
			s.terminal.print("* %s needs the number of a rail", name)
			break
		}
		s.toRoom(cut{Rail: n, Mend: name == "/mend"})
	default:
		s.terminal.print("* commands are /cut N, /mend N, /rails, /quit")
	}
	return true
}
