// Nats is NATS core: a broker that lives in the server's process, whose sinks are its own clients in that process; the driver is a
// client over TCP. Senders share its connection.
package main

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"railyard/bench/internal/cell"
)

// Limits, in bytes: of a message, and of what waits for a client.
const (
	largest = 8 << 20
	pending = 256 << 20
)

// readyWait bounds the wait for the broker, and for an answer.
const readyWait = 10 * time.Second

func main() { cell.Main(cell.Contender{Serve: serve, Drive: drive}) }

func serve(s cell.Setup) (cell.Reach, error) {
	broker, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true, MaxPayload: largest, MaxPending: pending,
	})
	if err != nil {
		return cell.Reach{}, fmt.Errorf("no broker: %w", err)
	}
	go broker.Start()
	if !broker.ReadyForConnections(readyWait) {
		return cell.Reach{}, errors.New("the broker does not get ready")
	}
	conn, err := nats.Connect("", nats.InProcessServer(broker))
	if err != nil {
		return cell.Reach{}, fmt.Errorf("the sinks cannot reach the broker: %w", err)
	}
	switch s.Spec.Load {
	case cell.Ping:
		_, err = conn.Subscribe("echo", func(m *nats.Msg) {
			if err := m.Respond(m.Data); err != nil {
				s.Tally.Fail(fmt.Errorf("sending a ping back: %w", err))
			}
		})
	case cell.Messages:
		for i := range s.Spec.Senders {
			if err = sink(s, conn, i); err != nil {
				break
			}
		}
	default:
		err = cell.ErrNoLoad
	}
	return cell.Reach{Address: broker.ClientURL()}, errors.Join(err, conn.Flush())
}

func sinkName(i int) string { return fmt.Sprintf("sink%d", i) }
func tellName(i int) string { return fmt.Sprintf("tell%d", i) }

// sink counts messages, and tells their sender now and then.
func sink(s cell.Setup, conn *nats.Conn, i int) error {
	counter, seen, each := s.Tally.Counter(0), 0, s.Spec.AckEach()
	_, err := conn.Subscribe(sinkName(i), func(m *nats.Msg) {
		counter.Add(int64(len(m.Data)))
		if seen++; seen%each == 0 {
			if err := conn.Publish(tellName(i), nil); err != nil {
				s.Tally.Fail(fmt.Errorf("telling a sender: %w", err))
			}
		}
	})
	return err
}

func drive(s cell.Setup) (func() error, error) {
	conn, err := nats.Connect(s.Peer.Address)
	if err != nil {
		return nil, fmt.Errorf("the broker cannot be reached: %w", err)
	}
	switch s.Spec.Load {
	case cell.Ping:
		return func() error { return ping(s, conn) }, nil
	case cell.Messages:
		return func() error { return send(s, conn) }, nil
	default:
		return nil, cell.ErrNoLoad
	}
}

func ping(s cell.Setup, conn *nats.Conn) error {
	counter := s.Tally.Counter(s.Spec.Size)
	out := make([]byte, s.Spec.Size)
	for {
		began := time.Now()
		if _, err := conn.Request("echo", out, readyWait); err != nil {
			return fmt.Errorf("a ping does not come back: %w", err)
		}
		s.Tally.Took(time.Since(began))
		counter.Add(s.Spec.Size)
	}
}

// send has all senders send, as their credits allow.
func send(s cell.Setup, conn *nats.Conn) error {
	payload := make([]byte, s.Spec.Size)
	failed := make(chan error)
	for i := range s.Spec.Senders {
		credits := cell.NewCredits(s.Spec.Window)
		if _, err := conn.Subscribe(tellName(i), func(*nats.Msg) { credits.Give(s.Spec.AckEach()) }); err != nil {
			return err
		}
		if err := conn.Flush(); err != nil {
			return err
		}
		go func() {
			for {
				credits.Take()
				if err := conn.Publish(sinkName(i), payload); err != nil {
					failed <- err
					return
				}
			}
		}()
	}
	return <-failed
}
