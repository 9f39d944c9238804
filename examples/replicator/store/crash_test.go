package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
)

var (
	errPower = errors.New("the power is off")
	errOdd   = errors.New("the file has another size")
)

// testDisk is a disk that loses power after a number of operations. What was written since the last sync of its file is then there or not,
// sector by sector, each as any of the writes left it.
type testDisk struct {
	mu     sync.Mutex
	files  map[string]*testFile
	left   int // operations until the power fails; negative: it does not
	dark   bool
	fault  func(name, what string) error // what an operation fails with; nil: nothing
	counts map[string]int                // of operations, by "name what"
}

func newDisk() *testDisk {
	return &testDisk{files: make(map[string]*testFile), left: -1, counts: make(map[string]int)}
}

type testFile struct {
	disk    *testDisk
	name    string
	now     []byte
	durable []byte
	between map[int64][][]byte // by sector: what it was in turn since the last sync
}

func (d *testDisk) Open(name string, size int64) (File, bool, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.operation(name, "open"); err != nil {
		return nil, false, err
	}
	f := d.files[name]
	if f != nil {
		if int64(len(f.now)) != size {
			return nil, false, errOdd
		}
		return f, false, nil
	}
	f = &testFile{disk: d, name: name, now: make([]byte, size), durable: make([]byte, size), between: make(map[int64][][]byte)}
	d.files[name] = f
	return f, true, nil
}

// operation counts one, under the lock.
func (d *testDisk) operation(name, what string) error {
	if d.left == 0 {
		d.dark = true
	}
	d.left--
	if d.dark {
		return errPower
	}
	d.counts[name+" "+what]++
	if d.fault != nil {
		return d.fault(name, what)
	}
	return nil
}

// crash is what is left after the power has failed.
func (d *testDisk) crash(random *rand.Rand) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, name := range []string{"image", "index", "log"} { // in one order, so that a seed is a seed
		f := d.files[name]
		if f == nil {
			continue
		}
		sectors := make([]int64, 0, len(f.between))
		for n := range f.between {
			sectors = append(sectors, n)
		}
		slices.Sort(sectors)
		mood := random.IntN(4) // nothing is kept, everything, or some
		for _, n := range sectors {
			was := f.between[n]
			at := n * sector
			keep := random.IntN(len(was) + 1)
			switch mood {
			case 0:
				keep = 0
			case 1:
				keep = len(was)
			}
			if keep > 0 {
				copy(f.durable[at:], was[keep-1])
			}
		}
		copy(f.now, f.durable)
		clear(f.between)
	}
	d.dark, d.left = false, -1
}

func (f *testFile) ReadAt(p []byte, offset int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if f.disk.dark {
		return 0, errPower
	}
	if f.disk.fault != nil {
		if err := f.disk.fault(f.name, "read"); err != nil {
			return 0, err
		}
	}
	return copy(p, f.now[offset:offset+int64(len(p))]), nil
}

func (f *testFile) WriteAt(p []byte, offset int64) (int, error) {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	err := f.disk.operation(f.name, "write")
	if err == nil || errors.Is(err, errPower) && f.disk.left == -1 { // the write during which the power fails
		f.set(p, offset)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

func (f *testFile) set(p []byte, offset int64) {
	if offset < 0 || offset+int64(len(p)) > int64(len(f.now)) {
		panic(fmt.Sprint("a write beyond the end of ", f.name))
	}
	copy(f.now[offset:], p)
	for n := offset / sector; n*sector < offset+int64(len(p)); n++ {
		f.between[n] = append(f.between[n], slices.Clone(f.now[n*sector:min((n+1)*sector, int64(len(f.now)))]))
	}
}

func (f *testFile) Zero(offset, length int64) error {
	_, err := f.WriteAt(make([]byte, length), offset)
	return err
}

func (f *testFile) Sync() error {
	f.disk.mu.Lock()
	defer f.disk.mu.Unlock()
	if err := f.disk.operation(f.name, "sync"); err != nil {
		return err
	}
	for n, was := range f.between {
		copy(f.durable[n*sector:], was[len(was)-1])
	}
	clear(f.between)
	return nil
}

func (f *testFile) Close() error { return nil }
