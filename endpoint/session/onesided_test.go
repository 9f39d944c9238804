package session

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"railyard/rma"
	"railyard/wire"
)

// table is both ends of a session whose lanes are worked by hand: the first lanes are one-sided, each with a card that keeps
// what was posted until the test lets it go on.
type table struct {
	t       *testing.T
	now     time.Duration
	s       [2]*Session
	gens    map[wire.RailID]*[2]*Generation
	regions *rma.Table
	region  *rma.Region
	posted  map[*Generation][]rma.Place
	wanted  []Effect
	unmaps  []*rma.Mapping
	ends    map[*Op][]error
	killed  []*Generation
	keys    uint32
	revoked int         // registrations that were taken back
	stopped *Generation // what it writes goes nowhere
}

func newHandTable(t *testing.T, oneSided, streams int) *table {
	t.Helper()
	h := &table{t: t, now: time.Second, regions: newTable(), gens: make(map[wire.RailID]*[2]*Generation),
		posted: make(map[*Generation][]rma.Place), ends: make(map[*Op][]error)}
	var err error
	h.region, err = h.regions.Register(make([]byte, 1<<20), rma.RemoteWrite)
	require.NoError(t, err)
	for i, regions := range []*rma.Table{newTable(), h.regions} {
		h.s[i], err = New(Config{Opener: i == 0, MinChunk: 64 << 10, MaxChunk: 64 << 10}, regions)
		require.NoError(t, err)
	}
	for k := range oneSided + streams {
		pair := new([2]*Generation)
		for i := range pair {
			if lane := h.s[i].Lane(wire.RailID(k)); k < oneSided {
				pair[i] = lane.AttachOneSided(h.now, 3, nil)
			} else {
				pair[i] = lane.Attach(h.now, 3, nil)
			}
		}
		h.gens[wire.RailID(k)] = pair
	}
	h.settle()
	return h
}

// settle carries out all effects but those that tests answer themselves, and moves the streams until they are silent.
func (h *table) settle() {
	for range 1000 {
		moved := false
		for i := range h.s {
			h.carryOut(i)
			for k := range len(h.gens) {
				moved = h.move(i, h.gens[wire.RailID(k)]) || moved
			}
		}
		if !moved && !h.s[0].HasEffects() && !h.s[1].HasEffects() {
			return
		}
	}
	h.t.Fatal("the sessions never come to rest")
}

func (h *table) carryOut(i int) {
	for _, fx := range h.s[i].Effects(nil) {
		switch fx.Kind {
		case Offered:
			h.s[i].Accept(h.now, fx.Gen, fx.Op)
		case Completed:
			h.ends[fx.Op] = append(h.ends[fx.Op], fx.Err)
		case MapWanted:
			h.wanted = append(h.wanted, fx)
		case Unmap:
			h.unmaps = append(h.unmaps, fx.Mapping)
			fx.Mapping.Release()
		case Killed:
			h.killed = append(h.killed, fx.Gen)
		default:
		}
	}
}

// move carries one plan over. A cut lane carries nothing.
func (h *table) move(i int, pair *[2]*Generation) bool {
	h.now += time.Microsecond
	from, to := pair[i], pair[1-i]
	var plan rma.Gather
	if !from.token || from.fenced || to.fenced || !from.Fill(h.now, &plan) {
		return false
	}
	h.posted[from] = append(h.posted[from], slices.Clone(plan.Places)...)
	bytes := slices.Concat(plan.Bufs...)
	require.NoError(h.t, from.Wrote(h.now, &plan, len(bytes)))
	if from != h.stopped {
		h.arrive(to, bytes)
	}
	return true
}

func (h *table) arrive(to *Generation, bytes []byte) {
	for len(bytes) > 0 {
		var sc rma.Scatter
		require.NoError(h.t, to.Want(h.now, &sc))
		n := copy(sc.First, bytes)
		n += copy(sc.Then, bytes[n:])
		_, err := to.Got(h.now, &sc, n)
		require.NoError(h.t, err)
		bytes = bytes[n:]
	}
}

// register answers the oldest question for a key.
func (h *table) register() bool {
	fx := h.wanted[0]
	r := Registration{Region: fx.Region, Address: 1 << 20}
	h.keys++
	r.Key = h.keys
	r.Mapping, r.Err = fx.Region.Map(func([]byte) (func(), error) { return func() { h.revoked++ }, nil })
	if fx.Gen.Mapped(h.now, r) {
		r.Mapping.Release()
		return true
	}
	h.wanted = h.wanted[1:]
	h.settle()
	return false
}

