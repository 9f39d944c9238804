package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/asynkron/protoactor-go/actor"

	"railyard/endpoint"
	"railyard/internal/clock"
	"railyard/internal/load"
	"railyard/rma"
)

// This file: one node's part of a bout, the time in which two nodes load each other and both live.

// bout is a side of the load, with what the node must know beside it.
type bout struct {
	node         *node
	ours, theirs string // names of the two sides
	side         *load.Side
	ledger       *os.File
	regions      []*rma.Region // that the side has registered. Owner: node.mu
	arena        []byte
	watcher      *actor.PID
	told         atomic.Int32
	running      atomic.Bool

	// Owner: node.mu.
	address  string
	endpoint *endpoint.Endpoint
	ended    int
}

// Alloc gives the memory of the earlier bouts with the same peer again: what Node.Alloc gives lives as long as the node.
func (b *bout) Alloc(size int) ([]byte, error) {
	if len(b.arena) == size {
		return b.arena, nil
	}
	var err error
	b.arena, err = b.node.node.Alloc(size)
	return b.arena, err
}

// Register remembers the region, so that it ends with the bout.
func (b *bout) Register(buf []byte, rights rma.Rights) (*rma.Region, error) {
	r, err := b.node.node.Register(buf, rights)
	if err == nil {
		b.node.mu.Lock()
		b.regions = append(b.regions, r)
		b.node.mu.Unlock()
	}
	return r, err
}

// prepare makes the side. The peer's may send from then on.
func (n *node) prepare(r request) error {
	name := func(from, to string) string { return fmt.Sprintf("%s-%s-%d", from, to, r.Bout) }
	b := &bout{node: n, ours: name(n.Name, r.Peer), theirs: name(r.Peer, n.Name)}
	var err error
	if b.ledger, err = os.OpenFile(r.Ledger, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return fmt.Errorf("no ledger for bout %d with %s: %w", r.Bout, r.Peer, err)
	}
	n.mu.Lock()
	b.arena = n.arenas[r.Peer]
	_, busy := n.bouts[r.Peer]
	n.mu.Unlock()
	if busy {
		return fmt.Errorf("the last bout with %s is not over", r.Peer)
	}
	b.side, err = load.NewSide(n.system, b, load.Config{
		Name: b.ours, OtherName: b.theirs, Pairs: actorPairs, Putters: putters, Slots: slots, SlotSize: slotSize, MaxPut: maxPut,
		MessageRate: messageRate, PutRate: n.PutRate, CancelShare: 0.03, RevokeShare: 0.01, CancelWait: patience, Watch: watch,
		Seed: n.Seed + uint64(r.Bout), Now: clock.Now, Mortal: true, Arrived: b.arrived,
	})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.bouts[r.Peer], n.arenas[r.Peer] = b, b.arena
	n.mu.Unlock()
	return nil
}

// arrived writes down how far a pair has come. The page cache outlives this process.
func (b *bout) arrived(pair int, sequence uint64) {
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], sequence)
	_, _ = b.ledger.WriteAt(word[:], int64(8*pair)) // a word too few is found as a message that is missing
}

// readLedger gives how far each pair had come; a file that is not there: nowhere.
func readLedger(name string) ([]uint64, error) {
	bytes, err := os.ReadFile(name)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("a ledger cannot be read: %w", err)
	}
	var words []uint64
	for ; len(bytes) >= 8; bytes = bytes[8:] {
		words = append(words, binary.LittleEndian.Uint64(bytes))
	}
	return words, nil
}

// start connects, watches one of the peer's actors, and lets the load begin.
func (n *node) start(b *bout, address string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	e, err := n.node.Connect(ctx, address)
	if err != nil {
		return fmt.Errorf("the nodes do not connect: %w", err)
	}
	n.mu.Lock()
	b.address, b.endpoint = e.Address(), e
	n.mu.Unlock()
	watched := actor.NewPID(e.Address(), b.theirs+"-sink-0")
	b.watcher = n.system.Root.Spawn(actor.PropsFromFunc(func(ctx actor.Context) {
		switch ctx.Message().(type) {
		case *actor.Started:
			ctx.Watch(watched)
		case *actor.Terminated:
			b.told.Add(1)
		}
	}))
	b.running.Store(true)
	return b.side.Start(e, e.Address())
}

func (b *bout) halt() {
	if b.running.Swap(false) {
		b.side.Stop()
	}
}

// orphaned sees the bout end: the endpoint, what is open, the watch.
func (b *bout) orphaned() error {
	if b.endpoint != nil {
		select {
		case <-b.endpoint.Done():
		case <-time.After(patience):
			return fmt.Errorf("the endpoint outlives its peer by %v", patience)
		}
	}
	b.halt()
	if err := b.side.Orphaned(); err != nil {
		return err
	}
	for limit := time.Now().Add(5 * time.Second); b.endpoint != nil && b.told.Load() == 0 && time.Now().Before(limit); {
		time.Sleep(10 * time.Millisecond)
	}
	time.Sleep(watch) // for what must not land, and for a second word that must not come
	return b.side.Finish()
}

// close ends the bout's actors and regions.
func (b *bout) close() error {
	if b.watcher != nil {
		_ = b.node.system.Root.StopFuture(b.watcher).Wait()
	}
	b.side.Close()
	b.node.mu.Lock()
	regions := b.regions
	b.node.mu.Unlock()
	var all []error
	for _, r := range regions {
		if err := r.Revoke(); err != nil && !errors.Is(err, rma.ErrRevoked) {
			all = append(all, err)
		}
	}
	return errors.Join(append(all, b.ledger.Close())...)
}

// measure looks at this process, at rest.
func measure() health {
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	h := health{Heap: m.HeapAlloc, Goroutines: runtime.NumGoroutine()}
	if list, err := os.ReadDir("/proc/self/fd"); err == nil {
		h.Descriptors = len(list)
	}
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseUint(fields[1], 10, 64) // 0 where it is no number
			h.Resident = pages * uint64(os.Getpagesize())
		}
	}
	return h
}
