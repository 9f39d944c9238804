package nbd

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
)

// Server serves exports to clients.
type Server struct {
	cfg         Config
	hubs        []*hub // as in cfg.Exports
	generations atomic.Uint64
	open        atomic.Int64 // connections, of all listeners
}

// New checks a configuration. It starts nothing.
func New(cfg Config) (*Server, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg}
	for _, e := range cfg.Exports {
		s.hubs = append(s.hubs, &hub{export: e, conns: make(map[uint64]*conn)})
	}
	return s, nil
}

// acceptPause is how long a listener that fails, for want of descriptors perhaps, is left alone.
const acceptPause = 100 * time.Millisecond

// Serve accepts connections until ctx ends, and then gives requests in flight the time of Config.Grace. It returns nil where ctx ended,
// and otherwise what was wrong with the listener; either way the listener is closed, and every connection from it has ended. It may be
// called for several listeners at a time.
func (s *Server) Serve(ctx context.Context, listener net.Listener) error {
	var conns sync.WaitGroup
	defer conns.Wait()
	inner, stop := context.WithCancel(ctx)
	defer stop() // before the wait: without a listener nothing is served
	defer context.AfterFunc(inner, func() { _ = listener.Close() })()
	for {
		nc, err := listener.Accept()
		switch {
		case err == nil:
		case ctx.Err() != nil:
			return nil
		case isTemporary(err):
			s.cfg.Log.Warn("no connection was accepted", zap.Error(err))
			select {
			case <-time.After(acceptPause):
			case <-ctx.Done():
			}
			continue
		default:
			_ = listener.Close()
			return fmt.Errorf("nbd: the listener at %s failed: %w", listener.Addr(), err)
		}
		if s.open.Add(1) > int64(s.cfg.Connections) {
			s.open.Add(-1)
			_ = nc.Close()
			s.cfg.Log.Debug("a connection too many", zap.Stringer("remote", nc.RemoteAddr()), zap.Int("limit", s.cfg.Connections))
			continue
		}
		conns.Go(func() {
			defer s.open.Add(-1)
			s.serve(inner, nc)
		})
	}
}

// serve is the life of a connection.
func (s *Server) serve(ctx context.Context, nc net.Conn) {
	c := newConn(s, nc)
	defer c.close()
	// From here on c stops reading as soon as ctx ends.
	defer context.AfterFunc(ctx, c.stop)()
	log := s.cfg.Log.With(zap.Stringer("remote", nc.RemoteAddr()))
	err := c.negotiate(ctx)
	if c.hub == nil {
		log.Debug("a client came to no export", zap.Error(err))
		return
	}
	log = log.With(zap.String("export", c.hub.export.Name), zap.Uint64("generation", c.generation))
	if err == nil {
		log.Info("a client has connected", zap.Bool("tls", c.secure))
		err = c.transmit()
	}
	c.hub.part(c)
	c.hub.export.Device.Ended(c.generation)
	log.Info("a client's connection has ended", zap.Error(err))
}

// find gives the export with the name.
func (s *Server) find(name string) *hub {
	if name == "" {
		return s.hubs[0]
	}
	for _, h := range s.hubs {
		if h.export.Name == name {
			return h
		}
	}
	return nil
}

// Client is a connection that is served.
type Client struct {
	Generation uint64 // as Write.Conn
	Export     string
	Remote     net.Addr
	TLS        bool
	InFlight   int // requests
	Writes     bool
}

// Clients gives the connections that are served, in no order.
func (s *Server) Clients() []Client {
	var list []Client
	for _, h := range s.hubs {
		h.mu.Lock()
		for _, c := range h.conns {
			list = append(list, Client{
				Generation: c.generation, Export: h.export.Name, Remote: c.net.RemoteAddr(), TLS: c.secure,
				InFlight: c.budget.inFlight(), Writes: c.wrote || h.export.MultiConn && !h.export.ReadOnly,
			})
		}
		h.mu.Unlock()
	}
	return list
}
