package store

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

func small(d Disk) Config { return Config{Disk: d, Volume: 3, Size: 4*Extent + Block, Log: minLog} }

func open(t testing.TB, cfg Config) *Store {
	t.Helper()
	s, err := Open(cfg)
	require.NoError(t, err)
	return s
}

func content(n int, with byte) []byte { return bytes.Repeat([]byte{with}, n) }

func record(sequence uint64, offset int64, data []byte) Record {
	return Record{Epoch: 1, Sequence: sequence, ID: 100 + sequence, Offset: offset, Length: int64(len(data)), Data: data}
}

func add(t testing.TB, s *Store, r Record) {
	t.Helper()
	require.NoError(t, s.Append(t.Context(), r))
}

func read(t testing.TB, s *Store, offset int64, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	require.NoError(t, s.Read(b, offset))
	return b
}

// TestPlainFiles: in a folder, the image is the volume's bytes; everything else is kept too.
func TestPlainFiles(t *testing.T) {
	dir := t.TempDir()
	s := open(t, small(Dir(dir)))
	add(t, s, record(1, 100, content(10_000, 1)))
	add(t, s, record(2, Extent-10, content(20, 2)))
	add(t, s, Record{Epoch: 2, Sequence: 3, Offset: 200, Length: 300, Zero: true})
	add(t, s, Record{Epoch: 3, Sequence: 4})
	mark, err := s.Save(t.Context(), State{Data: []byte("mine")})
	require.NoError(t, err)
	require.NoError(t, s.Wait(t.Context(), mark))
	want := make([]byte, 4*Extent+Block)
	copy(want[100:], content(10_000, 1))
	copy(want[Extent-10:], content(20, 2))
	clear(want[200:500])
	check := func() {
		assert.True(t, bytes.Equal(want, read(t, s, 0, len(want))))
		assert.Equal(t, want[Extent-20:Extent+20], read(t, s, Extent-20, 40))
		assert.Equal(t, Position{3, 4}, s.Last())
		assert.Equal(t, "mine", string(s.State()))
		assert.Equal(t, []int64{0, 1}, s.Dirty(1))
		assert.Equal(t, []int64{0}, s.Dirty(2))
		assert.Empty(t, s.Dirty(4))
	}
	check()
	require.NoError(t, s.Close())
	image, err := os.ReadFile(filepath.Join(dir, "image"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal(want, image))
	s = open(t, small(Dir(dir)))
	check()
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Close(), ErrClosed)
	_, err = s.Save(t.Context(), State{})
	require.ErrorIs(t, err, ErrClosed)

	_, err = Open(Config{Disk: Dir(dir), Volume: 4, Size: 4*Extent + Block, Log: minLog})
	require.ErrorIs(t, err, ErrMismatch)
	_, err = Open(Config{Disk: Dir(dir), Volume: 3, Size: 8 * Extent, Log: minLog})
	require.ErrorIs(t, err, ErrMismatch)
}

// TestAdopts: an image that is there already becomes the volume.
func TestAdopts(t *testing.T) {
	dir := t.TempDir()
	want := content(4*Extent+Block, 7)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "image"), want, 0o600))
	for range 2 {
		s := open(t, small(Dir(dir)))
		assert.True(t, bytes.Equal(want, read(t, s, 0, len(want))))
		require.NoError(t, s.Close())
	}
}

// gate holds an operation on a file until the test lets it go on.
type gate struct {
	name, what string
	arrived    chan struct{}
	goOn       chan error
}

func (g *gate) fault(name, what string) error {
	if name != g.name || what != g.what {
		return nil
	}
	g.arrived <- struct{}{}
	return <-g.goOn
}

// slowFile waits at a gate, outside the disk's lock.
type slowFile struct {
	File
	name string
	gate *gate
}

func (f slowFile) Sync() error {
	if err := f.gate.fault(f.name, "sync"); err != nil {
		return err
	}
	return f.File.Sync()
}

type slowDisk struct {
	*testDisk
	gate *gate
}

func (d slowDisk) Open(name string, size int64) (File, bool, error) {
	f, made, err := d.testDisk.Open(name, size)
	return slowFile{f, name, d.gate}, made, err
}

// gated opens a store on a disk whose syncs of a file are held from then on.
func gated(t *testing.T, name string) (*Store, *gate) {
	d := newDisk()
	s := open(t, small(d)) // makes the files
	require.NoError(t, s.Close())
	g := &gate{what: "sync", arrived: make(chan struct{}), goOn: make(chan error)}
	s = open(t, small(slowDisk{d, g}))
	g.name = name // nothing syncs before the first change
	return s, g
}

