package actors

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"railyard/admin"
	"railyard/endpoint"
	"railyard/endpoint/session"
	"railyard/snapshot"
)

// books count what a node has done with all peers: counters that only grow, whichever endpoints come and go.
type books struct {
	began time.Time

	mu sync.Mutex
	// Owner: mu. An endpoint's lock may be taken while it is held.
	live map[*endpoint.Endpoint]struct{}
	past session.Stats // of those that have ended
}

func (b *books) open(e *endpoint.Endpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e.Err() == nil { // else it has ended already, and nobody would take it out
		b.live[e] = struct{}{}
	}
}

// close takes over what an endpoint has counted in its life.
func (b *books) close(e *endpoint.Endpoint) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.live, e)
	add(&b.past, e.Stats())
}

func (b *books) total() session.Stats {
	b.mu.Lock()
	defer b.mu.Unlock()
	total := b.past
	for e := range b.live {
		add(&total, e.Stats())
	}
	return total
}

func add(to *session.Stats, s session.Stats) {
	to.MessagesSent += s.MessagesSent
	to.MessagesReceived += s.MessagesReceived
	to.PutsCompleted += s.PutsCompleted
	to.Canceled += s.Canceled
	to.Refused += s.Refused
	to.Retired += s.Retired
	to.ReroutedBytes += s.ReroutedBytes
	to.BytesIn += s.BytesIn
	to.BytesOut += s.BytesOut
	to.PutTimes = to.PutTimes.Add(s.PutTimes)
	to.GetTimes = to.GetTimes.Add(s.GetTimes)
	to.MessageTimes = to.MessageTimes.Add(s.MessageTimes)
}

func timesOf(t session.Times) snapshot.Times {
	return snapshot.Times{Buckets: t.Buckets[:], Sum: t.Sum}
}

// Snapshot tells what the node is at this moment: peers, rails, counters. It costs a short lock of each endpoint. The admin page and the
// metrics are made of it; its Events and Failovers are empty here.
func (n *Node) Snapshot() snapshot.Node {
	m := n.manager()
	t := n.books.total()
	id := m.Incarnation()
	s := snapshot.Node{
		At: time.Now(), Started: n.books.began, Name: n.cfg.Name, Address: n.address, Incarnation: hex.EncodeToString(id[:]),
		Version: snapshot.ThisBuild().Version, Listening: []string{},
		Totals: snapshot.Totals{
			MessagesSent: t.MessagesSent, MessagesReceived: t.MessagesReceived, Completed: t.PutsCompleted, Canceled: t.Canceled,
			Refused: t.Refused, BytesOut: t.BytesOut, BytesIn: t.BytesIn, Retired: t.Retired, ReroutedBytes: t.ReroutedBytes,
			Puts: timesOf(t.PutTimes), Gets: timesOf(t.GetTimes), Messages: timesOf(t.MessageTimes),
		},
		Regions:   snapshot.Regions{Live: m.Regions().Live(), Limit: m.Regions().Limit()},
		Endpoints: []snapshot.Endpoint{}, Events: []snapshot.Event{}, Failovers: []snapshot.Failover{},
	}
	if s.Name == "" {
		s.Name = n.address
	}
	for _, b := range m.Listening() {
		s.Listening = append(s.Listening, b.Address)
	}
	for _, e := range m.Endpoints() {
		s.Endpoints = append(s.Endpoints, endpointOf(e))
	}
	return s
}

func endpointOf(e *endpoint.Endpoint) snapshot.Endpoint {
	flow, stats := e.Flow(), e.Stats()
	s := snapshot.Endpoint{
		Peer: e.Address(), Name: e.Name(), Window: flow.Window, UnderWay: flow.UnderWay, Full: flow.Full, Open: flow.Open,
		MessagesSent: stats.MessagesSent, MessagesReceived: stats.MessagesReceived, Completed: stats.PutsCompleted,
		Rails: []snapshot.Rail{},
	}
	for _, r := range e.Rails() {
		s.Rails = append(s.Rails, snapshot.OfRail(r))
	}
	return s
}

// show starts the admin page, where one is wanted.
func (n *Node) show() error {
	if n.cfg.Admin == "" {
		return nil
	}
	page, err := admin.Start(admin.Config{Address: n.cfg.Admin, Token: n.cfg.AdminToken, Look: n.Snapshot, Events: n.events})
	if err != nil {
		return fmt.Errorf("%w: Admin: %w", ErrConfig, err)
	}
	n.page = page
	return nil
}

// AdminURL is where the node's page is; empty: it has none (Config.Admin).
func (n *Node) AdminURL() string {
	if n.page == nil {
		return ""
	}
	return n.page.URL()
}

// abandonLimit bounds the end of a node that has just begun.
const abandonLimit = 5 * time.Second

// abandon ends a node that Start does not give out.
func (n *Node) abandon() error {
	ctx, cancel := context.WithTimeout(context.Background(), abandonLimit)
	defer cancel()
	n.system.Extensions.Register(n) // its address is the system's: it carries no other node any more
	return n.Shutdown(ctx)
}
