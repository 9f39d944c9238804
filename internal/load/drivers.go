package load

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"time"

	"railyard/rma"
)

const (
	// beatEvery is how often a source wakes up; what it missed it makes up for, burst messages at a time.
	beatEvery = 4 * time.Millisecond
	burst     = 32
	// fillEvery is how often something is sent for nobody, under sabotage.
	fillEvery = 10 * time.Millisecond
)

// FillerPut is the size in bytes of a put for nobody.
const FillerPut = Scratch

// nap waits. False: the driver is to end.
func nap(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// send is the driver of one pair's source.
func (s *Side) send(ctx context.Context, pair int) {
	rng := rand.New(rand.NewPCG(s.config.Seed, uint64(pair)))
	source, target := s.own(fmt.Sprintf("source-%d", pair)), s.other(fmt.Sprintf("sink-%d", pair))
	began, sent, base := s.config.Now(), uint64(0), uint64(0)
	rate := s.Pace().Messages
	for nap(ctx, beatEvery) {
		if now := s.Pace().Messages; now != rate {
			began, base, rate = s.config.Now(), sent, now
		}
		wanted := base + uint64((s.config.Now()-began).Seconds()*rate)
		for range min(wanted-min(sent, wanted), burst) {
			sent++
			m := &Numbered{Pair: uint32(pair), Sequence: sent, Padding: padding(rng)}
			m.Sum = sumOf(m)
			s.mu.Lock()
			s.counters.Sent++
			s.sent[pair] = sent
			s.mu.Unlock()
			s.system.Root.RequestWithCustomSender(target, m, source)
		}
		// What could not be sent for a while is not made up for all at once.
		if wanted > sent {
			began += time.Duration(float64(wanted-sent) / rate * float64(time.Second))
		}
	}
}

func padding(rng *rand.Rand) []byte {
	b := make([]byte, 16+rng.IntN(200))
	scribble(b, rng.Uint64())
	return b
}

// scribbles are random bytes to copy from: filling memory must not cost more than putting it.
var scribbles = sync.OnceValue(func() []byte {
	b := make([]byte, 16<<20)
	_, _ = rand.NewChaCha8([32]byte{'r', 'a', 'i', 'l'}).Read(b) // it does not fail
	return b
})

// scribble fills b with bytes that belong to seed: two seeds give, all but surely, different ones. At most 8 MiB.
func scribble(b []byte, seed uint64) {
	all := scribbles()
	copy(b, all[seed%uint64(len(all)/2):])
}

// fate is what happens to a put on its way.
type fate uint8

const (
	arrive fate = iota
	takeBack
	loseKey
)

// putter is one driver of puts.
type putter struct {
	side   *Side
	stream string
	rng    *rand.Rand
	buf    []byte
	next   time.Duration // when the pace allows the next put
}

// put is the driver of one putter.
func (s *Side) put(ctx context.Context, number int) {
	p := &putter{
		side: s, stream: fmt.Sprintf("put %d from %s", number, s.config.Name),
		rng: rand.New(rand.NewPCG(s.config.Seed, uint64(1000+number))),
		buf: make([]byte, s.config.MaxPut), next: s.config.Now(),
	}
	for {
		perByte, ok := s.interval(ctx)
		if !ok {
			return
		}
		now := s.config.Now()
		if !nap(ctx, p.next-now) {
			return
		}
		size, fate := p.choose()
		place, ok := p.place(ctx, size)
		if !ok {
			return
		}
		// A stall is not made up for all at once.
		p.next = max(p.next, now-100*time.Millisecond) + time.Duration(float64(size)*perByte)
		p.one(p.buf[:size], place, fate)
	}
}

// choose gives the size of the next put, each power of two as likely as the other, and its fate. Puts that are
// to be caught on their way are large enough to be.
func (p *putter) choose() (int, fate) {
	low, high := math.Log(minPut), math.Log(float64(p.side.config.MaxPut))
	size := int(math.Exp(low + p.rng.Float64()*(high-low)))
	luck := p.rng.Float64()
	switch c := &p.side.config; {
	case luck < c.CancelShare:
		return max(size, min(c.MaxPut, 256<<10)), takeBack
	case luck < c.CancelShare+c.RevokeShare:
		return max(size, min(c.MaxPut, 1<<20)), loseKey
	}
	return size, arrive
}

// place waits for room at the target.
func (p *putter) place(ctx context.Context, size int) (Place, bool) {
	s := p.side
	for {
		s.mu.Lock()
		place, full, ok := s.layout.Take(uint64(size))
		s.mu.Unlock()
		s.handBack(full)
		if ok {
			return place, true
		}
		if !nap(ctx, 5*time.Millisecond) {
			return Place{}, false
		}
	}
}

// one makes one put and sees it to its end.
func (p *putter) one(data []byte, place Place, fate fate) {
	s := p.side
	scribble(data, p.rng.Uint64())
	s.mu.Lock()
	s.lastPut++
	id := s.lastPut
	s.pending[id] = place
	s.counters.Puts++
	s.mu.Unlock()

	s.gaps.Wait(p.stream, s.config.Now())
	op := s.peer.StartPut(place.Key, place.Offset, data, rma.Notify(s.other("target"), &Landed{
		Put: id, Slot: place.Slot, Life: place.Life,
		Offset: place.Offset, Length: uint64(len(data)), Sum: Sum(data),
	}))
	switch fate {
	case arrive:
	case takeBack:
		time.Sleep(time.Duration(p.rng.IntN(2000)) * time.Microsecond)
		p.cancel(op)
	case loseKey:
		p.revoke(place)
	}
	<-op.Done()
	s.gaps.Progress(p.stream, s.config.Now())
	scribble(data, p.rng.Uint64()) // the source is the application's again, from this moment on
	p.ended(id, place, len(data), op.Err())
}

func (p *putter) cancel(op *rma.Op) {
	ctx, cancel := context.WithTimeout(context.Background(), p.side.config.CancelWait)
	defer cancel()
	if err := op.Cancel(ctx); err != nil && !p.side.excused(err) {
		p.side.Fault("a put could not be canceled: %v", err)
	}
}

func (p *putter) revoke(place Place) {
	s := p.side
	s.mu.Lock()
	ok := s.layout.Abandon(place.Slot, place.Life)
	s.mu.Unlock()
	if ok {
		s.system.Root.Send(s.other("target"), &Revoke{Slot: place.Slot, Life: place.Life})
	}
}

// ended counts a put's end and tells the target where it cannot know.
func (p *putter) ended(id uint64, place Place, size int, err error) {
	s := p.side
	s.mu.Lock()
	c := &s.counters
	switch {
	case err == nil:
		c.Completed++
		c.PutBytes += uint64(size)
	case errors.Is(err, rma.ErrCanceled):
		c.Canceled++
	case errors.Is(err, rma.ErrRevoked):
		c.Revoked++
	case s.excused(err):
		c.Unknown++
	default:
		c.EndpointErrors++
		s.noteLocked("put %d of %d bytes failed: %v", id, size, err)
	}
	s.mu.Unlock()
	if err == nil {
		return // settled by Checked
	}
	if errors.Is(err, rma.ErrCanceled) {
		s.system.Root.Send(s.other("target"), &TookBack{
			Put: id, Slot: place.Slot, Life: place.Life, Offset: place.Offset, Length: uint64(size),
		})
	}
	s.settle(id)
}

// fill sends for nobody.
func (s *Side) fill(ctx context.Context) {
	rng := rand.New(rand.NewPCG(s.config.Seed, 5000))
	data := make([]byte, FillerPut)
	for n := 0; nap(ctx, fillEvery); n++ {
		s.system.Root.Send(s.other(fmt.Sprintf("sink-%d", n%s.config.Pairs)), &Filler{Padding: padding(rng)})
		s.mu.Lock()
		key, ok := s.layout.Known(n)
		s.mu.Unlock()
		if !ok {
			continue
		}
		// Its outcome is nobody's business, and its key may just have been revoked; its source is.
		<-s.peer.StartPut(key, key.Len()-Scratch, data).Done()
	}
}