func (g *gate) next(t *testing.T) {
	t.Helper()
	select {
	case <-g.arrived:
	case <-time.After(patience):
		require.FailNow(t, "nothing is synced")
	}
}

// TestOneSyncForMany: what comes while a sync is in progress is durable with the next one, all of it. Reads see it before.
func TestOneSyncForMany(t *testing.T) {
	s, g := gated(t, "log")
	first, err := s.AppendMemory(t.Context(), record(1, 0, content(Block, 1)))
	require.NoError(t, err)
	g.next(t)
	marks := []Mark{}
	for i := range uint64(10) {
		m, err := s.AppendMemory(t.Context(), record(2+i, int64(i)*Block, content(Block, byte(2+i))))
		require.NoError(t, err)
		marks = append(marks, m)
	}
	assert.Equal(t, content(Block, 11), read(t, s, 9*Block, Block))
	require.Less(t, s.Durable(), first)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, s.Wait(ctx, first), context.Canceled)
	g.goOn <- nil
	require.NoError(t, s.Wait(t.Context(), first))
	require.ErrorIs(t, s.Wait(ctx, marks[0]), context.Canceled)
	g.next(t)
	g.goOn <- nil
	require.NoError(t, s.Sync(t.Context()))
	assert.Equal(t, marks[9], s.Durable())
	g.name = "" // nothing else is written before Close
	require.NoError(t, s.Close())
}

// TestRoom: where the disk is too slow, changes wait, and a caller may give up.
func TestRoom(t *testing.T) {
	s, g := gated(t, "log")
	taken := uint64(0)
	for range s.cfg.Pending / int64(frameSize(Block)) {
		taken++
		_, err := s.AppendMemory(t.Context(), record(taken, 0, content(Block, 1)))
		require.NoError(t, err)
	}
	g.next(t) // none of them has come any further
	limited, done := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer done()
	_, err := s.AppendMemory(limited, record(taken+1, 0, content(Block, 1)))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, taken, s.Sequence())
	ended := make(chan error)
	go func() { ended <- s.Append(context.Background(), record(taken+1, 0, content(Block, 9))) }()
	g.goOn <- nil
	for waits := true; waits; {
		select {
		case <-g.arrived:
			g.goOn <- nil
		case err := <-ended:
			require.NoError(t, err)
			waits = false
		}
	}
	assert.Equal(t, content(Block, 9), read(t, s, 0, Block))
	closed := make(chan error)
	go func() { closed <- s.Close() }()
	for waits := true; waits; {
		select {
		case <-g.arrived:
			g.goOn <- nil
		case err := <-closed:
			require.NoError(t, err)
			waits = false
		}
	}
}

func TestRefused(t *testing.T) {
	s := open(t, small(newDisk()))
	add(t, s, record(1, 0, content(10, 1)))
	for name, x := range map[string]struct {
		record Record
		want   error
	}{
		"the same again":   {record(1, 0, content(10, 1)), ErrOrder},
		"a gap":            {record(3, 0, content(10, 1)), ErrOrder},
		"an older epoch":   {Record{Epoch: 0, Sequence: 2}, ErrOrder},
		"behind the end":   {record(2, 4*Extent, content(Block+1, 1)), ErrRange},
		"before the begin": {record(2, -1, content(10, 1)), ErrRange},
		"too large":        {record(2, 0, content(minLog/4, 1)), ErrRange},
		"a wrong length":   {Record{Epoch: 1, Sequence: 2, Length: 5, Data: content(4, 1)}, ErrRange},
		"zeroes with data": {Record{Epoch: 1, Sequence: 2, Length: 4, Data: content(4, 1), Zero: true}, ErrRange},
	} {
		require.ErrorIs(t, s.Append(t.Context(), x.record), x.want, name)
	}
	_, err := s.Fill(t.Context(), 0, 1, content(10, 1))
	require.ErrorIs(t, err, ErrRange)
	_, err = s.Fill(t.Context(), 5, 1, content(Extent, 1))
	require.ErrorIs(t, err, ErrRange)
	_, err = s.Save(t.Context(), State{Data: make([]byte, superBytes)})
	require.ErrorIs(t, err, ErrRange)
	_, err = s.Sum(-1)
	require.ErrorIs(t, err, ErrRange)
	require.ErrorIs(t, s.Read(make([]byte, 2), 4*Extent+Block-1), ErrRange)
	require.NoError(t, s.Close())
	for _, cfg := range []Config{
		{}, {Disk: newDisk()}, {Disk: newDisk(), Size: 100}, {Disk: newDisk(), Size: Block, Log: 1000}, {Disk: newDisk(), Size: Block, Pending: -1},
	} {
		_, err := Open(cfg)
		require.Error(t, err)
	}
}

