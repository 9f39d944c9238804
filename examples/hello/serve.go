package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/rail"
	"railyard/rma"
)

// serve is the first terminal: a node with an actor that peers find by its name, until ctx ends.
func serve(ctx context.Context, addresses []string) (err error) {
	rails := make([]rail.Binding, 0, len(addresses))
	for _, a := range addresses {
		rails = append(rails, rail.TCP(a))
	}
	h, err := start(rails)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.end()) }()

	// The name and the node's address are all that a peer needs: actor.NewPID(address, "greeter").
	props := actor.PropsFromProducer(func() actor.Actor { return &greeter{node: h.node} })
	if _, err := h.system.Root.SpawnNamed(props, "greeter"); err != nil {
		return fmt.Errorf("no greeter: %w", err)
	}
	fmt.Printf("node %s is up; Ctrl-C ends it\n", h.node.Address())
	<-ctx.Done()
	fmt.Println("goodbye")
	return nil
}

// greeter welcomes guests. An actor takes one message at a time, so it needs no lock.
type greeter struct{ node *actors.Node }

// Receive implements actor.Actor. Nothing here knows or cares that the sender is on another machine.
func (g *greeter) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *Hello:
		fmt.Printf("%q says hello\n", m.GetName())
		answer := &Welcome{Text: "hello, " + m.GetName()}
		if err := g.lend(c, m.GetName(), answer); err != nil {
			answer.Text += "; there is no page for a letter: " + err.Error()
		}
		c.Respond(answer)
	}
}

// pageSize is the memory that a guest gets, in bytes.
const pageSize = 4096

// lend registers a page of memory for the guest, with an actor of its own to keep it.
func (g *greeter) lend(c actor.Context, guest string, answer *Welcome) error {
	// Registered memory can be written by whoever has its key, at any time, without running an actor here.
	// Nobody can guess a key, so we decide who gets it: it goes out in the answer.
	region, err := g.node.Register(make([]byte, pageSize), rma.RemoteWrite)
	if err != nil {
		return err
	}
	if answer.Key, err = region.Key().MarshalBinary(); err != nil {
		return errors.Join(err, region.Revoke())
	}
	keeper := c.Spawn(actor.PropsFromProducer(func() actor.Actor { return &page{guest: guest, region: region} }))
	answer.Page = keeper.GetId()
	return nil
}

// page keeps one guest's page until the letter is there, or the guest has taken too long.
//
// Owner: the region is this actor's from its start to its end.
type page struct {
	guest  string
	region *rma.Region
}

// writeTime is how long a guest may take to write.
const writeTime = 10 * time.Second

// Receive implements actor.Actor.
func (p *page) Receive(c actor.Context) {
	switch m := c.Message().(type) {
	case *actor.Started:
		c.SetReceiveTimeout(writeTime)
	case *Written:
		// The guest's put carried this message. It comes when every byte of the put is in place, never before.
		size := min(m.GetSize(), p.region.Len()) // a peer's word: check it
		fmt.Printf("%q writes %q\n", p.guest, p.region.Bytes()[:size])
		c.Stop(c.Self())
	case *actor.ReceiveTimeout:
		c.Stop(c.Self())
	case *actor.Stopped:
		// From here on no byte of any put lands in that memory, ever: it can be used for something else.
		if err := p.region.Revoke(); err != nil {
			c.Logger().Error("revoking a page", "error", err)
		}
	}
}
