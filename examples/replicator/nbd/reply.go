package nbd

import (
	"bufio"
	"io"
	"strings"
	"sync"
	"sync/atomic"
)

// Sizes of a connection's buffers, in bytes.
const (
	readAhead   = 64 << 10 // several small requests are read by one system call
	writeBehind = 64 << 10 // several small answers are sent by one
	direct      = 16 << 10 // data of this size is not copied into the buffer
	longestWhy  = 256      // of the words in an error
)

// replies writes answers. Whoever finds another waiting behind it leaves the flush to that one.
//
// Owner: the connection; any goroutine may send.
type replies struct {
	waiting atomic.Int32
	mu      sync.Mutex
	to      io.Writer
	buffer  *bufio.Writer // Owner: mu
	head    [64]byte      // Owner: mu
}

func (r *replies) reset(to io.Writer) {
	r.to, r.buffer = to, bufio.NewWriterSize(to, writeBehind)
}

// simple sends an answer without data, or with the data of a read that was asked for without structured replies.
func (r *replies) simple(cookie uint64, result code, data []byte) error {
	return r.send(data, func(head []byte) []byte {
		head = order.AppendUint32(head, magicSimple)
		head = order.AppendUint32(head, uint32(result))
		return order.AppendUint64(head, cookie)
	})
}

// data sends the data of a read as one structured reply.
func (r *replies) data(cookie, offset uint64, data []byte) error {
	return r.send(data, func(head []byte) []byte {
		head = chunk(head, chunkOffsetData, cookie, 8+len(data))
		return order.AppendUint64(head, offset)
	})
}

// failed sends an error with words as a structured reply.
func (r *replies) failed(cookie uint64, result code, why string) error {
	why = strings.ToValidUTF8(why[:min(len(why), longestWhy)], "?")
	return r.send([]byte(why), func(head []byte) []byte {
		head = chunk(head, chunkError, cookie, 6+len(why))
		head = order.AppendUint32(head, uint32(result))
		return order.AppendUint16(head, uint16(len(why)))
	})
}

func chunk(head []byte, kind uint16, cookie uint64, length int) []byte {
	head = order.AppendUint32(head, magicStructured)
	head = order.AppendUint16(head, chunkDone)
	head = order.AppendUint16(head, kind)
	head = order.AppendUint64(head, cookie)
	return order.AppendUint32(head, uint32(length))
}

func (r *replies) send(data []byte, header func(head []byte) []byte) error {
	r.waiting.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	_, err := r.buffer.Write(header(r.head[:0]))
	last := r.waiting.Add(-1) == 0
	if len(data) < direct {
		if _, e := r.buffer.Write(data); e != nil {
			err = e
		}
		if last {
			err = r.buffer.Flush()
		}
		return err
	}
	if err := r.buffer.Flush(); err != nil {
		return err
	}
	_, err = r.to.Write(data)
	return err
}
