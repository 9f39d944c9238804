package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
)

// File is what is needed of a file. Its size is fixed.
type File interface {
	io.ReaderAt
	io.WriterAt
	// Zero makes a range read as zeroes, and keeps its space.
	Zero(offset, length int64) error
	// Sync makes everything that was written before durable.
	Sync() error
	Close() error
}

// Disk is where files are.
type Disk interface {
	// Open opens a file, or makes one of this size that is all zero, durable as a name, and whose space is its own. A file of another
	// size is an error.
	Open(name string, size int64) (f File, made bool, err error)
}

// Dir is a folder as a Disk.
type Dir string

// Open is Disk's.
func (d Dir) Open(name string, size int64) (File, bool, error) {
	path := filepath.Join(string(d), name)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		made, err := d.create(path, size)
		return made, true, err
	}
	if err != nil {
		return nil, false, fmt.Errorf("store: %s cannot be opened: %w", path, err)
	}
	info, err := f.Stat()
	if err == nil && info.Size() != size {
		err = fmt.Errorf("store: %s has %d bytes, not %d: %w", path, info.Size(), size, ErrMismatch)
	}
	if err != nil {
		_ = f.Close()
		return nil, false, err
	}
	return file{f}, false, nil
}

// create makes a file under another name first, so that one of the right name has all its space.
func (d Dir) create(path string, size int64) (File, error) {
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %s cannot be made: %w", path, err)
	}
	err = syscall.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		err = file{f}.fill(0, size)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err == nil {
		err = d.sync()
	}
	if err != nil {
		_ = f.Close()
		_ = os.Remove(path + ".new")
		return nil, fmt.Errorf("store: no room of %d bytes for %s: %w", size, path, err)
	}
	return file{f}, nil
}

func (d Dir) sync() error {
	dir, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// file is an *os.File as a File.
type file struct{ *os.File }

// Linux's numbers for fallocate.
const (
	keepSize  = 0x01
	zeroRange = 0x10
)

func (f file) Zero(offset, length int64) error {
	err := syscall.Fallocate(int(f.Fd()), keepSize|zeroRange, offset, length)
	if errors.Is(err, syscall.EOPNOTSUPP) {
		return f.fill(offset, length)
	}
	return err
}

// fill writes zeroes.
func (f file) fill(offset, length int64) error {
	zeroes := make([]byte, min(length, 1<<20))
	for length > 0 {
		n, err := f.WriteAt(zeroes[:min(length, int64(len(zeroes)))], offset)
		if err != nil {
			return err
		}
		offset, length = offset+int64(n), length-int64(n)
	}
	return nil
}

func (f file) Sync() error {
	for {
		if err := syscall.Fdatasync(int(f.Fd())); !errors.Is(err, syscall.EINTR) {
			return err
		}
	}
}
