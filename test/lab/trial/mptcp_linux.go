package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"railyard/test/lab"
)

// Stream is a kernel stream to compare with.
type Stream struct {
	Multipath bool // MPTCP over all rails, beginning at Rail; else TCP
	Rail      int
}

const (
	streamPort  = 9000
	sampleEvery = 10 * time.Millisecond
)

// Run makes a lab, puts one stream on its rails, and cuts one.
func (s Stream) Run(ctx context.Context, p Plan) (g lab.Gap, t lab.Timeline, err error) {
	l, err := lab.New(p.Lab)
	if err != nil {
		return g, nil, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	from, to, err := s.connect(ctx, l)
	if err != nil {
		return g, nil, err
	}
	flow := startFlow(l, from, to, p.Size)
	m, err := Moments{}, flowing(ctx, l)
	if err == nil {
		m, err = p.disturb(ctx, l)
	}
	t = lively(flow.end())
	if err != nil || len(p.Cuts) == 0 {
		return g, t, err
	}
	g, err = t.Gap(p.Rail, m.Cut, m.Heal)
	return g, t, err
}

// Sum is how many bytes a second plain TCP streams carry, one on each rail, all at the same time, over the plan's After.
func Sum(ctx context.Context, p Plan) (rate float64, err error) {
	l, err := lab.New(p.Lab)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, l.Close()) }()
	var flows []*flow
	defer func() {
		for _, f := range flows {
			f.end()
		}
	}()
	for i := range l.Rails() {
		from, to, err := Stream{Rail: i}.connect(ctx, l)
		if err != nil {
			return 0, err
		}
		flows = append(flows, startFlow(l, from, to, p.Size))
	}
	got := func() (n uint64) {
		for _, f := range flows {
			n += f.got.Load()
		}
		return n
	}
	if err := Pause(ctx, p.Before); err != nil {
		return 0, err
	}
	began, at := got(), time.Now()
	if err := Pause(ctx, p.After); err != nil {
		return 0, err
	}
	return float64(got()-began) / time.Since(at).Seconds(), nil
}

// connect makes the stream. The listener has every address, or MPTCP would stay on one rail without a word.
func (s Stream) connect(ctx context.Context, l *lab.Lab) (from, to net.Conn, err error) {
	if s.Multipath {
		if err := multipath(l); err != nil {
			return nil, nil, err
		}
	}
	var listener net.Listener
	err = l.Do(lab.B, func() (err error) {
		var c net.ListenConfig
		c.SetMultipathTCP(s.Multipath)
		listener, err = c.Listen(ctx, "tcp4", fmt.Sprintf("0.0.0.0:%d", streamPort+s.Rail))
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("trial: no listener for a stream: %w", err)
	}
	defer listener.Close()
	err = l.Do(lab.A, func() (err error) {
		d := net.Dialer{Timeout: settle}
		d.SetMultipathTCP(s.Multipath)
		from, err = d.DialContext(ctx, "tcp4", fmt.Sprintf("%s:%d", l.Address(lab.B, s.Rail), streamPort+s.Rail))
		return err
	})
	if err != nil {
		return nil, nil, fmt.Errorf("trial: no stream: %w", err)
	}
	if to, err = listener.Accept(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("trial: a stream is not accepted: %w", err), from.Close())
	}
	tcp, ok := from.(*net.TCPConn)
	if ok {
		ok, err = tcp.MultipathTCP()
	}
	if err != nil || ok != s.Multipath {
		return nil, nil, errors.Join(fmt.Errorf("%w: the kernel makes no MPTCP stream: %w", ErrTrial, err), from.Close(), to.Close())
	}
	return from, to, nil
}

// multipath has B announce its further addresses, and A use them. There is no library for that; ip(8) knows it.
func multipath(l *lab.Lab) error {
	ip := func(args ...string) error {
		if out, err := exec.Command("ip", append([]string{"mptcp"}, args...)...).CombinedOutput(); err != nil {
			return fmt.Errorf("trial: ip mptcp %v: %w: %s", args, err, out)
		}
		return nil
	}
	for _, s := range []lab.Side{lab.A, lab.B} {
		err := l.Do(s, func() error {
			if err := os.WriteFile("/proc/sys/net/mptcp/enabled", []byte("1"), 0); err != nil {
				return fmt.Errorf("trial: this kernel has no MPTCP: %w", err)
			}
			if err := ip("limits", "set", "subflows", "8", "add_addr_accepted", "8"); err != nil || s == lab.A {
				return err
			}
			for i := 1; i < l.Rails(); i++ {
				if err := ip("endpoint", "add", l.Address(lab.B, i).String(), "dev", fmt.Sprintf("rail%d", i), "signal"); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// flow writes as fast as it goes, and samples what arrives.
//
// Owner: whoever started it; end joins its goroutines.
type flow struct {
	from, to net.Conn
	stop     chan struct{}
	got      atomic.Uint64
	running  sync.WaitGroup
	samples  lab.Timeline // Owner: the sampler, until it is joined
}

func startFlow(l *lab.Lab, from, to net.Conn, size int) *flow {
	f := &flow{from: from, to: to, stop: make(chan struct{})}
	f.running.Go(func() {
		for buf := make([]byte, size); ; {
			if _, err := from.Write(buf); err != nil {
				return
			}
		}
	})
	f.running.Go(func() {
		for buf := make([]byte, max(size, 1<<20)); ; {
			n, err := to.Read(buf)
			f.got.Add(uint64(n))
			if err != nil {
				return
			}
		}
	})
	f.running.Go(func() {
		tick := time.NewTicker(sampleEvery)
		defer tick.Stop()
		for {
			select {
			case <-f.stop:
				return
			case <-tick.C:
			}
			s := lab.Sample{Total: f.got.Load()}
			for i := range l.Rails() {
				n, err := l.Received(lab.B, i)
				if err != nil {
					return
				}
				s.Rails = append(s.Rails, n)
			}
			s.At = time.Now().UnixNano()
			f.samples = append(f.samples, s)
		}
	})
	return f
}

func (f *flow) end() lab.Timeline {
	close(f.stop)
	_, _ = f.from.Close(), f.to.Close()
	f.running.Wait()
	return f.samples
}
