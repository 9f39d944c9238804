package cell

import "sync"

// Credits hold a sender back until its sink has told of messages: what an application does over a remote whose queues have no
// bound. Take waits, and Give wakes it.
type Credits struct {
	mu   sync.Mutex
	some sync.Cond
	left int
}

// NewCredits has room for that many messages under way.
func NewCredits(window int) *Credits {
	c := &Credits{left: window}
	c.some.L = &c.mu
	return c
}

// Take waits for room for one message.
func (c *Credits) Take() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.left == 0 {
		c.some.Wait()
	}
	c.left--
}

// Give makes room again.
func (c *Credits) Give(messages int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left += messages
	c.some.Signal()
}