// TestLoad finds records of the log, whether the image has them or not, until the ring has come round.
func TestLoad(t *testing.T) {
	d := newDisk()
	s := open(t, small(d))
	n := uint64(300) // more than the ring has room for
	for i := range n {
		add(t, s, record(i+1, int64(i%16)*Block, content(Block, byte(i))))
	}
	add(t, s, Record{Epoch: 1, Sequence: n + 1, ID: 5, Offset: 77, Length: 99, Zero: true})
	got, found, err := s.Load(n)
	require.NoError(t, err)
	require.True(t, found)
	assert.Equal(t, record(n, int64((n-1)%16)*Block, content(Block, byte(n-1))), got)
	got, found, err = s.Load(n + 1)
	require.NoError(t, err)
	require.True(t, found)
	assert.Equal(t, Record{Epoch: 1, Sequence: n + 1, ID: 5, Offset: 77, Length: 99, Zero: true}, got)
	oldest := n
	for ; found && oldest > 0; oldest-- {
		_, found, err = s.Load(oldest)
		require.NoError(t, err)
	}
	assert.InDelta(t, minLog/(Block+sector), n-oldest, 4, "as many as the ring has room for")
	_, found, err = s.Load(n + 2)
	require.NoError(t, err)
	assert.False(t, found)
	mark, err := s.Save(t.Context(), State{Reset: &Position{5, 1000}})
	require.NoError(t, err)
	require.NoError(t, s.Wait(t.Context(), mark))
	_, found, _ = s.Load(n)
	assert.False(t, found, "behind a reset nothing older is there")
	add(t, s, Record{Epoch: 5, Sequence: 1001})
	require.NoError(t, s.Close())
}

// TestDamage: a block that changes on the disk is noticed by reads and by a scrub, survives a write of a part of it as damage, and is good
// again once its extent is filled.
func TestDamage(t *testing.T) {
	d := newDisk()
	s := open(t, small(d))
	add(t, s, record(1, 0, content(2*Extent, 1)[:100_000]))
	require.NoError(t, s.Close())
	d.files["image"].now[5*Block+17] ^= 4
	s = open(t, small(d))
	scrubbed := func() (list []int64) {
		require.NoError(t, s.Scrub(t.Context(), func(e CorruptError) { list = append(list, e.Offset) }))
		return list
	}
	var damaged *CorruptError
	err := s.Read(make([]byte, Extent), 0)
	require.ErrorAs(t, err, &damaged)
	require.ErrorIs(t, err, ErrCorrupt)
	assert.EqualValues(t, 5*Block, damaged.Offset)
	read(t, s, 6*Block, Block)
	assert.Equal(t, []int64{5 * Block}, scrubbed())
	_, err = s.Sum(0)
	require.ErrorIs(t, err, ErrCorrupt)

	add(t, s, record(2, 5*Block, content(10, 9)))
	settle(t, s)
	assert.Equal(t, []int64{5 * Block}, scrubbed(), "a part of the block is not all of it")

	mark, err := s.Fill(t.Context(), 0, 2, content(Extent, 3))
	require.NoError(t, err)
	require.NoError(t, s.Wait(t.Context(), mark))
	settle(t, s)
	assert.Empty(t, scrubbed())
	assert.Equal(t, content(Extent, 3), read(t, s, 0, Extent))
	require.NoError(t, s.Close())
}

// settle waits until everything is in the image.
func settle(t *testing.T, s *Store) {
	t.Helper()
	require.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.pending == 0
	}, patience, time.Millisecond)
}

// TestLogLosesWhatWasDurable: that is told, not passed over; who wants what is left says so.
func TestLogLosesWhatWasDurable(t *testing.T) {
	d := newDisk()
	s := open(t, small(d))
	start := s.Durable()
	for i := range uint64(5) {
		add(t, s, record(i+1, int64(i)*Block, content(Block, byte(i+1))))
	}
	d.mu.Lock()
	d.left = 0
	d.mu.Unlock()
	require.Error(t, s.Close())
	d.crash(newWorld(t, 1).random)
	d.files["log"].now[ringStart+int64(start)+2*(Block+sector)+200] ^= 1
	_, err := Open(small(d))
	require.ErrorIs(t, err, ErrCorruptLog)
	cfg := small(d)
	cfg.Salvage = true
	s = open(t, cfg)
	assert.EqualValues(t, 2, s.Sequence())
	assert.Equal(t, content(Block, 2), read(t, s, Block, Block))
	require.NoError(t, s.Close())
	s = open(t, small(d))
	assert.EqualValues(t, 2, s.Sequence())
	require.NoError(t, s.Close())
}

