//go:build linux && amd64 && !noverbs

package verbs

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
)

// How a queue pair treats a peer that does not answer. Never 7 retries: some providers take it for "for ever".
const (
	ackTimeout  = 14 // 4.096 µs × 2^14: 67 ms a try
	ackRetries  = 3
	rnrRetries  = 6
	rnrTimer    = 12 // the peer comes back after 0.64 ms where no receive was posted
	hopLimit    = 64
	packetMask  = 1<<24 - 1
	oneAtOnce   = 1 // reads under way
	batch       = 32
	eagerPolls  = 64
	maxRequests = 1 << 14
)

// received marks the identity of a receive, because a failed completion need not say what it was of. The caller's own
// is shifted by one bit.
const received = 1

// Remote is what two ends tell each other to connect their queue pairs.
type Remote struct {
	Queue  uint32 // its number, 24 bits
	Packet uint32 // the first packet's number, 24 bits
	LID    uint16
	GID    GID
	MTU    uint32 // the library's number for it: 1 is 256 bytes, 5 is 4096
}

// Queue is a reliable connected queue pair with a completion queue of its own.
type Queue struct {
	card    *Card
	channel uintptr
	cq      uintptr
	qp      uintptr
	packet  uint32
	depth   int
	// sends and receives are posted and not complete: who posts counts up, who polls counts down.
	sends, receives atomic.Int32
	file            *os.File // a duplicate of the channel's descriptor, in the runtime's poller
	raw             syscall.RawConn

	// What each call hands to C, made once: a fresh one would escape to the heap each time.
	list    sge
	send    sendRequest
	receive receiveRequest
	bad     uintptr
	event   [2]uintptr
	done    [batch]completion
}

// Completion is the end of one posted request.
type Completion struct {
	ID uint64
	// Err is nil or a *StatusError. A failed write may have landed wholly, in part or not at all.
	Err error
	// Received: a receive's, with Length bytes; else a send's, write's or read's.
	Received bool
	Length   int
}

// NewQueue makes a queue pair with room for depth sends and as many receives (1 to 16384). packet is the number of its first
// packet, which should be hard to guess; 24 bits of it count.
func (c *Card) NewQueue(depth int, packet uint32) (*Queue, error) {
	if depth < 1 || depth > maxRequests {
		return nil, fmt.Errorf("verbs: a queue of %d requests cannot be made; 1 to %d can", depth, maxRequests)
	}
	q := &Queue{card: c, depth: depth, packet: packet & packetMask}
	if err := q.build(); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", c.port, err), q.Destroy())
	}
	return q, nil
}

func (q *Queue) build() (err error) {
	c, lib := q.card, q.card.lib
	if q.channel, err = pointer("ibv_create_comp_channel", lib.createChannel, c.context); err != nil {
		return err
	}
	if q.cq, err = pointer("ibv_create_cq", lib.createCQ, c.context, uintptr(2*q.depth), 0, q.channel, 0); err != nil {
		return err
	}
	if err = q.watch(); err != nil {
		return err
	}
	init := &queueInit{sendCQ: q.cq, receiveCQ: q.cq, maxSend: uint32(q.depth), maxReceive: uint32(q.depth),
		maxSendSGE: 1, maxRecvSGE: 1, kind: qpTypeRC, signalAll: 1}
	if q.qp, err = pointer("ibv_create_qp", lib.createQP, c.domain, uintptr(unsafe.Pointer(init))); err != nil {
		return err
	}
	return q.modify("INIT", &queueAttr{state: stateInit, access: accessRemoteWrite | accessRemoteRead, port: uint8(c.port.Port)},
		attrState|attrPKey|attrPort|attrAccess)
}

// watch puts a duplicate of the channel's descriptor into the runtime's poller. The library keeps its own.
func (q *Queue) watch() error {
	fd, err := syscall.Dup(int(int32(word32(q.channel, channelFD))))
	if err != nil {
		return fmt.Errorf("the completion channel cannot be duplicated; are there too many open files? %w", err)
	}
	syscall.CloseOnExec(fd)
	if err := syscall.SetNonblock(fd, true); err != nil {
		return errors.Join(err, syscall.Close(fd))
	}
	q.file = os.NewFile(uintptr(fd), "verbs-completions")
	q.raw, err = q.file.SyscallConn()
	return err
}

