package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"

	"railyard/bench/internal/cell"
)

// A message is a header (length, sender), then the payload; what comes back is a header (messages, sender).
const (
	headerSize = 8
	bufferSize = 64 << 10
	queueRoom  = 4096
)

// senders queue messages for one writer, as the actors of a remote do: it writes out what is there, and flushes when nothing is.
type senders struct {
	spec    cell.Spec
	conn    net.Conn
	queue   chan uint32 // who sends
	credits []*cell.Credits
}

func newSenders(s cell.Spec, conn net.Conn) *senders {
	all := &senders{spec: s, conn: conn, queue: make(chan uint32, queueRoom)}
	for range s.Senders {
		all.credits = append(all.credits, cell.NewCredits(s.Window))
	}
	return all
}

func (a *senders) run() error {
	for i, c := range a.credits {
		go func() {
			for {
				c.Take()
				a.queue <- uint32(i)
			}
		}()
	}
	failed := make(chan error)
	go func() { failed <- a.write() }()
	go func() { failed <- a.hear() }()
	return <-failed
}

func (a *senders) write() error {
	w := bufio.NewWriterSize(a.conn, bufferSize)
	payload := make([]byte, a.spec.Size)
	var header [headerSize]byte
	binary.LittleEndian.PutUint32(header[:], uint32(len(payload)))
	for who := range a.queue {
		binary.LittleEndian.PutUint32(header[4:], who)
		_, _ = w.Write(header[:]) // a Writer keeps its error
		_, err := w.Write(payload)
		if err == nil && len(a.queue) == 0 {
			err = w.Flush()
		}
		if err != nil {
			return fmt.Errorf("writing messages: %w", err)
		}
	}
	return nil
}

// hear takes what sinks say that they have seen.
func (a *senders) hear() error {
	var header [headerSize]byte
	for {
		if _, err := io.ReadFull(a.conn, header[:]); err != nil {
			return fmt.Errorf("reading what sinks say: %w", err)
		}
		a.credits[binary.LittleEndian.Uint32(header[4:])].Give(int(binary.LittleEndian.Uint32(header[:])))
	}
}

// sink reads messages into one buffer, and tells each sender now and then.
func sink(s cell.Setup, conn net.Conn) error {
	counter := s.Tally.Counter(0)
	r := bufio.NewReaderSize(conn, bufferSize)
	var header, tell [headerSize]byte
	binary.LittleEndian.PutUint32(tell[:], uint32(s.Spec.AckEach()))
	payload := make([]byte, s.Spec.Size)
	seen := make([]int, s.Spec.Senders)
	for {
		if _, err := io.ReadFull(r, header[:]); err != nil {
			return fmt.Errorf("reading a header: %w", err)
		}
		if _, err := io.ReadFull(r, payload[:binary.LittleEndian.Uint32(header[:])]); err != nil {
			return fmt.Errorf("reading a payload: %w", err)
		}
		counter.Add(s.Spec.Size)
		who := binary.LittleEndian.Uint32(header[4:])
		if seen[who]++; seen[who]%s.Spec.AckEach() == 0 {
			binary.LittleEndian.PutUint32(tell[4:], who)
			if _, err := conn.Write(tell[:]); err != nil {
				return fmt.Errorf("telling a sender: %w", err)
			}
		}
	}
}
