package main

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/endpoint"
	"railyard/rma"
)

// The application works in rounds: numbered messages to several actors, whose streams may lie on different rails, and a put
// over all of them; then it asks whether everything is there.
const (
	streams  = 4
	batch    = 10      // messages a stream and round
	putSize  = 1 << 20 // bytes
	pause    = 5 * time.Millisecond
	askLimit = 20 * time.Second
)

// load is the application, and its books. Owner: the goroutine of run.
type load struct {
	left    host
	peer    *endpoint.Endpoint
	key     rma.Key // of memory on the right
	ledgers [streams]*ledger
	sent    uint64 // to each stream
	puts    uint64
	random  *rand.ChaCha8
	longest atomic.Int64 // of the rounds since longestRound was called, in ns
}

// newLoad makes memory and actors on the right, and connects the left to them.
func newLoad(ctx context.Context, left, right host) (*load, error) {
	l := &load{left: left, random: rand.NewChaCha8([32]byte{})}
	memory := make([]byte, putSize)
	region, err := right.node.Register(memory, rma.RemoteWrite)
	if err != nil {
		return nil, fmt.Errorf("no memory to put into: %w", err)
	}
	l.key = region.Key() // both nodes are in one process; else it travels in a message
	witness := func(c actor.Context) {
		if _, ok := c.Message().(*emptypb.Empty); ok {
			c.Respond(wrapperspb.UInt64(uint64(crc32.ChecksumIEEE(memory))))
		}
	}
	if _, err := right.system.Root.SpawnNamed(actor.PropsFromFunc(witness), "witness"); err != nil {
		return nil, fmt.Errorf("no witness of puts: %w", err)
	}
	for i := range l.ledgers {
		l.ledgers[i] = &ledger{missing: make(map[uint64]bool)}
		if _, err := right.system.Root.SpawnNamed(actor.PropsFromFunc(l.ledgers[i].receive), ledgerName(i)); err != nil {
			return nil, fmt.Errorf("no actor for stream %d: %w", i, err)
		}
	}
	if l.peer, err = left.node.Connect(ctx, right.node.Address()); err != nil {
		return nil, fmt.Errorf("no connection: %w", err)
	}
	return l, nil
}

func ledgerName(i int) string { return fmt.Sprint("ledger-", i) }

func (l *load) at(name string) *actor.PID { return actor.NewPID(l.peer.Address(), name) }

// run does rounds until ctx ends, and finishes the one that it is in. No error ever comes of a rail.
func (l *load) run(ctx context.Context) error {
	for ctx.Err() == nil {
		began := time.Now()
		if err := l.round(context.WithoutCancel(ctx)); err != nil {
			return err
		}
		l.longest.Store(max(l.longest.Load(), int64(time.Since(began))))
		time.Sleep(pause)
	}
	return nil
}

func (l *load) round(ctx context.Context) error {
	for range batch {
		l.sent++
		for i := range l.ledgers {
			if err := l.left.node.Send(ctx, l.at(ledgerName(i)), wrapperspb.UInt64(l.sent)); err != nil {
				return fmt.Errorf("message %d of stream %d was not sent: %w", l.sent, i, err)
			}
		}
	}
	l.puts++
	data := make([]byte, putSize)
	_, _ = l.random.Read(data) // never fails
	if err := l.peer.Put(ctx, l.key, 0, data); err != nil {
		return fmt.Errorf("put %d failed: %w", l.puts, err)
	}
	if err := l.ask("witness", uint64(crc32.ChecksumIEEE(data))); err != nil {
		return fmt.Errorf("put %d: %w", l.puts, err)
	}
	for i := range l.ledgers { // messages to one actor stay in order: it answers after all before
		if err := l.ask(ledgerName(i), l.sent); err != nil {
			return fmt.Errorf("message %d: %w", l.sent, err)
		}
	}
	return nil
}

// ask compares an actor's answer.
func (l *load) ask(name string, want uint64) error {
	answer, err := l.left.system.Root.RequestFuture(l.at(name), &emptypb.Empty{}, askLimit).Result()
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", name, err)
	}
	if got, ok := answer.(*wrapperspb.UInt64Value); !ok || got.GetValue() != want {
		return fmt.Errorf("%s has %v, not %d", name, answer, want)
	}
	return nil
}

// longestRound says for how long the application was held up at most, since it was asked last.
func (l *load) longestRound() time.Duration {
	return time.Duration(l.longest.Swap(0)).Round(time.Millisecond)
}

// verdict prints the summary of a run that has ended without an error; an error says that a promise was broken all the same.
func (l *load) verdict(out io.Writer) error {
	var lost, doubled, reordered uint64
	for _, g := range l.ledgers {
		g.mu.Lock()
		lost += uint64(len(g.missing)) + l.sent - g.last
		doubled, reordered = doubled+g.doubled, reordered+g.reordered
		g.mu.Unlock()
	}
	fmt.Fprintf(out, "\n%d messages: %d lost, %d doubled, %d reordered\n", l.sent*streams, lost, doubled, reordered)
	fmt.Fprintf(out, "%d puts of %d KiB: each found in memory as it was sent\n", l.puts, putSize>>10)
	if lost+doubled+reordered > 0 || l.puts == 0 {
		return errors.New("a promise was broken: look at the summary")
	}
	fmt.Fprintln(out, "every promise was kept")
	return nil
}

// ledger is the book of one stream, at its receiver.
type ledger struct {
	mu sync.Mutex
	// Owner: mu.
	last               uint64
	missing            map[uint64]bool // numbers below last that have not come
	doubled, reordered uint64
}

// receive is the actor.
func (g *ledger) receive(c actor.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch m := c.Message().(type) {
	case *wrapperspb.UInt64Value:
		g.take(m.GetValue())
	case *emptypb.Empty:
		c.Respond(wrapperspb.UInt64(g.last))
	}
}

func (g *ledger) take(n uint64) {
	switch {
	case n > g.last:
		for skipped := g.last + 1; skipped < n; skipped++ {
			g.missing[skipped] = true
		}
		g.last = n
	case g.missing[n]:
		delete(g.missing, n)
		g.reordered++
	default:
		g.doubled++
	}
}