func (q *Queue) modify(to string, attr *queueAttr, mask uintptr) error {
	return number("ibv_modify_qp to "+to, q.card.lib.modifyQP, q.qp, uintptr(unsafe.Pointer(attr)), mask)
}

// Local is what the peer needs to Connect.
func (q *Queue) Local() Remote {
	return Remote{Queue: word32(q.qp, queueNumber), Packet: q.packet, LID: q.card.port.LID, GID: q.card.port.GID, MTU: q.card.mtu}
}

// Connect makes the queue pair ready. Receives are posted before, and nothing is sent to it until the peer knows
// that it is ready.
func (q *Queue) Connect(peer Remote) error {
	if q.qp == 0 {
		return ErrClosed
	}
	p := q.card.port
	to := address{lid: peer.LID, port: uint8(p.Port)}
	if p.Ethernet {
		to.global = 1
		to.route = route{gid: peer.GID, index: uint8(p.GIDIndex), hopLimit: hopLimit}
	}
	ready := &queueAttr{state: stateRTR, mtu: min(q.card.mtu, peer.MTU), destQueue: peer.Queue, receivePSN: peer.Packet & packetMask,
		destReads: oneAtOnce, rnrTimer: rnrTimer, address: to}
	err := q.modify("RTR", ready, attrState|attrAddress|attrMTU|attrDestQueue|attrReceivePSN|attrDestReads|attrRNRTimer)
	if err != nil {
		return err
	}
	return q.modify("RTS", &queueAttr{state: stateRTS, sendPSN: q.packet, reads: oneAtOnce, timeout: ackTimeout,
		retries: ackRetries, rnrRetries: rnrRetries}, attrState|attrSendPSN|attrReads|attrTimeout|attrRetries|attrRNRRetries)
}

// PostReceive gives the card memory for one of the peer's sends. Of id 63 bits count.
func (q *Queue) PostReceive(id uint64, m *Memory, offset, length int) error {
	if q.qp == 0 {
		return ErrClosed
	}
	if int(q.receives.Load()) >= q.depth {
		return ErrQueueFull
	}
	var err error
	if q.list, err = m.part(offset, length); err != nil {
		return err
	}
	q.receive = receiveRequest{id: id<<1 | received, list: &q.list, count: 1}
	q.receives.Add(1)
	err = number("ibv_post_recv", q.card.postReceive, q.qp, uintptr(unsafe.Pointer(&q.receive)), uintptr(unsafe.Pointer(&q.bad)))
	if err != nil {
		q.receives.Add(-1)
	}
	return err
}

// Request is a part of registered memory, and for Write and Read where it goes to or comes from.
type Request struct {
	ID      uint64 // 63 bits of it count
	Memory  *Memory
	Offset  int
	Length  int
	Address uint64 // the peer's memory
	Key     uint32
}

// Send sends bytes into the peer's next posted receive. The memory is the card's until the request completes.
func (q *Queue) Send(r Request) error { return q.post("send", opSend, r) }

// Write writes into the peer's memory. Its completion means that the peer's card has it, not that its processor sees it.
func (q *Queue) Write(r Request) error { return q.post("write", opWrite, r) }

// Read reads the peer's memory.
func (q *Queue) Read(r Request) error { return q.post("read", opRead, r) }

func (q *Queue) post(what string, op uint32, r Request) error {
	if q.qp == 0 {
		return ErrClosed
	}
	if int(q.sends.Load()) >= q.depth {
		return ErrQueueFull
	}
	var err error
	if q.list, err = r.Memory.part(r.Offset, r.Length); err != nil {
		return err
	}
	q.send = sendRequest{id: r.ID << 1, list: &q.list, count: 1, op: op, flags: sendSignaled, remote: r.Address, key: r.Key}
	q.sends.Add(1)
	err = number("ibv_post_send ("+what+")", q.card.postSend, q.qp, uintptr(unsafe.Pointer(&q.send)), uintptr(unsafe.Pointer(&q.bad)))
	if err != nil {
		q.sends.Add(-1)
	}
	return err
}