// TestSuperIsLost: one place may be damaged, both may not.
func TestSuperIsLost(t *testing.T) {
	d := newDisk()
	s := open(t, small(d))
	add(t, s, record(1, 0, content(Block, 1)))
	require.NoError(t, s.Close())
	places := d.files["log"].now
	newest := int64(superBytes)
	if le.Uint64(places[8:]) > le.Uint64(places[superBytes+8:]) {
		newest = 0
	}
	places[newest+9] ^= 1
	s = open(t, small(d))
	assert.EqualValues(t, 1, s.Sequence(), "the log is replayed from the older place on")
	require.NoError(t, s.Close())
	for _, at := range []int{9, superBytes + 9} {
		places[at] ^= 1
	}
	_, err := Open(small(d))
	require.ErrorIs(t, err, ErrCorruptLog)
}

// TestIndexIsLost: the image is taken as it is then, and counts as changed.
func TestIndexIsLost(t *testing.T) {
	d := newDisk()
	s := open(t, small(d))
	add(t, s, record(1, Extent, content(Block, 1)))
	add(t, s, record(2, 0, content(Block, 2)))
	require.NoError(t, s.Close())
	d.files["index"].now[indexEntry+20] ^= 1
	s = open(t, small(d))
	assert.Equal(t, content(Block, 1), read(t, s, Extent, Block))
	assert.Equal(t, []int64{0, 1}, s.Dirty(1))
	require.NoError(t, s.Close())
}

// TestDiskFails: what fails is told to everybody who waits, and nothing is taken any more; opened again, the store has what was durable.
func TestDiskFails(t *testing.T) {
	for _, at := range []string{"log write", "log sync", "image write", "image sync", "index write", "index sync"} {
		t.Run(at, func(t *testing.T) {
			d := newDisk()
			s := open(t, small(d))
			add(t, s, record(1, 0, content(Block, 1)))
			settle(t, s)
			name, what, _ := strings.Cut(at, " ")
			d.mu.Lock()
			d.fault = func(n, w string) error {
				if n == name && w == what {
					return syscall.EIO
				}
				return nil
			}
			d.mu.Unlock()
			var err error
			for i := uint64(2); err == nil; i++ { // checkpoints come after some
				err = s.Append(t.Context(), record(i, 0, content(Block, byte(i))))
			}
			require.ErrorIs(t, err, ErrFailed)
			require.ErrorIs(t, err, syscall.EIO)
			had := read(t, s, Block, Block) // what is elsewhere can still be read
			assert.Equal(t, make([]byte, Block), had)
			require.ErrorIs(t, s.Append(t.Context(), record(s.Sequence()+1, 0, nil)), ErrFailed)
			require.ErrorIs(t, s.Close(), ErrFailed)
			d.mu.Lock()
			d.fault = nil
			d.mu.Unlock()
			s = open(t, small(d))
			n := s.Sequence()
			assert.GreaterOrEqual(t, n, uint64(1))
			assert.Equal(t, content(Block, byte(n)), read(t, s, 0, Block))
			require.NoError(t, s.Close())
		})
	}
}

// TestDiskIsFull: a store that cannot have its space is not made.
func TestDiskIsFull(t *testing.T) {
	d := newDisk()
	d.fault = func(name, what string) error {
		if name == "log" && what == "open" {
			return syscall.ENOSPC
		}
		return nil
	}
	_, err := Open(small(d))
	require.ErrorIs(t, err, syscall.ENOSPC)
	_, err = Open(Config{Disk: Dir(filepath.Join(t.TempDir(), "none")), Size: Block, Log: minLog})
	require.ErrorIs(t, err, os.ErrNotExist)
}

// TestReadsBesideWrites: a read gives each block as one of the changes left it, while the image is written.
func TestReadsBesideWrites(t *testing.T) {
	s := open(t, small(newDisk()))
	ended := make(chan error, 1)
	go func() {
		var err error
		for i := uint64(1); i <= 500 && err == nil; i++ {
			_, err = s.AppendMemory(context.Background(), record(i, 0, content(2*Block, byte(i))))
		}
		ended <- err
	}()
	for {
		got := read(t, s, 0, 2*Block)
		for b := range slices.Chunk(got, Block) {
			if !bytes.Equal(b, content(Block, b[0])) {
				require.FailNow(t, "a block of two changes")
			}
		}
		select {
		case err := <-ended:
			require.NoError(t, err)
			require.NoError(t, s.Close())
			return
		default:
		}
	}
}