func (h *table) put(n int, change func(*Op)) *Op {
	key := h.region.Key()
	o := &Op{Kind: Put, Region: key.Region(), Token: key.Token(), Data: make([]byte, n)}
	if change != nil {
		change(o)
	}
	h.s[0].Start(h.now, o)
	h.settle()
	return o
}

// ended gives how the operation ended, which it must have, once.
func (h *table) ended(o *Op) error {
	h.t.Helper()
	h.settle()
	require.Len(h.t, h.ends[o], 1, "ends of operation %d", o.ID)
	return h.ends[o][0]
}

func (h *table) open(o *Op, why string) {
	h.t.Helper()
	h.settle()
	require.Empty(h.t, h.ends[o], why)
}

func TestAPutWaitsForItsKeyAndItsCard(t *testing.T) {
	h := newHandTable(t, 1, 0)
	g := h.gens[0][0]
	o := h.put(130<<10, func(o *Op) { o.Offset = 4096 })
	require.Len(t, h.wanted, 1, "one question for one region")
	require.Empty(t, h.posted[g], "no place goes without a key")
	require.False(t, h.register())
	places := h.posted[g]
	require.Len(t, places, 3)
	require.Equal(t, uint64(1<<20+4096), places[0].Address)
	require.Equal(t, uint64(1<<20+4096+64<<10), places[1].Address)
	require.Len(t, places[2].Source, 2<<10)
	require.Zero(t, g.acked-g.sent, "the peer has counted them")
	h.open(o, "a card may still read its source")
	require.NoError(t, g.Placed(h.now, 2))
	h.open(o, "one place is open")
	require.NoError(t, g.Placed(h.now, 1))
	require.NoError(t, h.ended(o))

	h.put(64<<10, nil)
	require.Empty(t, h.wanted, "the key is known")
	require.Error(t, g.Placed(h.now, 2), "only one place is open")
	require.Error(t, g.Placed(h.now, -1))
}

func TestWhatAClaimIsRefusedFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Op)
		want   error
	}{
		"token":    {func(o *Op) { o.Token[3] ^= 1 }, rma.ErrUnknownRegion},
		"region":   {func(o *Op) { o.Region += 7 }, rma.ErrUnknownRegion},
		"bounds":   {func(o *Op) { o.Offset = 1<<20 - 1 }, rma.ErrBounds},
		"overflow": {func(o *Op) { o.Offset = 1<<64 - 1 }, rma.ErrBounds},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHandTable(t, 1, 0)
			o := h.put(64<<10, c.change)
			for len(h.wanted) > 0 {
				h.register()
			}
			require.ErrorIs(t, h.ended(o), c.want)
			require.Empty(t, h.posted[h.gens[0][0]], "the card would only break the queue pair")
			require.False(t, h.gens[0][0].Fenced())
		})
	}
	t.Run("revoked before it is asked", func(t *testing.T) {
		h := newHandTable(t, 1, 0)
		require.NoError(t, h.region.Revoke())
		require.ErrorIs(t, h.ended(h.put(64<<10, nil)), rma.ErrRevoked)
	})
	t.Run("revoked while it is registered", func(t *testing.T) {
		h := newHandTable(t, 1, 0)
		o := h.put(64<<10, nil)
		require.NoError(t, h.region.Revoke())
		h.register()
		require.ErrorIs(t, h.ended(o), rma.ErrRevoked)
	})
	t.Run("revoked when its places have been counted by nobody", func(t *testing.T) {
		h := newHandTable(t, 1, 0)
		first := h.put(64<<10, nil)
		h.register()
		require.NoError(t, h.gens[0][0].Placed(h.now, 1))
		require.NoError(t, h.ended(first))
		require.NoError(t, h.region.Revoke())
		require.Equal(t, 1, h.revoked, "the registration goes with the revoke")
		o := h.put(64<<10, nil)
		h.open(o, "its card has not said what became of the place")
		require.NoError(t, h.gens[0][0].Placed(h.now, 1))
		require.ErrorIs(t, h.ended(o), rma.ErrRevoked)
	})
}

func TestARegionWithoutRoomOnTheCardGoesByFrames(t *testing.T) {
	h := newHandTable(t, 1, 0)
	o := h.put(100<<10, nil)
	fx := h.wanted[0]
	require.False(t, fx.Gen.Mapped(h.now, Registration{Region: fx.Region, Err: errors.New("full")}))
	require.NoError(t, h.ended(o))
	require.Empty(t, h.posted[h.gens[0][0]])
}