// Poll takes completions that are there, as many as fit, without waiting.
func (q *Queue) Poll(to []Completion) (int, error) {
	if q.cq == 0 {
		return 0, ErrClosed
	}
	r, _, _ := purego.SyscallN(q.card.pollCQ, q.cq, uintptr(min(len(to), batch)), uintptr(unsafe.Pointer(&q.done[0])))
	n := int(int32(r))
	if n < 0 {
		return 0, &CallError{Call: "ibv_poll_cq", Errno: syscall.Errno(-n)}
	}
	for i := range n {
		w := &q.done[i]
		to[i] = Completion{ID: w.id >> 1, Received: w.id&received != 0, Length: int(w.length)}
		if w.status != 0 {
			to[i].Err = &StatusError{Status: Status(w.status), Vendor: w.vendor}
		}
		if to[i].Received {
			q.receives.Add(-1)
		} else {
			q.sends.Add(-1)
		}
	}
	return n, nil
}

// Wait is Poll that waits until something completes: it polls briefly, arms the completion queue, polls once more and sleeps in the
// runtime's poller, until limit has gone by (os.ErrDeadlineExceeded) or the queue is destroyed (os.ErrClosed).
func (q *Queue) Wait(to []Completion, limit time.Duration) (int, error) {
	if q.file == nil {
		return 0, ErrClosed
	}
	if err := q.file.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	for {
		for range eagerPolls {
			if n, err := q.Poll(to); n > 0 || err != nil {
				return n, err
			}
			runtime.Gosched()
		}
		if err := number("ibv_req_notify_cq", q.card.arm, q.cq, 0); err != nil {
			return 0, err
		}
		if n, err := q.Poll(to); n > 0 || err != nil { // it came before the arming
			return n, err
		}
		if err := q.raw.Read(func(uintptr) bool { return q.takeEvent() }); err != nil {
			return 0, err
		}
	}
}

// takeEvent takes one event off the channel; false: there is none.
func (q *Queue) takeEvent() bool {
	lib := q.card.lib
	r, _, _ := purego.SyscallN(lib.getEvent, q.channel, uintptr(unsafe.Pointer(&q.event[0])), uintptr(unsafe.Pointer(&q.event[1])))
	if int32(r) != 0 {
		return false
	}
	_, _, _ = purego.SyscallN(lib.ackEvents, q.event[0], 1)
	return true
}

// Fail moves the queue pair to the error state: everything posted completes, most of it as flushed.
func (q *Queue) Fail() error {
	if q.qp == 0 {
		return ErrClosed
	}
	return q.modify("ERR", &queueAttr{state: stateError}, attrState)
}

// Open gives how many sends, writes and reads, and how many receives are posted and have not completed.
func (q *Queue) Open() (sends, receives int) { return int(q.sends.Load()), int(q.receives.Load()) }

// Destroy ends the queue pair: when it has returned the card applies nothing of it and reads no source. Nothing
// else of the queue's may be in progress. Calls after the first do nothing.
func (q *Queue) Destroy() error {
	lib := q.card.lib
	var errs []error
	end := func(what string, f uintptr, handle *uintptr) {
		if *handle != 0 {
			errs = append(errs, number(what, f, *handle))
			*handle = 0
		}
	}
	end("ibv_destroy_qp", lib.destroyQP, &q.qp)
	end("ibv_destroy_cq", lib.destroyCQ, &q.cq)
	if q.file != nil {
		errs = append(errs, q.file.Close())
		q.file = nil
	}
	end("ibv_destroy_comp_channel", lib.destroyChannel, &q.channel)
	return errors.Join(errs...)
}
