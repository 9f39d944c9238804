package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"railyard/test/lab"
)

// This file: the director, who plays the scripts.

// director runs the show.
type director struct {
	options
	lab    *lab.Lab
	dir    string // for ledgers
	secret []byte
	out    io.Writer // tells a human what happens
	nodes  []*actorNode
	pairs  []*pair

	mu    sync.Mutex
	books books // Owner: mu
}

// actorNode is a node through all its lives.
type actorNode struct {
	number int
	name   string
	remote *remote // nil: dead. Owner: whoever plays the script
	strays uint64  // of this life that the books know
}

// pair is two nodes that talk. Owner: whoever plays the script; while it is mourned, the mourner.
type pair struct {
	nodes  [2]*actorNode
	number int // of the bout
	// mourned is there while a survivor sees a bout end.
	mourned chan struct{}
}

func (p *pair) String() string {
	return fmt.Sprintf("bout %d of %s and %s", p.number, p.nodes[0].name, p.nodes[1].name)
}

const firstPort = 7400

// shyLives: each so-many-th life that begins does not call its peers.
const shyLives = 4

// settleWait bounds how long the load may take to come to rest when all is healed.
const settleWait = patience

func (d *director) run(ctx context.Context) (err error) {
	if d.lab, err = lab.New(lab.Options{Rails: d.rails, Rates: []int64{railRate}, Delay: d.delay}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.lab.Close()) }()
	d.secret = make([]byte, 32)
	_, _ = rand.Read(d.secret) // it does not fail
	for i := range d.options.nodes {
		n := &actorNode{number: i, name: fmt.Sprintf("n%d", i)}
		d.nodes = append(d.nodes, n)
		if err := d.bear(ctx, n); err != nil {
			return err
		}
	}
	for _, p := range pairsOf(d.options.nodes) {
		d.pairs = append(d.pairs, &pair{nodes: [2]*actorNode{d.nodes[p[0]], d.nodes[p[1]]}})
	}
	began := time.Now()
	for round := 0; round == 0 || time.Since(began) < d.time; round++ {
		if err := d.round(ctx, round); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		d.books.Rounds++
	}
	d.books.Time = time.Since(began)
	d.books.silence()
	for _, n := range d.nodes {
		if err := n.remote.end(ctx); err != nil {
			d.books.fail("%s does not end in order: %v", n.name, err)
		}
		if err := flat(d.books.Health[n.name]); err != nil {
			d.books.fail("%s: %v", n.name, err)
		}
	}
	return nil
}