func TestSmallPutsAskForNothing(t *testing.T) {
	h := newHandTable(t, 1, 0)
	require.NoError(t, h.ended(h.put(smallOp, nil)))
	require.NoError(t, h.ended(h.put(0, nil)))
	require.Empty(t, h.wanted)
}

// heldPut is a put whose places are with the card and not complete.
func heldPut(t *testing.T, oneSided, streams int) (*table, *Op, *Generation) {
	t.Helper()
	h := newHandTable(t, oneSided, streams)
	key := h.region.Key()
	o := &Op{Kind: Put, Region: key.Region(), Token: key.Token(), Data: make([]byte, 64<<10)}
	g := h.gens[0][0]
	h.s[0].Start(h.now, o)
	h.settle()
	for len(h.wanted) > 0 {
		h.register()
	}
	for k := range oneSided {
		if len(h.posted[h.gens[wire.RailID(k)][0]]) > 0 {
			g = h.gens[wire.RailID(k)][0]
		}
	}
	require.Len(t, h.posted[g], 1)
	return h, o, g
}

func TestAbandonCutsTheCardOff(t *testing.T) {
	h, o, g := heldPut(t, 1, 0)
	h.s[0].Cancel(h.now, o)
	h.s[0].Abandon(h.now, o)
	h.settle()
	require.True(t, g.Fenced())
	require.Contains(t, h.killed, g)
	h.open(o, "the card may still read its source")
	require.False(t, g.IsQuiet())
	g.Drained(h.now)
	require.NoError(t, h.ended(o), "the peer had counted it")
	require.True(t, g.IsQuiet())
	g.Drained(h.now)
}

func TestQuietOnlyOnceDrained(t *testing.T) {
	h, o, g := heldPut(t, 1, 1)
	target := h.gens[g.Lane().ID][1]
	h.s[0].Lost(h.now, g, errors.New("cable"))
	h.settle()
	require.True(t, target.Fenced() || !g.IsQuiet(), "nothing is said of a generation that is not quiet")
	g.Drained(h.now)
	h.settle()
	require.True(t, g.IsQuiet())
	require.True(t, target.Fenced(), "the peer has been told over the other lane")
	require.False(t, target.IsQuiet(), "its card may still write")
	require.False(t, g.settled)
	require.Empty(t, h.unmaps, "what is registered stays so until its queue pair is gone")
	target.Drained(h.now)
	h.settle()
	require.True(t, g.settled)
	require.Equal(t, 1, h.revoked, "the registration was the generation's")
	require.NoError(t, h.ended(o))
}

// astray is a put that was canceled, and answered so over a stream, while places of it are with the card.
func astray(t *testing.T) (h *table, o *Op, g *Generation) {
	t.Helper()
	h = newHandTable(t, 1, 1)
	g = h.gens[0][0]
	h.put(600<<10, nil)
	h.register()
	h.settle()
	require.NoError(t, g.Placed(h.now, g.card.places.len()))
	h.stopped = g
	o = h.put(600<<10, nil)
	require.Positive(t, o.posted)
	h.s[0].Cancel(h.now, o)
	h.open(o, "the verdict is there, and the card still writes")
	require.True(t, o.quits)
	return h, o, g
}

func TestACanceledPutEndsWithItsLastPlace(t *testing.T) {
	h, o, g := astray(t)
	require.NoError(t, g.Placed(h.now, g.card.places.len()))
	require.ErrorIs(t, h.ended(o), rma.ErrCanceled)
	require.False(t, g.Fenced(), "a cancel costs no rail")
}

func TestACanceledPutWaitsForWhatIsInTheNetwork(t *testing.T) {
	h, o, g := astray(t)
	h.s[0].Lost(h.now, g, errors.New("cable"))
	g.Drained(h.now)
	h.open(o, "the peer's queue pair may still apply what is in the network")
	require.Positive(t, o.stray)
	h.gens[0][1].Drained(h.now)
	require.ErrorIs(t, h.ended(o), rma.ErrCanceled)
}

func TestWhatIsInTheNetworkAtTheDeadline(t *testing.T) {
	for name, end := range map[string]func(*table, *Op) error{
		"abandon": func(h *table, o *Op) error { h.s[0].Abandon(h.now, o); return rma.ErrOutcomeUnknown },
		"close":   func(h *table, _ *Op) error { h.s[0].Close(h.now, rma.ErrEndpointDown); return rma.ErrEndpointDown },
	} {
		t.Run(name, func(t *testing.T) {
			h, o, g := astray(t)
			h.s[0].Lost(h.now, g, errors.New("cable"))
			g.Drained(h.now)
			h.open(o, "it may still land")
			want := end(h, o)
			require.ErrorIs(t, h.ended(o), want, "it cannot be called canceled")
		})
	}
}

