package lab

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"github.com/vishvananda/netlink"
)

// ErrNotRoot: this process may not make namespaces, and the kernel lets nobody have his own.
var ErrNotRoot = errors.New("not root: a lab needs root, or a kernel that allows user namespaces")

// again marks a process that is the second life of one that was not root.
const again = "RAILYARD_LAB_ENTERED"

// Enter makes sure that this process can make labs. Where it is not root it runs the same program once more, as root of a user
// namespace of its own, and exits with what that one came to. The error wraps ErrNotRoot.
func Enter() error {
	if os.Geteuid() == 0 {
		return able()
	}
	if os.Getenv(again) != "" {
		return fmt.Errorf("%w (a user namespace did not make it root)", ErrNotRoot)
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("%w (this program does not know its own file: %w)", ErrNotRoot, err)
	}
	me := exec.Command(self, os.Args[1:]...)
	me.Stdin, me.Stdout, me.Stderr = os.Stdin, os.Stdout, os.Stderr
	me.Env = append(os.Environ(), again+"=1")
	root := func(id int) []syscall.SysProcIDMap { return []syscall.SysProcIDMap{{HostID: id, Size: 1}} }
	me.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL,
		UidMappings: root(os.Getuid()), GidMappings: root(os.Getgid()),
	}
	runtime.LockOSThread() // the child is killed when the thread that started it dies
	err = me.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return fmt.Errorf("%w (%w)", ErrNotRoot, err)
	}
	os.Exit(me.ProcessState.ExitCode())
	return nil
}

// able finds out whether root may do here what root usually may.
func able() error {
	h, err := newHost()
	if err != nil {
		return fmt.Errorf("%w (%w)", ErrNotRoot, err)
	}
	defer h.close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name = "probe0"
	if err := h.links.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "probe1"}); err != nil {
		return fmt.Errorf("%w (no virtual cables: %w)", ErrNotRoot, err)
	}
	return nil
}
