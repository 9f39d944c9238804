package tcp

import (
	"context"
	"net"
	"time"
)

// callAgain is how long a call may be unanswered before another one goes out beside it. The kernel itself repeats a call
// after a second, then after two: a path that has just healed would stay unused for so long.
const callAgain = 200 * time.Millisecond

// answer is how one call ended.
type answer struct {
	conn net.Conn
	err  error
}

// race calls again and again beside calls that are unanswered, until the first one is answered, or ctx ends. A call that is refused
// ends it too: somebody answers there. Of several connections all but one are closed, unused.
func race(ctx context.Context, call func(context.Context) (net.Conn, error)) (net.Conn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer)
	open := 0
	begin := func() {
		open++
		go func() {
			c, err := call(ctx)
			answers <- answer{c, err}
		}()
	}
	again := time.NewTicker(callAgain)
	defer again.Stop()
	var first answer
	for begin(); open > 0; {
		select {
		case a := <-answers:
			open--
			switch {
			case a.conn == nil:
				if first.conn == nil && first.err == nil {
					first.err = a.err
				}
			case first.conn == nil:
				first = answer{conn: a.conn}
			default:
				_ = a.conn.Close()
			}
			cancel()
		case <-again.C:
			if ctx.Err() == nil {
				begin()
			}
		}
	}
	return first.conn, first.err
}
