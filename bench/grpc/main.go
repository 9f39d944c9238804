// Grpc is one stream in both directions of grpc-go, without anything above it: no actors. Senders share the stream.
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"railyard/bench/internal/cell"
)

const (
	largest = 1 << 30 // bytes of a message
	service = "railyard.Bench"
	method  = "Stream"
)

func main() { cell.Main(cell.Contender{Serve: serve, Drive: drive}) }

func serve(s cell.Setup) (cell.Reach, error) {
	handler := echo
	switch s.Spec.Load {
	case cell.Ping:
	case cell.Messages:
		handler = func(stream grpc.ServerStream) error { return sink(s, stream) }
	default:
		return cell.Reach{}, cell.ErrNoLoad
	}
	server := grpc.NewServer(grpc.MaxRecvMsgSize(largest), grpc.MaxSendMsgSize(largest))
	server.RegisterService(&grpc.ServiceDesc{ServiceName: service, HandlerType: (*any)(nil), Streams: []grpc.StreamDesc{{
		StreamName: method, ClientStreams: true, ServerStreams: true,
		Handler: func(_ any, stream grpc.ServerStream) error { return handler(stream) },
	}}}, struct{}{})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return cell.Reach{}, fmt.Errorf("no port on loopback: %w", err)
	}
	go func() { s.Tally.Fail(fmt.Errorf("the server ended: %w", server.Serve(l))) }()
	return cell.Reach{Address: l.Addr().String()}, nil
}

func echo(stream grpc.ServerStream) error {
	for {
		m := &wrapperspb.BytesValue{}
		if err := stream.RecvMsg(m); err != nil {
			return err
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
}

// sink counts messages, and tells their senders now and then. A message begins with the number of its sender.
func sink(s cell.Setup, stream grpc.ServerStream) error {
	counter, each := s.Tally.Counter(0), s.Spec.AckEach()
	seen := make([]int, s.Spec.Senders)
	for {
		m := &wrapperspb.BytesValue{}
		if err := stream.RecvMsg(m); err != nil {
			return err
		}
		counter.Add(int64(len(m.Value)))
		who := binary.LittleEndian.Uint32(m.Value)
		if seen[who]++; seen[who]%each == 0 {
			if err := stream.SendMsg(wrapperspb.UInt32(who)); err != nil {
				return err
			}
		}
	}
}

func drive(s cell.Setup) (func() error, error) {
	conn, err := grpc.NewClient("passthrough:///"+s.Peer.Address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largest), grpc.MaxCallSendMsgSize(largest)))
	if err != nil {
		return nil, fmt.Errorf("the server cannot be reached: %w", err)
	}
	desc := grpc.StreamDesc{StreamName: method, ClientStreams: true, ServerStreams: true}
	stream, err := conn.NewStream(context.Background(), &desc, "/"+service+"/"+method)
	if err != nil {
		return nil, fmt.Errorf("no stream to the server: %w", err)
	}
	switch s.Spec.Load {
	case cell.Ping:
		return func() error { return ping(s, stream) }, nil
	case cell.Messages:
		return func() error { return send(s, stream) }, nil
	default:
		return nil, cell.ErrNoLoad
	}
}

func ping(s cell.Setup, stream grpc.ClientStream) error {
	counter := s.Tally.Counter(s.Spec.Size)
	out := &wrapperspb.BytesValue{Value: make([]byte, s.Spec.Size)}
	for {
		began := time.Now()
		if err := stream.SendMsg(out); err != nil {
			return fmt.Errorf("sending a ping: %w", err)
		}
		var in wrapperspb.BytesValue
		if err := stream.RecvMsg(&in); err != nil {
			return fmt.Errorf("waiting for a ping to come back: %w", err)
		}
		s.Tally.Took(time.Since(began))
		counter.Add(s.Spec.Size)
	}
}

// send has all senders send, as their credits allow, and gives those as sinks tell.
func send(s cell.Setup, stream grpc.ClientStream) error {
	var mu sync.Mutex // of the stream's sending half
	var credits []*cell.Credits
	for i := range s.Spec.Senders {
		c := cell.NewCredits(s.Spec.Window)
		credits = append(credits, c)
		m := &wrapperspb.BytesValue{Value: make([]byte, s.Spec.Size)}
		binary.LittleEndian.PutUint32(m.Value, uint32(i))
		go func() {
			for {
				c.Take()
				mu.Lock()
				err := stream.SendMsg(m)
				mu.Unlock()
				if err != nil {
					return // who receives sees it too
				}
			}
		}()
	}
	for {
		var who wrapperspb.UInt32Value
		if err := stream.RecvMsg(&who); err != nil {
			return fmt.Errorf("hearing from the sinks: %w", err)
		}
		credits[who.Value].Give(s.Spec.AckEach())
	}
}