func TestAnAccessErrorHasOthersAskAgain(t *testing.T) {
	h := newHandTable(t, 2, 0)
	for range 2 { // both lanes learn the key
		o := h.put(900<<10, nil)
		for len(h.wanted) > 0 {
			h.register()
		}
		for k := range 2 {
			g := h.gens[wire.RailID(k)][0]
			require.NoError(t, g.Placed(h.now, g.card.places.len()))
		}
		h.settle()
		for k := range 2 {
			g := h.gens[wire.RailID(k)][0]
			require.NoError(t, g.Placed(h.now, g.card.places.len()))
		}
		require.NoError(t, h.ended(o))
	}
	g, other := h.gens[0][0], h.gens[1][0]
	require.Len(t, g.card.maps, 1)
	require.Len(t, other.card.maps, 1)
	o := h.put(900<<10, nil)
	failing := g
	if failing.card.places.len() == 0 {
		failing = other
	}
	require.Positive(t, failing.card.places.len())
	require.NoError(t, failing.PlaceFailed(h.now, 0, rma.ErrAccess))
	require.True(t, failing.Fenced())
	for _, g := range []*Generation{g, other} {
		assert.Empty(t, g.card.maps, "nothing is posted before the owner has confirmed the key")
	}
	h.open(o, "what its card was doing is not known")
}

func TestKeysThatAPeerMayStillUseAreNotToldAgain(t *testing.T) {
	h, o, g := heldPut(t, 1, 0)
	require.NoError(t, g.Placed(h.now, 1))
	require.NoError(t, h.ended(o))
	require.NoError(t, h.region.Revoke())
	next, err := h.regions.Register(make([]byte, 1<<20), rma.RemoteWrite)
	require.NoError(t, err)
	h.region = next
	h.keys = 0 // the card gives the key of the revoked region again
	o = h.put(64<<10, nil)
	require.Len(t, h.wanted, 1)
	require.True(t, h.register(), "a write by the old key may be under way")
	require.False(t, h.register())
	require.NoError(t, g.Placed(h.now, 1))
	require.NoError(t, h.ended(o))
}

func TestCompletionsInsideAWriteCall(t *testing.T) {
	h := newHandTable(t, 1, 0)
	g := h.gens[0][0]
	key := h.region.Key()
	warm := h.put(64<<10, nil)
	h.register()
	require.NoError(t, g.Placed(h.now, 1))
	require.NoError(t, h.ended(warm))
	o := &Op{Kind: Put, Region: key.Region(), Token: key.Token(), Data: make([]byte, 64<<10)}
	h.s[0].Start(h.now, o)
	h.carryOut(0)
	var plan rma.Gather
	require.True(t, g.Fill(h.now, &plan))
	require.Len(t, plan.Places, 1)
	require.NoError(t, g.Placed(h.now, 1), "the card may be faster than the call that told it")
	require.NoError(t, g.Wrote(h.now, &plan, plan.Size()))
	require.Zero(t, o.posted)

	o2 := &Op{Kind: Put, Region: key.Region(), Token: key.Token(), Data: make([]byte, 64<<10)}
	h.s[0].Start(h.now, o2)
	h.carryOut(0)
	require.True(t, g.Fill(h.now, &plan))
	require.NoError(t, g.Placed(h.now, 2))
	require.Error(t, g.Wrote(h.now, &plan, plan.Size()), "more are complete than were posted")
}

func TestAPlaceIsPostedWithItsFrameOrNotAtAll(t *testing.T) {
	h := newHandTable(t, 1, 0)
	g := h.gens[0][0]
	warm := h.put(64<<10, nil)
	h.register()
	require.NoError(t, g.Placed(h.now, 1))
	require.NoError(t, h.ended(warm))
	key := h.region.Key()
	o := &Op{Kind: Put, Region: key.Region(), Token: key.Token(), Data: make([]byte, 300<<10)}
	h.s[0].Start(h.now, o)
	h.carryOut(0)
	var plan rma.Gather
	require.True(t, g.Fill(h.now, &plan))
	require.GreaterOrEqual(t, len(plan.Places), 2)
	n := plan.Places[1].At // the second frame is not begun
	bytes := slices.Concat(plan.Bufs...)[:n]
	require.NoError(t, g.Wrote(h.now, &plan, n))
	require.Equal(t, int32(1), o.posted)
	require.Equal(t, 1, g.card.places.len())
	h.arrive(h.gens[0][1], bytes)
	h.settle()
	require.NoError(t, g.Placed(h.now, g.card.places.len()))
	require.NoError(t, h.ended(o))
}

