package replica

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestRoster(t *testing.T) {
	r, err := Found([]Name{"b", "a", "c"})
	require.NoError(t, err)
	assert.Equal(t, []Name{"a", "b", "c"}, r.Members)
	assert.Equal(t, 2, r.Quorum())
	_, err = Found([]Name{"a", "a"})
	require.Error(t, err)

	first, err := r.Apply(Command{Primary: "b"})
	require.NoError(t, err)
	assert.True(t, first.Newer(&r))
	_, err = first.Apply(Command{Primary: "c"})
	require.ErrorIs(t, err, ErrOvertaken)
	_, err = first.Apply(Command{Epoch: 1, Primary: "d"})
	require.ErrorIs(t, err, ErrStranger)
	_, err = first.Apply(Command{Epoch: 1, InSync: []Name{"b"}})
	require.ErrorIs(t, err, ErrTooFew)
	_, err = first.Apply(Command{Epoch: 1, InSync: []Name{"b", "b"}})
	require.ErrorIs(t, err, ErrTooFew)
	less, err := first.Apply(Command{Epoch: 1, InSync: []Name{"c", "b"}})
	require.NoError(t, err)
	assert.Equal(t, []Name{"b", "c"}, less.InSync)
	assert.True(t, less.Newer(&first))
	assert.Equal(t, []Name{"a", "b", "c"}, first.InSync, "the roster before is as it was")
	_, err = less.Apply(Command{Epoch: 1, Version: 0, InSync: []Name{"a", "b", "c"}})
	require.ErrorIs(t, err, ErrOvertaken)
}

func TestCommon(t *testing.T) {
	old := History{{1, 1}, {3, 10}}
	for name, c := range map[string]struct {
		a     History
		lastA uint64
		b     History
		lastB uint64
		want  uint64
	}{
		"both empty":            {nil, 0, nil, 0, 0},
		"one empty":             {old, 20, nil, 0, 0},
		"the same":              {old, 20, old, 20, 20},
		"behind":                {old, 20, old, 15, 15},
		"behind by an era":      {old, 20, History{{1, 1}}, 5, 5},
		"a tail of its own":     {old, 20, History{{1, 1}}, 14, 9},
		"another epoch":         {old, 20, History{{1, 1}, {2, 8}}, 14, 7},
		"a newer epoch":         {old, 20, History{{1, 1}, {4, 12}}, 14, 9},
		"nothing in common":     {History{{2, 1}}, 5, History{{1, 1}}, 5, 0},
		"too long ago to know":  {History{{5, 100}}, 120, History{{1, 1}}, 50, 0},
		"known on one side":     {History{{5, 100}}, 120, History{{1, 1}, {5, 100}}, 110, 110},
		"back and forth, twice": {History{{1, 1}, {4, 6}}, 9, History{{1, 1}, {2, 3}, {3, 7}}, 9, 2},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Equal(t, c.want, common(c.a, c.lastA, c.b, c.lastB))
			assert.Equal(t, c.want, common(c.b, c.lastB, c.a, c.lastA))
		})
	}
}

func TestHistory(t *testing.T) {
	var h History
	for s := uint64(1); s <= maxEras+10; s++ {
		next, added := h.with(s, s)
		assert.True(t, added)
		h = next
	}
	assert.Len(t, h, maxEras)
	_, known := h.era(5)
	assert.False(t, known)
	same, added := h.with(maxEras+10, maxEras+11)
	assert.False(t, added)
	assert.Equal(t, h, same)
	assert.Len(t, h.until(20), 10)
}

// TestRing: no byte has two owners, and what is free again is used again.
func TestRing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := ring{size: 100}
		owner := make([]uint64, r.size)
		type out struct {
			at, n            int64
			completed, taken bool
		}
		live := map[uint64]*out{}
		var items, taken uint64
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				n := rapid.Int64Range(1, 50).Draw(t, "n")
				at, ok := r.take(items+1, n)
				if !ok {
					require.NotEmpty(t, live, "an empty ring has room for half of it")
					return
				}
				items++
				live[items] = &out{at: at, n: n}
				for i := at; i < at+n; i++ {
					require.Zero(t, owner[i])
					owner[i] = items
				}
			},
			"complete": func(t *rapid.T) {
				if items == 0 {
					return
				}
				i := rapid.Uint64Range(1, items).Draw(t, "item")
				r.completed(i)
				if o := live[i]; o != nil {
					o.completed = true
				}
			},
			"taken": func(t *rapid.T) {
				taken = rapid.Uint64Range(taken, items).Draw(t, "upTo")
				r.taken(taken)
				for i, o := range live {
					o.taken = o.taken || i <= taken
				}
			},
			"": func(*rapid.T) {
				for i := uint64(1); i <= items; i++ { // what is free, in order
					o := live[i]
					if o == nil {
						continue
					}
					if !o.completed || !o.taken {
						break
					}
					for k := o.at; k < o.at+o.n; k++ {
						owner[k] = 0
					}
					delete(live, i)
				}
			},
		})
	})
}

