package store

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	crashSize = 4 * Extent
	crashLog  = 512 << 10
)

// world is a store on a disk that loses power, and what it should have.
type world struct {
	t      *testing.T
	random *rand.Rand
	disk   *testDisk
	seed   uint64

	image    []byte  // before the changes
	past     *change // the last before them; nil: none
	changes  []change
	last     Position // behind them
	state    []byte
	promised int // changes that were said to be durable
}

// change is one that was asked for, and what is true behind it.
type change struct {
	offset int64
	data   []byte
	last   Position
	state  []byte
}

func newWorld(t *testing.T, seed uint64) *world {
	return &world{t: t, random: rand.New(rand.NewPCG(seed, 7)), disk: newDisk(), seed: seed, image: make([]byte, crashSize)}
}

func (w *world) config() Config {
	return Config{Disk: w.disk, Volume: 3, Size: crashSize, Log: crashLog}
}

// live opens the store and changes it until the power fails or there was enough; failed tells which.
func (w *world) live(changes int) (failed bool) {
	s, err := Open(w.config())
	if err != nil {
		require.ErrorIs(w.t, err, errPower, "seed %d", w.seed)
		return true
	}
	w.compare(s)
	marks := []Mark{}
	for range changes {
		mark, err := w.change(s)
		if err != nil {
			break
		}
		marks = append(marks, mark)
		if w.random.IntN(3) == 0 {
			if i := w.random.IntN(len(marks)); s.Wait(context.Background(), marks[i]) == nil {
				w.promised = max(w.promised, i+1)
			}
		}
	}
	for i, m := range marks {
		if m <= s.Durable() {
			w.promised = max(w.promised, i+1)
		}
	}
	if err = s.Close(); err == nil {
		w.promised = len(w.changes)
	}
	return err != nil
}

// change does one of everything that changes a store. Where it is not taken, it is not expected either.
func (w *world) change(s *Store) (mark Mark, err error) {
	ctx := context.Background()
	c := change{last: w.last, state: w.state}
	switch what := w.random.IntN(20); what {
	case 0:
		e := w.random.Int64N(crashSize / Extent)
		c.offset, c.data = e*Extent, w.bytes(Extent)
		mark, err = s.Fill(ctx, e, w.last.Sequence, c.data)
	case 1:
		c.state = w.bytes(w.random.IntN(2000))
		st := State{Data: c.state}
		if w.random.IntN(3) == 0 {
			c.last = Position{w.last.Epoch + 1, w.last.Sequence + w.random.Uint64N(100)}
			st.Reset = &c.last
		}
		mark, err = s.Save(ctx, st)
	default:
		r := Record{Epoch: w.last.Epoch, Sequence: w.last.Sequence + 1, ID: w.random.Uint64(), Zero: what < 4}
		r.Length = Block * (1 + w.random.Int64N(4))
		r.Offset = w.random.Int64N((crashSize-r.Length)/Block) * Block
		if what > 16 { // not whole blocks
			r.Length = w.random.Int64N(30_000)
			r.Offset = w.random.Int64N(crashSize - r.Length)
		}
		c.offset, c.data = r.Offset, make([]byte, r.Length)
		if !r.Zero {
			c.data = w.bytes(int(r.Length))
			r.Data = c.data
		}
		c.last.Sequence++
		mark, err = s.AppendMemory(ctx, r)
	}
	if err == nil {
		w.changes, w.last, w.state = append(w.changes, c), c.last, c.state
	}
	return mark, err
}

// bytes gives some that nobody else gets.
func (w *world) bytes(n int) []byte {
	b := make([]byte, n+8)
	for i := 0; i < n; i += 8 {
		le.PutUint64(b[i:], w.random.Uint64())
	}
	return b[:n]
}

// compare finds out after how many changes the store is, which must be no fewer than were promised, each after all before it.
func (w *world) compare(s *Store) {
	w.t.Helper()
	got := make([]byte, crashSize)
	require.NoError(w.t, s.Read(got, 0), "seed %d", w.seed)
	now := change{} // what is true before the first
	if w.past != nil {
		now = *w.past
	}
	found := -1
	for n := 0; ; n++ {
		if n >= w.promised && s.Last() == now.last && bytes.Equal(s.State(), now.state) && bytes.Equal(got, w.image) {
			found = n
		}
		if n == len(w.changes) {
			break
		}
		now = w.changes[n]
		copy(w.image[now.offset:], now.data)
	}
	require.NotEqual(w.t, -1, found, "seed %d: of %d changes, %d of them promised, what was recovered is none; last %v",
		w.seed, len(w.changes), w.promised, s.Last())
	if found > 0 {
		w.past = &w.changes[found-1]
	}
	w.image, w.changes, w.promised = got, nil, 0
	w.last, w.state = s.Last(), bytes.Clone(s.State())
	require.NoError(w.t, s.Scrub(context.Background(), func(e CorruptError) { w.t.Errorf("seed %d: %v", w.seed, &e) }))
}

// TestPowerLoss: a store that loses power at any operation, again and again, has everything that it promised, and of what came later a
// beginning, in order. RAILYARD_FULL=1 makes it a thousand seeds.
func TestPowerLoss(t *testing.T) {
	seeds := uint64(100)
	if os.Getenv("RAILYARD_FULL") != "" {
		seeds = 1000
	}
	crashes := 0
	for seed := range seeds {
		w := newWorld(t, seed)
		for range 3 {
			w.disk.left = w.random.IntN(300)
			if w.live(50 + w.random.IntN(150)) {
				crashes++
			}
			w.disk.crash(w.random)
		}
		require.False(t, w.live(10), "seed %d", seed)
		s, err := Open(w.config())
		require.NoError(t, err)
		w.compare(s)
		require.NoError(t, s.Close())
	}
	require.Greater(t, crashes, int(seeds), "the power has hardly ever failed")
}

// TestPowerLossIsNoticed: the same test finds a store that forgets to sync.
func TestPowerLossIsNoticed(t *testing.T) {
	for _, file := range []string{"log", "image", "index"} {
		caught := false
		for seed := uint64(0); seed < 30 && !caught; seed++ {
			caught = loses(seed, file)
		}
		require.True(t, caught, "a %s that is never synced was not noticed", file)
	}
}

// loses runs a world on a disk that lies about syncs of one file, and tells whether anything was lost.
func loses(seed uint64, file string) bool {
	w := newWorld(nil, seed)
	lying := &liar{w.disk, file}
	cfg := w.config()
	cfg.Disk = lying
	s, err := Open(cfg)
	if err != nil {
		return true
	}
	for range 200 {
		mark, err := w.change(s)
		if err != nil || s.Wait(context.Background(), mark) != nil {
			return true
		}
	}
	w.disk.mu.Lock()
	w.disk.left = 0
	w.disk.mu.Unlock()
	_ = s.Close()
	w.disk.crash(w.random)
	s, err = Open(cfg)
	if err != nil {
		return true
	}
	got := make([]byte, crashSize)
	err = s.Read(got, 0)
	_ = s.Close()
	for _, c := range w.changes {
		copy(w.image[c.offset:], c.data)
	}
	return err != nil || !bytes.Equal(got, w.image)
}

type liar struct {
	*testDisk
	name string
}

func (l *liar) Open(name string, size int64) (File, bool, error) {
	f, made, err := l.testDisk.Open(name, size)
	if name == l.name && err == nil {
		f = unsynced{f.(*testFile)}
	}
	return f, made, err
}

type unsynced struct{ *testFile }

func (unsynced) Sync() error { return nil }
