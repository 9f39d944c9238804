package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint"
	"railyard/rail"
)

// connectTime is how long a room may take to answer.
const connectTime = 5 * time.Second

// join is another terminal: somebody who goes to a room.
func join(ctx context.Context, t *terminal, address netip.AddrPort) (err error) {
	var bindings []rail.Binding
	for range rails {
		bindings = append(bindings, rail.TCP(netip.AddrPortFrom(address.Addr(), 0).String()))
	}
	h, err := start(t.name, bindings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.end()) }()
	brief, done := context.WithTimeout(ctx, connectTime)
	defer done()
	e, err := h.node.Connect(brief, address.String())
	if err != nil {
		return fmt.Errorf("there is no room at %s: %w", address, err)
	}
	return talk(ctx, t, h, actor.NewPID(e.Address(), "room"))
}

// speaker is somebody in the room: an actor that prints what the room says, and a terminal.
type speaker struct {
	terminal *terminal
	host     host
	room     *actor.PID
	self     *actor.PID
	gone     chan struct{} // closed when the room is
}

// talk lets somebody talk until the lines end, the room does, or ctx.
func talk(ctx context.Context, t *terminal, h host, room *actor.PID) error {
	s := &speaker{terminal: t, host: h, room: room, gone: make(chan struct{})}
	s.self = h.system.Root.Spawn(actor.PropsFromFunc(s.receive))
	for {
		select {
		case <-ctx.Done():
			return s.leave()
		case <-s.gone:
			return errors.New("the room is gone")
		case text, ok := <-t.in:
			switch {
			case !ok:
				return s.leave()
			case strings.HasPrefix(text, "/"):
				if !s.command(text) {
					return s.leave()
				}
			case text != "":
				s.toRoom(line{Text: text})
			}
		}
	}
}

// leave ends the actor; whoever watches it learns of that.
func (s *speaker) leave() error { return s.host.system.Root.PoisonFuture(s.self).Wait() }

func (s *speaker) toRoom(message any) {
	s.host.system.Root.RequestWithCustomSender(s.room, message, s.self)
}

func (s *speaker) receive(ctx actor.Context) {
	switch m := ctx.Message().(type) {
	case *actor.Started:
		ctx.Watch(s.room)
		ctx.Request(s.room, hello{Name: s.terminal.name})
	case line:
		if m.Name == "" {
			s.terminal.print("* %s", m.Text)
			return
		}
		s.terminal.print("%s: %s", m.Name, m.Text)
	case *actor.Terminated:
		close(s.gone)
	}
}

// showRails prints the rails to each peer.
func (s *speaker) showRails() {
	peers := []*endpoint.Endpoint{}
	if s.room.Address != s.host.node.Address() {
		ctx, done := context.WithTimeout(context.Background(), connectTime)
		defer done()
		if e, err := s.host.node.Connect(ctx, s.room.Address); err == nil {
			peers = append(peers, e)
		}
	}
	for _, e := range peers {
		for _, r := range e.Rails() {
			s.terminal.print("* rail to %s is %s", r.Remote, r.State)
		}
	}
	if len(peers) == 0 {
		s.terminal.print("* the rails are the guests': ask there")
	}
}
