package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"
)

// storyTime bounds the whole story.
const storyTime = 90 * time.Second

// grains are the names that are called. They are spread over the members by their hash.
var grains = []string{"apple", "pear", "plum", "cherry", "quince", "medlar"}

// story is what has happened so far.
type story struct {
	out     io.Writer
	hosts   []string
	members []*process
	lives   map[string]string // which member each grain lives on
	free    int               // the port of the lost member
	calls   int
}

// tell runs three members, kills one, and puts another in its place.
func tell(ctx context.Context, out io.Writer) (err error) {
	ctx, done := context.WithTimeout(ctx, storyTime)
	defer done()
	s := &story{out: out, lives: make(map[string]string)}
	ports, err := freePorts(3)
	if err != nil {
		return err
	}
	for _, port := range ports {
		s.hosts = append(s.hosts, fmt.Sprintf("127.0.0.1:%d", port))
	}
	defer func() { err = errors.Join(err, s.end()) }()
	for i, name := range []string{"anna", "bert", "cleo"} {
		if err := s.spawn(ctx, name, ports[i]); err != nil {
			return err
		}
	}
	for _, step := range []func(context.Context) error{s.meet, s.callAll, s.publish, s.lose, s.replace, s.callAll} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	s.say("all is well: %d calls answered", s.calls)
	return nil
}

func (s *story) say(format string, args ...any) { fmt.Fprintf(s.out, format+"\n", args...) }

// freePorts gives ports for the members' providers. Another program might take one before they do: then the story ends.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // all at the end, so that they differ
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// spawn starts a member whose provider listens at that port.
func (s *story) spawn(ctx context.Context, name string, port int) error {
	p, err := spawn(ctx, settings{name: name, port: port, hosts: s.hosts})
	if err == nil {
		s.members = append(s.members, p)
	}
	return err
}

// meet waits until every member knows all three, and has heard from each by gossip.
func (s *story) meet(ctx context.Context) error {
	for _, p := range s.members {
		if p.address != "" {
			continue
		}
		if err := p.start(ctx); err != nil {
			return err
		}
		s.say("%s is up at %s", p.name, p.address)
	}
	for _, p := range s.members {
		if _, err := p.until(ctx, "members", "members 3 gossip 3"); err != nil {
			return err
		}
	}
	s.say("=== three members know each other")
	return nil
}

// call calls a grain from a member until it answers.
func (s *story) call(ctx context.Context, from *process, grain string) error {
	answer, err := from.until(ctx, "call "+grain, "answer ")
	if err != nil {
		return err
	}
	s.calls++
	_, s.lives[grain], _ = strings.Cut(answer, " at ")
	return nil
}

// callAll calls every grain from every member.
func (s *story) callAll(ctx context.Context) error {
	for _, p := range s.members {
		for _, g := range grains {
			if err := s.call(ctx, p, g); err != nil {
				return err
			}
		}
	}
	for _, p := range s.members {
		s.say("%s is home to %s", p.name, strings.Join(s.home(p.address), ", "))
	}
	s.say("=== each grain was called from each member")
	return nil
}

// home gives the grains that live on a member.
func (s *story) home(address string) []string {
	var list []string
	for _, g := range grains {
		if s.lives[g] == address {
			list = append(list, g)
		}
	}
	return list
}

// publish has one member publish what all have subscribed to.
func (s *story) publish(ctx context.Context) error {
	for _, p := range s.members {
		if _, err := p.until(ctx, "subscribe", "subscribed"); err != nil {
			return err
		}
	}
	if _, err := s.members[0].until(ctx, "publish the plums are ripe", "published"); err != nil {
		return err
	}
	for _, p := range s.members {
		line, err := p.line(ctx, p.heard)
		if err != nil {
			return err
		}
		s.say("%s has %s", p.name, line)
	}
	s.say("=== what one publishes all hear")
	return nil
}

// lose kills the member that is home to most grains, and calls these from the others until they answer.
func (s *story) lose(ctx context.Context) error {
	lost := 0
	for i, p := range s.members {
		if len(s.home(p.address)) > len(s.home(s.members[lost].address)) {
			lost = i
		}
	}
	p := s.members[lost]
	orphans := s.home(p.address)
	if err := p.kill(); err != nil {
		return err
	}
	s.members = slices.Delete(s.members, lost, lost+1)
	s.free = p.port
	s.say("=== %s is killed", p.name)
	killed := time.Now()
	for _, g := range orphans {
		for _, from := range s.members {
			if err := s.call(ctx, from, g); err != nil {
				return err
			}
		}
		s.say("%s answers again within %v of that", g, time.Since(killed).Round(100*time.Millisecond))
	}
	s.say("=== calls go on")
	return nil
}

// replace starts another member in the place of the lost one.
func (s *story) replace(ctx context.Context) error {
	if err := s.spawn(ctx, "dora", s.free); err != nil {
		return err
	}
	return s.meet(ctx)
}

// end lets all members leave, all at once.
func (s *story) end() error {
	errs := make([]error, len(s.members))
	var all sync.WaitGroup
	for i, p := range s.members {
		all.Go(func() { errs[i] = p.end() })
	}
	all.Wait()
	return errors.Join(errs...)
}
