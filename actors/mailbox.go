package actors

import (
	"fmt"
	"reflect"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/asynkron/protoactor-go/actor"
)

// This file looks into protoactor: which mailbox an actor's process has, whether the process was told to stop, and whether a
// mailbox is at work. None of that is exported, and nothing else tells when a message has been processed (see
// docs/decisions/0013-room-for-what-is-processed.md). It reads only, and only what protoactor itself reads atomically or
// never changes.

// inside says where these things are; found once, by name and type.
var inside, errInside = lookInside(reflect.TypeFor[actor.ActorProcess]())

type insideProcess struct{ mailbox, dead uintptr }

// lookInside finds the fields. An error says that protoactor has changed.
func lookInside(process reflect.Type) (insideProcess, error) {
	box, ok := process.FieldByName("mailbox")
	if !ok || box.Type != reflect.TypeFor[actor.Mailbox]() {
		return insideProcess{}, fmt.Errorf("%w: %s has no field mailbox of type actor.Mailbox", ErrProtoactor, process)
	}
	dead, ok := process.FieldByName("dead")
	if !ok || dead.Type != reflect.TypeFor[int32]() {
		return insideProcess{}, fmt.Errorf("%w: %s has no field dead of type int32", ErrProtoactor, process)
	}
	return insideProcess{mailbox: box.Offset, dead: dead.Offset}, nil
}

// mailbox is an actor's, as it is seen from outside.
type mailbox struct {
	box actor.Mailbox
	// status is what the mailbox is doing: idle or not. Nil: this kind of mailbox does not show it.
	status *int32
}

// mailboxIdle is the status of a mailbox that runs nothing.
const mailboxIdle = 0

func mailboxOf(p *actor.ActorProcess) mailbox {
	box := *(*actor.Mailbox)(unsafe.Add(unsafe.Pointer(p), inside.mailbox))
	return mailbox{box: box, status: statusOf(box)}
}

// toldToStop: the process takes no messages, or soon will not.
func toldToStop(p *actor.ActorProcess) bool {
	return atomic.LoadInt32((*int32)(unsafe.Add(unsafe.Pointer(p), inside.dead))) != 0
}

// unprocessed is how many user messages are not processed, at most. Where the mailbox does not show what it is
// doing, the one that the actor has in hand counts as processed.
func (m mailbox) unprocessed() int {
	n := max(m.box.UserMessageCount(), 0)
	// In this order: a mailbox that is found empty and then idle has been through with everything.
	if m.status != nil && atomic.LoadInt32(m.status) != mailboxIdle {
		n++
	}
	return n
}

// statusOffsets are where each kind of mailbox keeps its status; -1: nowhere.
var statusOffsets sync.Map // by reflect.Type

func statusOf(box actor.Mailbox) *int32 {
	v := reflect.ValueOf(box)
	if v.Kind() != reflect.Pointer {
		return nil
	}
	offset, ok := statusOffsets.Load(v.Type())
	if !ok {
		offset = statusOffset(v.Type().Elem())
		statusOffsets.Store(v.Type(), offset)
	}
	at := offset.(int)
	if at < 0 {
		return nil
	}
	return (*int32)(unsafe.Add(v.UnsafePointer(), at))
}

// statusOffset knows protoactor's own mailbox only: in another's a field of that name may mean anything.
func statusOffset(t reflect.Type) int {
	own := reflect.TypeOf(actor.Unbounded()()).Elem()
	f, ok := own.FieldByName("schedulerStatus")
	if t != own || !ok || f.Type != reflect.TypeFor[int32]() {
		return -1
	}
	return int(f.Offset)
}
