package admin

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"regexp"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"railyard/metrics"
	"railyard/rail"
	"railyard/snapshot"
)

// Errors of Start.
var (
	// ErrOpen: others could look, and nothing would ask them who they are.
	ErrOpen = errors.New("an admin page that other hosts can reach needs a token: set one, or listen on 127.0.0.1")
	// ErrToken: a token that can be guessed is none.
	ErrToken = fmt.Errorf("the admin page's token is too short: give one of at least %d characters, as of `openssl rand -hex 16`", minToken)
	// ErrAddress: no address to listen on.
	ErrAddress = errors.New("the admin page's address is no IP address with a port, such as 127.0.0.1:7480")
	// ErrListen: the address cannot be listened on.
	ErrListen = errors.New("the admin page cannot listen")
	// ErrPanel: two panels of one name, or a name that does not fit into a URL.
	ErrPanel = errors.New("a panel needs a name of its own, of small letters and digits")
)

// The bounds of a page.
const (
	minToken       = 16
	maxConnections = 128
	maxViewers     = 32 // of them that stream
	maxCommand     = 4 << 10
	maxHeader      = 16 << 10
	writeLimit     = 10 * time.Second
	closeLimit     = 2 * time.Second
)

// Config of a page.
type Config struct {
	// Address is where it listens, an IP address with a port; port 0 takes a free one.
	Address string
	// Token is asked of everybody who looks. Empty: nothing is asked, and Address must be on loopback.
	Token string
	// Look makes a snapshot; it is called at most twice a second, and at each scrape of the metrics. Required.
	Look func() snapshot.Node
	// Events are the node's; nil: there is no event log.
	Events *rail.Events
	// Panels are what the application shows and takes beside the node.
	Panels []Panel
}

// Panel is a part of the page that belongs to the application.
type Panel struct {
	// Name is in the URL and in snapshot.Node.Panels: small letters and digits.
	Name string
	// Script is a JavaScript module that the page loads; its default export is described in page/page.js. Nil: the state is in
	// /api/state, and nothing is drawn.
	Script []byte
	// State gives what /api/state has of the panel, for encoding/json. Nil: nothing.
	State func() any
	// Act carries a command out, one line of text from whoever may look. Its error is shown there. Nil: it takes none.
	Act func(ctx context.Context, command string) error
}

// Server is a page that listens.
type Server struct {
	cfg      Config
	listener net.Listener
	server   *http.Server
	log      snapshot.Log
	state    state
	watcher  *metrics.Watcher
	viewers  chan struct{} // one for each that streams

	stop    context.CancelFunc
	running sync.WaitGroup
	once    sync.Once
	err     error
}

// Validate tells whether Start would refuse the address and the token.
func Validate(address, token string) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("%w: it is %q", ErrAddress, address)
	}
	if token == "" && !ap.Addr().IsLoopback() {
		return fmt.Errorf("%w (the address is %s)", ErrOpen, address)
	}
	if token != "" && len(token) < minToken {
		return ErrToken
	}
	return nil
}

// Start listens. The error wraps ErrAddress, ErrOpen, ErrToken, ErrListen or ErrPanel; nothing is left open then.
func Start(cfg Config) (*Server, error) {
	if err := Validate(cfg.Address, cfg.Token); err != nil {
		return nil, err
	}
	if err := checkPanels(cfg.Panels); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", cfg.Address)
	if err != nil {
		return nil, fmt.Errorf("%w on %s: %w", ErrListen, cfg.Address, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	s := &Server{cfg: cfg, listener: limited(listener), viewers: make(chan struct{}, maxViewers), stop: stop}
	s.state.sample = s.sample
	registry := prometheus.NewRegistry()
	registry.MustRegister(metrics.Collector(cfg.Look), collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if s.watcher, err = metrics.Watch(cfg.Events, registry); err != nil {
		stop()
		return nil, errors.Join(err, listener.Close())
	}
	events := cfg.Events.Subscribe(ctx)
	s.running.Go(func() { s.log.Follow(events) })
	s.server = &http.Server{
		Handler:     s.handler(promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: 2})),
		BaseContext: func(net.Listener) context.Context { return ctx }, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second,
		WriteTimeout: 3 * writeLimit, IdleTimeout: time.Minute, MaxHeaderBytes: maxHeader, ErrorLog: discarded,
	}
	s.running.Go(func() { _ = s.server.Serve(s.listener) }) // it ends with Close, and has nothing else to say
	return s, nil
}

var panelName = regexp.MustCompile(`^[a-z][a-z0-9]{0,31}$`)

func checkPanels(panels []Panel) error {
	known := make(map[string]bool)
	for _, p := range panels {
		if !panelName.MatchString(p.Name) || known[p.Name] {
			return fmt.Errorf("%w: %q", ErrPanel, p.Name)
		}
		known[p.Name] = true
	}
	return nil
}

// URL is where the page is.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/" }

// Close ends the page and everybody's look at it. Each call gives what the first one gave.
func (s *Server) Close() error {
	s.once.Do(func() {
		s.stop() // streams end by it
		ctx, cancel := context.WithTimeout(context.Background(), closeLimit)
		defer cancel()
		if err := s.server.Shutdown(ctx); err != nil {
			s.err = fmt.Errorf("the admin page did not close in order: %w", errors.Join(err, s.server.Close()))
		}
		s.running.Wait()
		s.watcher.Close()
	})
	return s.err
}

// limitedListener lets maxConnections live at a time; more wait in the kernel's queue.
type limitedListener struct {
	net.Listener
	slots chan struct{}
	over  chan struct{}
	once  sync.Once
}

func limited(l net.Listener) net.Listener {
	return &limitedListener{Listener: l, slots: make(chan struct{}, maxConnections), over: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.over:
		return nil, net.ErrClosed
	}
	c, err := l.Listener.Accept()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{Conn: c, listener: l}, nil
}

// Close implements net.Listener.
func (l *limitedListener) Close() error {
	l.once.Do(func() { close(l.over) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	listener *limitedListener
	once     sync.Once
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { <-c.listener.slots })
	return err
}