// bear starts a node's process. A card may just have no address: then it is tried again.
func (d *director) bear(ctx context.Context, n *actorNode) error {
	s := setup{Name: n.name, Secret: d.secret, Seed: d.seed*1000 + uint64(n.number),
		PutRate: d.rate / float64(2*len(pairsOf(d.options.nodes)))}
	side := lab.Side(n.number % 2)
	for i := range d.rails {
		s.Rails = append(s.Rails, fmt.Sprintf("%s:%d", d.lab.Address(side, i), firstPort+n.number))
	}
	for limit := time.Now().Add(patience); ; {
		r, err := startRemote(ctx, d.lab, side, s)
		if err == nil {
			n.remote, n.strays = r, 0
			d.mu.Lock()
			d.books.Health[n.name] = nil
			d.mu.Unlock()
			return nil
		}
		if ctx.Err() != nil || time.Now().After(limit) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// round plays one script, and then lets everything come to rest.
func (d *director) round(ctx context.Context, number int) error {
	for _, p := range d.pairs {
		if err := d.engage(ctx, p); err != nil {
			return err
		}
	}
	if err := d.play(ctx, scriptOf(d.seed, number, d.world(), d.roundTime)); err != nil {
		return err
	}
	for i := range d.rails {
		if _, err := d.lab.Heal(i); err != nil {
			return err
		}
	}
	return d.rest(ctx)
}

func (d *director) play(ctx context.Context, acts []act) (err error) {
	var back sync.WaitGroup // nodes that come back into their bouts
	var failed error        // Owner: what runs in back
	defer func() {
		back.Wait()
		err = errors.Join(err, failed)
	}()
	began := time.Now()
	for _, a := range append(acts, act{at: d.roundTime}) {
		if err := pause(ctx, a.at-time.Since(began)); err != nil {
			return err
		}
		if a.do == 0 {
			return nil
		}
		d.tell("%s", a)
		switch a.do {
		case cutRail:
			d.books.Cuts++
			d.books.ByKind[a.cut.Kind.String()]++
			_, err = d.lab.Cut(a.rail, a.cut)
		case healRail:
			_, err = d.lab.Heal(a.rail)
		case stopNode:
			d.books.Stops++
			err = d.nodes[a.node].remote.process.Suspend()
		case wakeNode:
			err = d.nodes[a.node].remote.process.Resume()
		case killNode:
			d.books.Kills++
			d.kill(ctx, d.nodes[a.node])
		case bearNode:
			back.Go(func() { failed = d.back(ctx, d.nodes[a.node]) })
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
	}
	return nil
}

// kill kills a node, and lets its peers mourn.
func (d *director) kill(ctx context.Context, n *actorNode) {
	n.remote.kill()
	n.remote = nil
	for _, p := range d.pairs {
		for k, survivor := range p.nodes {
			if p.nodes[1-k] != n {
				continue
			}
			p.mourned = make(chan struct{})
			go func() {
				defer close(p.mourned)
				d.mourn(ctx, p, survivor, n)
			}()
		}
	}
}

// mourn sees a bout end at the survivor.
func (d *director) mourn(ctx context.Context, p *pair, survivor, dead *actorNode) {
	arrived, err := readLedger(d.ledger(dead, survivor, p.number))
	var a answer
	if err == nil {
		a, err = survivor.remote.ask(ctx, request{Do: doOrphan, Peer: dead.name, Arrived: arrived})
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err != nil {
		d.books.fail("%s: the survivor %s: %v", p, survivor.name, err)
		return
	}
	d.books.orphan(p.String(), ending{survivor.name, a})
}

// back starts a killed node again, and its bouts.
func (d *director) back(ctx context.Context, n *actorNode) error {
	if err := d.bear(ctx, n); err != nil {
		return err
	}
	for _, p := range d.pairs {
		if p.mourned == nil {
			continue
		}
		// As a restarted program does, it calls its peers; in some lives it does not, and the survivors wait for OutageLimit.
		if d.books.Kills%shyLives != 0 {
			if _, err := n.remote.ask(ctx, request{Do: doMeet, Address: p.other(n).remote.address}); err != nil {
				return err
			}
		}
		<-p.mourned
		p.mourned = nil
		if err := d.engage(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

func (d *director) ledger(at, from *actorNode, bout int) string {
	return filepath.Join(d.dir, fmt.Sprintf("%s-%s-%d", at.name, from.name, bout))
}

// both asks both nodes of a pair the same, and waits for both.
func (d *director) both(ctx context.Context, p *pair, ask func(me, peer *actorNode) request) (ends [2]ending, err error) {
	var asking sync.WaitGroup
	var errs [2]error
	for k, n := range p.nodes {
		asking.Go(func() {
			peer := p.nodes[1-k]
			q := ask(n, peer)
			q.Peer = peer.name
			ends[k].who = n.name
			if ends[k].answer, errs[k] = n.remote.ask(ctx, q); errs[k] != nil {
				errs[k] = fmt.Errorf("%s, %s: %w", p, n.name, errs[k])
			}
		})
	}
	asking.Wait()
	return ends, errors.Join(errs[:]...)
}

// engage begins a pair's next bout.
func (d *director) engage(ctx context.Context, p *pair) error {
	p.number++
	_, err := d.both(ctx, p, func(me, peer *actorNode) request {
		return request{Do: doPrepare, Bout: p.number, Ledger: d.ledger(me, peer, p.number)}
	})
	if err == nil {
		_, err = d.both(ctx, p, func(_, peer *actorNode) request { return request{Do: doStart, Address: peer.remote.address} })
	}
	return err
}

// rest ends all bouts, and measures.
func (d *director) rest(ctx context.Context) error {
	for _, p := range d.pairs {
		if _, err := d.both(ctx, p, func(_, _ *actorNode) request { return request{Do: doHalt} }); err != nil {
			return err
		}
	}
	for _, p := range d.pairs {
		if err := d.disengage(ctx, p); err != nil {
			return err
		}
	}
	for _, n := range d.nodes {
		a, err := n.remote.ask(ctx, request{Do: doMeasure})
		if err != nil {
			return err
		}
		d.books.Health[n.name] = append(d.books.Health[n.name], a.Health)
		d.tell("%s: %d MiB of heap, %d MiB resident, %d descriptors, %d goroutines, %d lives of rails lost", n.name, a.Health.Heap>>20,
			a.Health.Resident>>20, a.Health.Descriptors, a.Health.Goroutines, a.Lives)
		d.books.Strays += a.Strays - n.strays
		n.strays = a.Strays
		if a.Missed > 0 {
			d.books.fail("%s: its log lost %d events", n.name, a.Missed)
		}
	}
	return nil
}

// disengage ends a bout that both live through, when it has come to rest.
func (d *director) disengage(ctx context.Context, p *pair) error {
	for limit := time.Now().Add(settleWait); ; {
		ends, err := d.both(ctx, p, func(_, _ *actorNode) request { return request{Do: doReport} })
		if err != nil {
			return err
		}
		sum := ends[0].Report.Counters.Add(ends[1].Report.Counters)
		if ends[0].Report.Pending+ends[1].Report.Pending == 0 && sum.Lost() == 0 || time.Now().After(limit) {
			break
		}
		if err := pause(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	ends, err := d.both(ctx, p, func(_, _ *actorNode) request { return request{Do: doFinish} })
	if err != nil {
		return err
	}
	if _, err := d.both(ctx, p, func(_, _ *actorNode) request { return request{Do: doClose} }); err != nil {
		return err
	}
	for _, n := range p.nodes {
		_ = os.Remove(d.ledger(n, p.other(n), p.number))
	}
	d.books.clean(p.String(), ends)
	return nil
}

func (p *pair) other(n *actorNode) *actorNode {
	if p.nodes[0] == n {
		return p.nodes[1]
	}
	return p.nodes[0]
}

func (d *director) tell(format string, args ...any) {
	if d.verbose {
		fmt.Fprintf(d.out, format+"\n", args...)
	}
}

func pause(ctx context.Context, t time.Duration) error {
	timer := time.NewTimer(max(t, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stopped: %w", context.Cause(ctx))
	}
}
