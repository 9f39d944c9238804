//go:build linux && amd64 && !noverbs

package verbs

import (
	"fmt"
	"sync"
	"syscall"
	"unsafe"

	"github.com/ebitengine/purego"
)

// libraryName is the library's binary interface that layout.go describes.
const libraryName = "libibverbs.so.1"

// library holds the addresses of the functions that are called by name. What is called often goes through the card's
// own table (layout.go).
type library struct {
	deviceList, freeDeviceList, deviceName, openDevice, closeDevice uintptr
	queryPort                                                       uintptr
	allocPD, freePD                                                 uintptr
	createChannel, destroyChannel, createCQ, destroyCQ              uintptr
	getEvent, ackEvents                                             uintptr
	register, deregister                                            uintptr
	createQP, modifyQP, destroyQP                                   uintptr
}

// open opens the library once; what it gave is what everybody gets.
var open = sync.OnceValues(func() (*library, error) { return openLibrary(libraryName) })

func openLibrary(name string) (*library, error) {
	handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", ErrNoLibrary, err)
	}
	l := &library{}
	for symbol, to := range map[string]*uintptr{
		"ibv_get_device_list": &l.deviceList, "ibv_free_device_list": &l.freeDeviceList,
		"ibv_get_device_name": &l.deviceName, "ibv_open_device": &l.openDevice, "ibv_close_device": &l.closeDevice,
		"ibv_query_port": &l.queryPort, "ibv_alloc_pd": &l.allocPD, "ibv_dealloc_pd": &l.freePD,
		"ibv_create_comp_channel": &l.createChannel, "ibv_destroy_comp_channel": &l.destroyChannel,
		"ibv_create_cq": &l.createCQ, "ibv_destroy_cq": &l.destroyCQ,
		"ibv_get_cq_event": &l.getEvent, "ibv_ack_cq_events": &l.ackEvents,
		"ibv_reg_mr": &l.register, "ibv_dereg_mr": &l.deregister,
		"ibv_create_qp": &l.createQP, "ibv_modify_qp": &l.modifyQP, "ibv_destroy_qp": &l.destroyQP,
	} {
		if *to, err = purego.Dlsym(handle, symbol); err != nil {
			return nil, fmt.Errorf("%s lacks %s, is it from rdma-core? %w (%w)", name, symbol, ErrNoLibrary, err)
		}
	}
	return l, nil
}

// Available is nil where the library can be opened, and else says what is missing: ErrNoLibrary. Devices are Look's business.
func Available() error {
	_, err := open()
	return err
}

// pointer calls a function that gives a pointer, or null and an error number.
//
//go:uintptrescapes
func pointer(what string, f uintptr, args ...uintptr) (uintptr, error) {
	p, _, errno := purego.SyscallN(f, args...)
	if p == 0 {
		return 0, &CallError{Call: what, Errno: syscall.Errno(errno)}
	}
	return p, nil
}

// number calls a function that gives 0 or an error number.
//
//go:uintptrescapes
func number(what string, f uintptr, args ...uintptr) error {
	r, _, _ := purego.SyscallN(f, args...)
	if n := int32(r); n != 0 {
		return &CallError{Call: what, Errno: syscall.Errno(max(n, -n))}
	}
	return nil
}

// CallError is a refusal of the library's. It unwraps to the system's error number.
type CallError struct {
	Call  string
	Errno syscall.Errno
}

func (e *CallError) Error() string { return "verbs: " + e.Call + ": " + e.Errno.Error() }

func (e *CallError) Unwrap() error { return e.Errno }

// word32 and word read what the library owns. The detour keeps vet from taking its memory for Go's.
func word32(p, offset uintptr) uint32 {
	p += offset
	return **(**uint32)(unsafe.Pointer(&p))
}

func word(p, offset uintptr) uintptr {
	p += offset
	return **(**uintptr)(unsafe.Pointer(&p))
}

// text copies a C string of at most 256 bytes.
func text(p uintptr) string {
	var b []byte
	for len(b) < 256 {
		c := **(**byte)(unsafe.Pointer(&p))
		if c == 0 {
			break
		}
		b = append(b, c)
		p++
	}
	return string(b)
}
