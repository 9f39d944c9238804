package lab

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// host is one namespace, with a thread of its own that lives in it.
//
// Owner: the Lab. Invariant: links and filter are sockets of the namespace, opened once, and may be used from any thread.
type host struct {
	space  netns.NsHandle
	calls  chan func()
	links  *netlink.Handle
	filter *nftables.Conn
	cards  []netlink.Link
	chains []chains
}

// newHost makes an empty namespace.
func newHost() (*host, error) {
	h := &host{calls: make(chan func()), space: netns.None()}
	born := make(chan error)
	go h.live(born)
	if err := <-born; err != nil {
		return nil, err
	}
	var err error
	if h.links, err = netlink.NewHandleAt(h.space, unix.NETLINK_ROUTE); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: no netlink socket in a new namespace: %w", err), h.close())
	}
	if h.filter, err = nftables.New(nftables.WithNetNSFd(int(h.space)), nftables.AsLasting()); err != nil {
		return nil, errors.Join(fmt.Errorf("lab: no nftables socket in a new namespace: %w", err), h.close())
	}
	lo, err := h.links.LinkByName("lo")
	if err == nil {
		err = h.links.LinkSetUp(lo)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lab: loopback of a new namespace: %w", err), h.close())
	}
	return h, nil
}

// live is the namespace's thread. It is never unlocked, so it ends with this function.
func (h *host) live(born chan<- error) {
	runtime.LockOSThread()
	if unix.Gettid() == os.Getpid() {
		// The process's first thread is what /proc/self and the kernel take for the process: another one has to go.
		began := make(chan error)
		go h.live(began)
		err := <-began
		runtime.UnlockOSThread()
		born <- err
		return
	}
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		born <- fmt.Errorf("lab: no new network namespace; it needs root: %w", err)
		return
	}
	var err error
	if h.space, err = netns.Get(); err != nil {
		born <- fmt.Errorf("lab: a new network namespace cannot be held: %w", err)
		return
	}
	born <- nil
	for call := range h.calls {
		call()
	}
}

// do runs f on the namespace's thread: sockets and processes made there are of that host.
func (h *host) do(f func() error) error {
	done := make(chan error, 1)
	h.calls <- func() { done <- f() }
	return <-done
}

// close lets the namespace go. The kernel takes it down once no process is in it.
func (h *host) close() error {
	close(h.calls)
	var err error
	if h.links != nil {
		h.links.Close()
	}
	if h.filter != nil {
		err = h.filter.CloseLasting()
	}
	if h.space.IsOpen() {
		err = errors.Join(err, h.space.Close())
	}
	return err
}

// card finds rail i's card and gives it an address. up also turns it on.
func (h *host) card(i int, address string) error {
	card, err := h.links.LinkByName(cardName(i))
	if err != nil {
		return fmt.Errorf("lab: the card of rail %d is not there: %w", i, err)
	}
	at, err := netlink.ParseAddr(address)
	if err != nil {
		return fmt.Errorf("lab: the address of rail %d: %w", i, err)
	}
	if err := h.links.AddrAdd(card, at); err != nil {
		return fmt.Errorf("lab: rail %d takes no address %s: %w", i, address, err)
	}
	if err := h.links.LinkSetUp(card); err != nil {
		return fmt.Errorf("lab: the card of rail %d does not come up: %w", i, err)
	}
	h.cards = append(h.cards, card)
	return nil
}

// shape limits what the card sends, in bits a second; 0: not at all. The bucket holds two of the largest packets that the
// kernel builds, or it would be cut into small ones; the queue holds 5 ms.
func (h *host) shape(i int, rate int64) error {
	const bucket = 128 << 10
	of := netlink.QdiscAttrs{LinkIndex: h.cards[i].Attrs().Index, Handle: netlink.MakeHandle(1, 0), Parent: netlink.HANDLE_ROOT}
	if rate <= 0 {
		err := h.links.QdiscDel(&netlink.Tbf{QdiscAttrs: of})
		if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) {
			return fmt.Errorf("lab: rail %d stays shaped: %w", i, err)
		}
		return nil
	}
	bytes := uint64(rate) / 8
	tbf := &netlink.Tbf{QdiscAttrs: of, Rate: bytes, Buffer: netlink.Xmittime(bytes, bucket), Limit: bucket + uint32(bytes/200)}
	if err := h.links.QdiscReplace(tbf); err != nil {
		return fmt.Errorf("lab: rail %d cannot be shaped to %d bits a second: %w", i, rate, err)
	}
	return nil
}

func cardName(i int) string { return fmt.Sprintf("rail%d", i) }
