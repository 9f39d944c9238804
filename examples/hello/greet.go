package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/rail"
	"railyard/rma"
)

// How long the server may take to be there, and to answer.
const (
	connectTime = 3 * time.Second
	answerTime  = 10 * time.Second
)

// greet is the second terminal: says hello to the server at the addresses, and writes a letter into its memory.
func greet(ctx context.Context, addresses []string, name string) (err error) {
	rails, err := cardsToward(addresses)
	if err != nil {
		return err
	}
	h, err := start(rails)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.end()) }()

	// Any one address of the server will do: it tells its others, and each pair of cards becomes a rail. Connect is here to
	// learn early that nobody answers, and for the put below. A mere Send connects by itself.
	brief, done := context.WithTimeout(ctx, connectTime)
	defer done()
	server, err := h.node.Connect(brief, addresses[0])
	if err != nil {
		return fmt.Errorf("no greeting: %w", err)
	}

	// The server's actor is a PID like any other: Send, Request, Watch and futures work as they do within one system.
	greeter := actor.NewPID(server.Address(), "greeter")
	answer, err := h.system.Root.RequestFuture(greeter, &Hello{Name: name}, answerTime).Result()
	if err != nil {
		return fmt.Errorf("no answer from %s: %w", greeter, err)
	}
	welcome, ok := answer.(*Welcome)
	if !ok {
		return fmt.Errorf("%s answers with %T: it is not our greeter", greeter, answer)
	}
	fmt.Println(welcome.GetText())

	// The key opens a page of the server's memory. Put writes there, striped over the rails; no actor runs for it.
	var key rma.Key
	if err := key.UnmarshalBinary(welcome.GetKey()); err != nil {
		return fmt.Errorf("no page for a letter: %w", err)
	}
	letter := fmt.Appendf(nil, "dear greeter, this went past your mailbox. Yours, %s", name)
	letter = letter[:min(uint64(len(letter)), key.Len())]
	keeper := actor.NewPID(server.Address(), welcome.GetPage())
	// Notify: the keeper gets this message when all bytes are there. When Put returns nil they are, and the buffer is ours again.
	// If ctx ends first the put is taken back: no byte of it will be written any more.
	ctx, done = context.WithTimeout(ctx, answerTime)
	defer done()
	if err := server.Put(ctx, key, 0, letter, rma.Notify(keeper, &Written{Size: uint64(len(letter))})); err != nil {
		return fmt.Errorf("the letter did not arrive: %w", err)
	}
	fmt.Printf("%d bytes written into the memory of %s\n", len(letter), server.Address())
	for _, r := range server.Rails() {
		fmt.Printf("rail %d: %s to %s, %s\n", r.ID, r.Local, r.Remote, r.State)
	}
	return nil
}

// cardsToward gives a rail for each of the server's addresses: from the local card that leads there, at any free
// port. (With no rails at all a node takes every usable card that it finds.)
func cardsToward(addresses []string) ([]rail.Binding, error) {
	rails := make([]rail.Binding, 0, len(addresses))
	for _, a := range addresses {
		// Connecting a UDP socket sends nothing: the system only looks up the way.
		c, err := net.Dial("udp", a)
		if err != nil {
			return nil, fmt.Errorf("no way to %q: %w", a, err)
		}
		local := c.LocalAddr().(*net.UDPAddr).AddrPort().Addr()
		if err := c.Close(); err != nil {
			return nil, fmt.Errorf("looking for the way to %s: %w", a, err)
		}
		rails = append(rails, rail.TCP(local.String()))
	}
	return rails, nil
}
