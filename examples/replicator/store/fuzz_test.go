package store

import (
	"bytes"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzHeader: what is read as an entry is written the same.
func FuzzHeader(f *testing.F) {
	for k := kindRecord; k <= kindSkip; k++ {
		e := entry{kind: k, position: 7 * sector, epoch: 2, volume: 3, sequence: 4, id: 5, offset: 6, length: 10}
		if k == kindRecord || k == kindFill {
			e.payload = 10
		}
		b := make([]byte, headerBytes)
		e.encode(b, 99)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeHeader(b)
		if err != nil {
			return
		}
		if e.size() < headerBytes || e.size()%sector != 0 || e.offset < 0 || e.length < 0 {
			t.Fatalf("%+v makes no sense", e)
		}
		again := make([]byte, headerBytes)
		e.encode(again, e.durable)
		if !bytes.Equal(again[:6], b[:6]) || !bytes.Equal(again[8:88], b[8:88]) {
			t.Fatalf("%+v is %x, not %x", e, again, b)
		}
	})
}

// FuzzSuper: what is read as the beginning of a log is written the same.
func FuzzSuper(f *testing.F) {
	s := super{generation: 1, incarnation: 2, volume: 3, size: 4, ring: 5, tail: 6, last: Position{7, 8}, state: []byte("state")}
	f.Add(s.encode())
	f.Add(make([]byte, sector))
	f.Fuzz(func(t *testing.T, b []byte) {
		place := make([]byte, superBytes)
		copy(place, b)
		s, none, err := decodeSuper(place)
		if none || err != nil {
			return
		}
		again, _, err := decodeSuper(append(s.encode(), make([]byte, superBytes)...))
		require.NoError(t, err)
		require.Equal(t, s, again)
	})
}

// FuzzDamagedLog: whatever is written over a log, the store opens with a beginning of what was in it, or says that something is missing.
func FuzzDamagedLog(f *testing.F) {
	d := newDisk()
	s := open(f, small(d))
	images := [][]byte{make([]byte, s.cfg.Size)}
	for i := range uint64(6) {
		r := record(i+1, int64(i)*3000, content(int(1+i*2000), byte(i+1)))
		add(f, s, r)
		next := bytes.Clone(images[i])
		copy(next[r.Offset:], r.Data)
		images = append(images, next)
	}
	d.mu.Lock()
	d.left = 0
	d.mu.Unlock()
	require.Error(f, s.Close())
	d.crash(newWorld(nil, 1).random)
	log := bytes.Clone(d.files["log"].now)
	start := s.super.tail
	f.Add(uint16(0), []byte{})
	f.Add(uint16(5000), []byte{1})
	f.Add(uint16(0), log[ringStart+int64(start):][:6000])
	f.Fuzz(func(t *testing.T, at uint16, over []byte) {
		d := newDisk()
		for name, was := range map[string][]byte{"log": bytes.Clone(log), "image": images[0], "index": make([]byte, sector*2)} {
			file, _, err := d.Open(name, int64(len(was)))
			require.NoError(t, err)
			if name == "log" {
				copy(was[ringStart+int64(start)+int64(at):], over)
			}
			file.(*testFile).now = bytes.Clone(was)
		}
		s, err := Open(small(d))
		if errors.Is(err, ErrCorruptLog) {
			return
		}
		require.NoError(t, err)
		got := make([]byte, s.cfg.Size)
		require.NoError(t, s.Read(got, 0))
		n := s.Sequence()
		require.NoError(t, s.Close())
		if n >= uint64(len(images)) || !bytes.Equal(got, images[n]) {
			t.Fatalf("%d records, and an image that is not theirs", n)
		}
	})
}