func good() Settings {
	return Settings{Self: "a", Size: 4 * Extent, Level: LevelC, Staging: 4 * Extent, Window: 1, Pending: 1,
		Lease: time.Second, Beat: time.Second, Retry: time.Second, Stall: time.Second}
}

func TestSettings(t *testing.T) {
	_, err := New(good(), State{}, Position{}, 0)
	require.NoError(t, err)
	for name, spoil := range map[string]func(*Settings){
		"no name":     func(s *Settings) { s.Self = "" },
		"no size":     func(s *Settings) { s.Size = 0 },
		"odd size":    func(s *Settings) { s.Size++ },
		"no level":    func(s *Settings) { s.Level = 0 },
		"no staging":  func(s *Settings) { s.Staging = Extent },
		"no lease":    func(s *Settings) { s.Lease = 0 },
		"other level": func(s *Settings) { s.Level = 9 },
	} {
		t.Run(name, func(t *testing.T) {
			s := good()
			spoil(&s)
			_, err := New(s, State{}, Position{}, 0)
			require.ErrorIs(t, err, ErrSettings)
		})
	}
	_, err = New(good(), State{Base: Position{2, 5}}, Position{1, 9}, 0)
	require.ErrorIs(t, err, ErrSettings)
}

// TestNoPrimary: an operation at a member that is none ends at once.
func TestNoPrimary(t *testing.T) {
	m, err := New(good(), State{Whole: true}, Position{}, 0)
	require.NoError(t, err)
	for _, in := range []Input{Write{Op: 1}, Read{Op: 1}, Flush{Op: 1}} {
		assert.Equal(t, []Effect{Answer{1, ErrNotPrimary}}, m.Step(0, in))
	}
}

// TestHostileItems: what cannot be right ends that stream, and touches nothing.
func TestHostileItems(t *testing.T) {
	stream := Stream{"b", 1, 1}
	for name, item := range map[string]Item{
		"no kind":        {},
		"a gap":          {Kind: RecordItem, Record: Header{Epoch: 1, Sequence: 7}},
		"a later epoch":  {Kind: RecordItem, Record: Header{Epoch: 2, Sequence: 1}},
		"beyond the end": {Kind: RecordItem, Record: Header{Epoch: 1, Sequence: 1, Offset: 4*Extent - 1, Length: 2}},
		"far beyond":     {Kind: RecordItem, Record: Header{Epoch: 1, Sequence: 1, Offset: 1 << 63, Length: 1 << 63}},
		"not staged":     {Kind: RecordItem, Staged: 4*Extent - 1, Record: Header{Epoch: 1, Sequence: 1, Length: 2}},
		"below":          {Kind: RecordItem, Staged: -1, Record: Header{Epoch: 1, Sequence: 1, Length: 2}},
		"other volume":   {Kind: RecordItem, Record: Header{Epoch: 1, Sequence: 1, Volume: 9}},
		"no extent":      {Kind: FillItem, Extent: 4},
		"fill, unstaged": {Kind: FillItem, Staged: 4*Extent - 1},
		"check, none":    {Kind: CheckItem, Extent: 1 << 60},
		"far ahead":      {Kind: EndItem, Number: 1 << 40},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := New(good(), State{Whole: true}, Position{}, 0)
			require.NoError(t, err)
			m.Step(2*time.Second, Delivered{"b", Ask{1}})
			m.Step(2*time.Second, Synced{1})
			m.Step(2*time.Second, Delivered{"b", Open{1, 1}})
			m.Step(2*time.Second, Registered{stream, []byte("k")})
			item.Epoch, item.Stream = 1, 1
			if item.Number == 0 {
				item.Number = 1
			}
			assert.Equal(t, []Effect{Send{"b", Broken{1, 1}}}, m.Step(2*time.Second, Delivered{"b", item}))
			assert.Empty(t, m.Step(2*time.Second, Delivered{"b", item}), "and no more is taken from it")
		})
	}
}
