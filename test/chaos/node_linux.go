package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/actors"
	"railyard/internal/load"
	"railyard/rail"
)

// This file: a node process.

// node is an actor system on the network, and the bouts that it fights.
type node struct {
	setup
	system *actor.ActorSystem
	node   *actors.Node
	log    sync.WaitGroup
	stop   context.CancelFunc

	mu     sync.Mutex
	bouts  map[string]*bout  // by peer. Owner: mu
	arenas map[string][]byte // by peer; memory is used again by later bouts. Owner: mu
	lives  uint64            // Owner: mu
	missed uint64            // Owner: mu
	strays uint64            // numbered messages that came for nobody here. Owner: mu
}

// serve is a node process: it reads its setup, then requests, until it is told to end or its director is gone.
func serve(in io.Reader, out io.Writer) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	var s setup
	if !lines.Scan() {
		return errors.New("nobody says which node this is to be")
	}
	if err := json.Unmarshal(lines.Bytes(), &s); err != nil {
		return fmt.Errorf("the setup makes no sense: %w", err)
	}
	n, err := newNode(s)
	if err != nil {
		return err
	}
	var saying sync.Mutex
	reply := json.NewEncoder(out)
	say := func(a answer) {
		saying.Lock()
		defer saying.Unlock()
		_ = reply.Encode(a) // a director that is gone closes the requests too
	}
	say(answer{Address: n.node.Address()})
	var working sync.WaitGroup
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return fmt.Errorf("a request makes no sense: %w", err)
		}
		if r.Do == doEnd {
			working.Wait()
			a := answer{ID: r.ID}
			if err := n.close(); err != nil {
				a.Error = err.Error()
			}
			say(a)
			return nil
		}
		working.Go(func() { say(n.answer(r)) })
	}
	return errors.New("the director is gone")
}

func newNode(s setup) (*node, error) {
	n := &node{setup: s, bouts: map[string]*bout{}, arenas: map[string][]byte{}}
	n.system = actor.NewActorSystem(actor.WithLoggerFactory(func(*actor.ActorSystem) *slog.Logger {
		return slog.New(slog.DiscardHandler)
	}))
	config := actors.Config{Name: s.Name, Secret: s.Secret, CancelWait: patience, SendWait: patience}
	for _, r := range s.Rails {
		config.Rails = append(config.Rails, rail.TCP(r))
	}
	var err error
	if n.node, err = actors.Start(n.system, config); err != nil {
		return nil, fmt.Errorf("node %s: %w", s.Name, err)
	}
	var ctx context.Context
	ctx, n.stop = context.WithCancel(context.Background())
	events := n.node.Events().Subscribe(ctx)
	n.log.Go(func() { n.keep(events) })
	n.system.EventStream.Subscribe(n.undelivered)
	return n, nil
}

// keep counts what happens to rails and endpoints.
func (n *node) keep(events <-chan rail.Event) {
	for e := range events {
		n.mu.Lock()
		n.missed += e.Missed
		if e.Kind == rail.RailDown {
			n.lives++
		}
		if e.Kind == rail.EndpointDown {
			for _, b := range n.bouts {
				if b.address == e.Peer && b.endpoint != nil {
					b.ended++
				}
			}
		}
		n.mu.Unlock()
	}
}

// undelivered gives each report about a message to the bout that it belongs to, and counts those that were for a predecessor.
func (n *node) undelivered(event any) {
	if dead, ok := event.(*actor.DeadLetterEvent); ok {
		if _, numbered := dead.Message.(*load.Numbered); numbered && dead.PID.GetAddress() == n.system.Address() {
			n.mu.Lock()
			n.strays++
			n.mu.Unlock()
		}
		return
	}
	u, ok := event.(*actors.MessageUndelivered)
	if !ok {
		return
	}
	m, ok := u.Message.(*load.Numbered)
	if !ok {
		return
	}
	n.mu.Lock()
	var side *load.Side
	for _, b := range n.bouts {
		if strings.HasPrefix(u.Target.GetId(), b.theirs+"-") {
			side = b.side
		}
	}
	n.mu.Unlock()
	if side != nil {
		side.Undelivered(m, u.Cause)
	}
}

func (n *node) bout(peer string) (*bout, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if b := n.bouts[peer]; b != nil {
		return b, nil
	}
	return nil, fmt.Errorf("node %s has no bout with %s", n.Name, peer)
}

func (n *node) answer(r request) answer {
	a := answer{ID: r.ID}
	var b *bout
	var err error
	switch r.Do {
	case doPrepare:
		err = n.prepare(r)
	case doMeasure:
		a.Health = measure()
		n.mu.Lock()
		a.Lives, a.Missed, a.Strays = n.lives, n.missed, n.strays
		n.mu.Unlock()
	case doMeet:
		err = n.meet(r.Address)
	case doStart, doHalt, doReport, doFinish, doOrphan, doClose:
		if b, err = n.bout(r.Peer); err == nil {
			err = n.within(b, r, &a)
		}
	default:
		err = fmt.Errorf("unknown request %q", r.Do)
	}
	if err != nil {
		a.Error = err.Error()
	}
	return a
}

// within does what is asked of a bout.
func (n *node) within(b *bout, r request, a *answer) (err error) {
	switch r.Do {
	case doStart:
		return n.start(b, r.Address)
	case doHalt:
		b.halt()
	case doFinish:
		err = b.side.Finish()
	case doOrphan:
		err = b.orphaned()
		a.Parting = b.side.Part(r.Arrived)
	}
	a.Report = b.side.Report(0, 0)
	n.mu.Lock()
	a.Ended = b.ended
	n.mu.Unlock()
	a.Told = int(b.told.Load())
	if r.Do == doClose || r.Do == doOrphan {
		n.mu.Lock()
		delete(n.bouts, r.Peer)
		n.mu.Unlock()
		err = errors.Join(err, b.close())
	}
	return err
}

// meet connects to a peer before there is a bout: so a peer learns that this is a new process.
func (n *node) meet(address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := n.node.Connect(ctx, address)
	return err
}

func (n *node) close() error {
	n.mu.Lock()
	bouts := n.bouts
	n.bouts = nil
	n.mu.Unlock()
	for _, b := range bouts {
		b.halt()
		_ = b.close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err := n.node.Shutdown(ctx)
	n.stop()
	n.log.Wait()
	n.system.Shutdown()
	return err
}
