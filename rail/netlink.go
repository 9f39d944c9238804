package rail

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// This file: the LinkSource of a real host.

// linkRoom bounds the netlink updates that wait for the actor; the kernel keeps more, and says when it drops some.
const linkRoom = 64

// errNetlinkEnded: the kernel's stream of updates has ended without a word.
var errNetlinkEnded = errors.New("the kernel ended the stream of link updates")

// netlinkStates reports what netlink tells of links and of their addresses.
func netlinkStates(ctx context.Context, report func(LinkState)) error {
	w := &linkWatch{report: report, links: make(map[int]LinkState), done: make(chan struct{})}
	end := sync.OnceFunc(func() { close(w.done) })
	defer end()
	defer context.AfterFunc(ctx, end)()
	links, addresses := make(chan netlink.LinkUpdate, linkRoom), make(chan netlink.AddrUpdate, linkRoom)
	err := netlink.LinkSubscribeWithOptions(links, w.done, netlink.LinkSubscribeOptions{ListExisting: true, ErrorCallback: w.failed})
	if err != nil {
		return fmt.Errorf("netlink is not there: %w", err)
	}
	defer func() { // its goroutine may be about to hand one over
		end()
		for range links {
		}
	}()
	if err := netlink.AddrSubscribeWithOptions(addresses, w.done, netlink.AddrSubscribeOptions{ErrorCallback: w.failed}); err != nil {
		return fmt.Errorf("netlink does not tell of addresses: %w", err)
	}
	defer func() {
		end()
		for range addresses {
		}
	}()
	for w.next(links, addresses) {
	}
	if ctx.Err() != nil {
		return nil
	}
	return fmt.Errorf("watching local cards: %w", w.cause())
}

// linkWatch is one subscription.
type linkWatch struct {
	report func(LinkState)
	links  map[int]LinkState // by index. Owner: whoever calls next.
	done   chan struct{}

	mu   sync.Mutex
	last error // Owner: mu
}

// failed is called in the goroutine that closes a channel, before it does.
func (w *linkWatch) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = err
}

func (w *linkWatch) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.last == nil {
		return errNetlinkEnded
	}
	return w.last
}

// next reports one update; false: there are no more.
func (w *linkWatch) next(links <-chan netlink.LinkUpdate, addresses <-chan netlink.AddrUpdate) bool {
	const running = unix.IFF_UP | unix.IFF_RUNNING
	select {
	case u, ok := <-links:
		if !ok {
			return false
		}
		gone := u.Header.Type == unix.RTM_DELLINK
		state := LinkState{Device: u.Attrs().Name, Up: !gone && u.IfInfomsg.Flags&running == running, Gone: gone}
		index := int(u.Index)
		old, known := w.links[index]
		w.links[index] = state
		if gone {
			delete(w.links, index)
		}
		if known && old.Device != state.Device { // renamed
			w.report(LinkState{Device: old.Device, Gone: true})
		}
		w.report(state)
	case u, ok := <-addresses:
		if !ok {
			return false
		}
		if state, known := w.links[u.LinkIndex]; known { // else its link is told of soon
			w.report(state)
		}
	}
	return true
}
