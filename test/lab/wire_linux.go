package lab

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// wire is a rail in user space: a tun device at either end, and packets carried between them that each take a while.
// Super-packets of the kernel pass whole, so one core carries gigabits.
//
// Owner: the Lab. Its goroutines end when its devices are closed.
type wire struct {
	delay   atomic.Int64 // nanoseconds, one way
	ends    [2]*os.File
	carried sync.WaitGroup
}

const (
	packetRoom  = 10 + 65535 // a virtio_net_hdr and the largest IP packet
	wireDepth   = 512        // packets on one wire, in one direction; a full one holds the sender up
	offloadCsum = 1
	offloadTSO4 = 2
)

// packet is on its way.
type packet struct {
	due   time.Time
	bytes [packetRoom]byte
	n     int
}

func newWire(hosts [2]*host, name string, delay time.Duration) (*wire, error) {
	w := &wire{}
	w.delay.Store(int64(delay))
	for s, h := range hosts {
		err := h.do(func() (err error) {
			w.ends[s], err = openTun(name)
			return err
		})
		if err != nil {
			w.close()
			return nil, err
		}
	}
	w.carry(w.ends[A], w.ends[B])
	w.carry(w.ends[B], w.ends[A])
	return w, nil
}

func openTun(name string) (*os.File, error) {
	fd, err := unix.Open("/dev/net/tun", unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("lab: a rail with a delay needs tun devices: %w", err)
	}
	request, err := unix.NewIfreq(name)
	if err == nil {
		request.SetUint16(unix.IFF_TUN | unix.IFF_NO_PI | unix.IFF_VNET_HDR)
		err = unix.IoctlIfreq(fd, unix.TUNSETIFF, request)
	}
	if err == nil {
		err = unix.IoctlSetInt(fd, unix.TUNSETOFFLOAD, offloadCsum|offloadTSO4)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lab: no tun device %s: %w", name, err), unix.Close(fd))
	}
	return os.NewFile(uintptr(fd), "/dev/net/tun"), nil
}

// carry moves packets in one direction until the devices are closed.
func (w *wire) carry(from, to *os.File) {
	free, way := make(chan *packet, wireDepth), make(chan *packet, wireDepth)
	for range wireDepth {
		free <- new(packet)
	}
	w.carried.Go(func() {
		defer close(way)
		for p := range free {
			n, err := from.Read(p.bytes[:])
			if err != nil {
				if errors.Is(err, os.ErrClosed) {
					return
				}
				time.Sleep(time.Millisecond) // EIO while the card is off
				free <- p
				continue
			}
			p.n, p.due = n, time.Now().Add(time.Duration(w.delay.Load()))
			way <- p
		}
	})
	w.carried.Go(func() {
		for p := range way {
			time.Sleep(time.Until(p.due))
			_, _ = to.Write(p.bytes[:p.n]) // a card that is off refuses: the packet is lost
			free <- p
		}
	})
}

func (w *wire) delayed(d time.Duration) step {
	return func() (func() error, error) {
		before := w.delay.Swap(int64(d))
		return func() error {
			w.delay.Store(before)
			return nil
		}, nil
	}
}

func (w *wire) close() {
	for _, end := range w.ends {
		if end != nil {
			_ = end.Close()
		}
	}
	w.carried.Wait()
}