func TestOneSidedFramesOnAStreamBreakTheProtocol(t *testing.T) {
	h := newHandTable(t, 1, 1)
	stream, card := h.gens[1][1], h.gens[0][1]
	require.ErrorIs(t, stream.mapIn(wire.Map{Ask: 1}), ErrProtocol)
	require.ErrorIs(t, stream.mappedIn(wire.Mapped{Ask: 1}), ErrProtocol)
	require.ErrorIs(t, card.mappedIn(wire.Mapped{Ask: 1}), ErrProtocol)
	b := (&wire.Placed{Op: 1, Region: 1, Total: 1, Size: 1}).Append(nil)
	head, err := wire.ParseHeader(b)
	require.NoError(t, err)
	require.ErrorIs(t, stream.placedIn(head, b), ErrProtocol)
	require.ErrorIs(t, card.placedIn(head, b), ErrProtocol, "no key of that region was told")
}

func TestARegionIsAskedForOnceAtATime(t *testing.T) {
	h := newHandTable(t, 1, 0)
	g := h.gens[0][1]
	key := h.region.Key()
	ask := wire.Map{Ask: 1, Region: key.Region(), Token: key.Token()}
	require.NoError(t, g.mapIn(ask))
	require.ErrorIs(t, g.mapIn(ask), ErrProtocol)
	for range maxAsks - 1 {
		r, err := h.regions.Register(make([]byte, 8), rma.RemoteWrite)
		require.NoError(t, err)
		require.NoError(t, g.mapIn(wire.Map{Ask: 1, Region: r.Key().Region(), Token: r.Key().Token()}))
	}
	r, err := h.regions.Register(make([]byte, 8), rma.RemoteWrite)
	require.NoError(t, err)
	require.ErrorIs(t, g.mapIn(wire.Map{Ask: 1, Region: r.Key().Region(), Token: r.Key().Token()}), ErrProtocol)
}

func TestHowManyRegionsAreExposed(t *testing.T) {
	h := newHandTable(t, 1, 0)
	g := h.gens[0][1]
	expose := func(revoke bool) {
		r, err := h.regions.Register(make([]byte, 8), rma.RemoteWrite)
		require.NoError(t, err)
		require.NoError(t, g.mapIn(wire.Map{Ask: 1, Region: r.Key().Region(), Token: r.Key().Token()}))
		g.todo = nil
		for _, fx := range h.s[1].Effects(nil) {
			if fx.Kind == MapWanted {
				h.wanted = []Effect{fx}
				h.keys++
				m, err := r.Map(func([]byte) (func(), error) { return func() {}, nil })
				require.NoError(t, err)
				require.False(t, g.Mapped(h.now, Registration{Region: r, Mapping: m, Key: h.keys}))
			}
		}
		if revoke {
			require.NoError(t, r.Revoke())
		}
	}
	for range maxMapped {
		expose(false)
	}
	require.Len(t, g.card.exposed, maxMapped)
	expose(false)
	require.Len(t, g.card.exposed, maxMapped, "one more goes by frames")
	for _, e := range g.card.exposed {
		require.NoError(t, e.mapping.Region().Revoke())
	}
	for range maxTold - maxMapped {
		expose(true)
	}
	require.False(t, g.Fenced())
	expose(true)
	require.True(t, g.Fenced(), "a generation that has told so many keys makes room for the next")
}

func TestARefusalInsideAWriteCallHasOthersAskAgain(t *testing.T) {
	h := newHandTable(t, 2, 0)
	warm := h.put(900<<10, nil)
	for len(h.wanted) > 0 {
		h.register()
	}
	for len(h.ends[warm]) == 0 {
		for k := range 2 {
			g := h.gens[wire.RailID(k)][0]
			require.NoError(t, g.Placed(h.now, g.card.places.len()))
		}
		h.settle()
	}
	g, other := h.gens[0][0], h.gens[1][0]
	require.Len(t, other.card.maps, 1)
	key := h.region.Key()
	h.s[0].Start(h.now, &Op{Kind: Put, Region: key.Region(), Token: key.Token(), Data: make([]byte, 900<<10)})
	h.carryOut(0)
	var plan rma.Gather
	require.True(t, g.Fill(h.now, &plan))
	require.NotEmpty(t, plan.Places)
	require.NoError(t, g.PlaceFailed(h.now, 0, rma.ErrAccess))
	require.Empty(t, other.card.maps, "the plan tells whose place it was")
	require.NoError(t, g.Wrote(h.now, &plan, plan.Size()))
	g.Drained(h.now)
	require.True(t, g.IsQuiet())
}
