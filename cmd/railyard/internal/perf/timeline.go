package perf

import (
	"bufio"
	"context"
	"fmt"
	"time"

	"railyard/actors"
	"railyard/endpoint"
	"railyard/rail"
)

// sampleEvery is the distance of the timeline's lines.
const sampleEvery = 10 * time.Millisecond

// writeTimeline writes a line `unix_ns total rail0 rail1 …` every 10 ms until ctx ends: running totals of bytes, of
// what the sessions have taken in all, and of what has come in over each rail.
func writeTimeline(ctx context.Context, node *actors.Node, rails []rail.Binding, out *bufio.Writer) error {
	events := node.Events().Subscribe(ctx)
	meter := newMeter(rails)
	var peers []*endpoint.Endpoint
	var gone uint64 // bytes of the endpoints that have ended
	ticker := time.NewTicker(sampleEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			if err := out.Flush(); err != nil {
				return fmt.Errorf("the timeline could not be written to its end: %w", err)
			}
			return nil
		case e := <-events:
			if e.Kind == rail.EndpointUp {
				// The endpoint is there, so this does not wait.
				if p, err := node.Connect(ctx, e.Peer); err == nil {
					peers = append(peers, p)
				}
			}
		case now := <-ticker.C:
			total := gone
			alive := peers[:0]
			for _, p := range peers {
				n := p.Stats().BytesIn
				total += n
				if p.Err() != nil {
					gone += n
					continue
				}
				alive = append(alive, p)
			}
			peers = alive
			if err := writeSample(out, now, total, meter.read()); err != nil {
				return err
			}
		}
	}
}

func writeSample(out *bufio.Writer, at time.Time, total uint64, rails []uint64) error {
	fmt.Fprintf(out, "%d %d", at.UnixNano(), total)
	for _, n := range rails {
		fmt.Fprintf(out, " %d", n)
	}
	if err := out.WriteByte('\n'); err != nil {
		return fmt.Errorf("the timeline cannot be written any more: %w", err)
	}
	return nil
}
