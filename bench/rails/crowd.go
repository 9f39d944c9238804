package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/bench/internal/cell"
	"railyard/rma"
)

// This file: what there is besides a load, so that one sees whether the load pays for it.

const (
	crowdRails = 2  // to each idle node
	atOnce     = 16 // idle nodes that are connected at a time
	pieceSize  = 64 // bytes of a region that nobody uses
)

// settle is how long it takes until what has just worked is idle.
const settle = 3 * time.Second

// gather starts the idle nodes of this process, and gives their addresses.
func gather(s cell.Setup) ([]string, error) {
	var all []string
	for range s.Spec.Crowd {
		h, err := start(s, crowdRails)
		if err != nil {
			return nil, fmt.Errorf("idle node %d: %w", len(all), err)
		}
		all = append(all, h.node.Address())
	}
	s.Tally.Weigh(s.Spec.Crowd * crowdRails)
	return all, nil
}

// furnish makes the regions and actors that are only there.
func (h host) furnish(s cell.Spec) error {
	if s.Regions > 0 {
		memory, err := h.node.Alloc(s.Regions * pieceSize)
		if err != nil {
			return err
		}
		for i := range s.Regions {
			if _, err := h.node.Register(memory[i*pieceSize:][:pieceSize], rma.RemoteWrite); err != nil {
				return fmt.Errorf("region %d: %w", i, err)
			}
		}
	}
	props := actor.PropsFromFunc(func(actor.Context) {})
	for i := range s.Targets {
		if _, err := h.system.Root.SpawnNamed(props, targetName(i)); err != nil {
			return fmt.Errorf("actor %d: %w", i, err)
		}
	}
	return nil
}

func targetName(i int) string { return fmt.Sprintf("target%d", i) }

// meet connects to the server's idle nodes, and sends one message to each actor that is only there.
func (d *driver) meet() error {
	s := d.setup
	message := &wrapperspb.BytesValue{Value: make([]byte, 8)}
	for i := range s.Spec.Targets {
		if err := d.host.node.Send(context.Background(), actor.NewPID(d.peer.Address(), targetName(i)), message); err != nil {
			return fmt.Errorf("the message to actor %d: %w", i, err)
		}
	}
	if len(s.Peer.Crowd) == 0 {
		return nil
	}
	s.Tally.Weigh(len(s.Peer.Crowd) * crowdRails)
	var all sync.WaitGroup
	room := make(chan struct{}, atOnce)
	for _, address := range s.Peer.Crowd {
		room <- struct{}{}
		all.Go(func() {
			defer func() { <-room }()
			if _, err := d.host.connect(address, crowdRails); err != nil {
				s.Tally.Fail(err)
			}
		})
	}
	all.Wait()
	time.Sleep(settle)
	return nil
}
