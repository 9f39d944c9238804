package nbd

import (
	"context"
	"math/rand/v2"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func serveHolding(t *testing.T, cfg Config, e Export) (*scripted, *Server, string) {
	d := holding()
	e.Device = d
	cfg.Exports = []Export{e}
	s, address := serving(t, cfg)
	return d, s, address
}

// TestRequestsOverlap: many are in progress at a time, and are answered in the order in which they are done.
func TestRequestsOverlap(t *testing.T) {
	d, _, address := serveHolding(t, Config{}, Export{})
	c := connected(t, address, false)
	for i := range uint64(10) {
		c.request(request{command: cmdWrite, cookie: i, offset: 4096 * i, length: 1}, []byte{byte(i)})
	}
	calls := make(map[uint64]*call)
	for range 10 {
		x := d.next(t)
		calls[x.write.Cookie] = x
	}
	for _, i := range []uint64{3, 9, 0, 1, 8, 2, 7, 4, 6, 5} {
		calls[i].goOn <- nil
		assert.Equal(t, answer{cookie: i}, c.reply(0))
	}
}

// TestRequestsAreLimited by number: what is too much is not even read.
func TestRequestsAreLimited(t *testing.T) {
	d, s, address := serveHolding(t, Config{Requests: 3}, Export{})
	c := connected(t, address, false)
	for i := range uint64(10) {
		c.request(request{command: cmdWrite, cookie: i, offset: 4096 * i, length: 1}, []byte{1})
	}
	calls := []*call{d.next(t), d.next(t), d.next(t)}
	d.none(t)
	assert.Equal(t, 3, s.Clients()[0].InFlight)
	for i := range 10 {
		calls[i].goOn <- nil
		c.reply(0)
		if i < 7 {
			calls = append(calls, d.next(t))
			d.none(t)
		}
	}
}

// TestBytesAreLimited: two reads of the largest size at a time, or a few small ones.
func TestBytesAreLimited(t *testing.T) {
	d, _, address := serveHolding(t, Config{MaxPayload: 64 << 10, Bytes: 130 << 10}, Export{})
	c := connected(t, address, false)
	for i := range uint64(3) {
		c.request(request{command: cmdRead, cookie: i, length: 64 << 10})
	}
	first, second := d.next(t), d.next(t)
	d.none(t)
	first.goOn <- nil
	c.reply(64 << 10)
	third := d.next(t)
	second.goOn <- nil
	c.reply(64 << 10)
	third.goOn <- nil
	c.reply(64 << 10)
}

// TestOverlappingWritesTakeTurns, whichever connection they come from; others go on meanwhile.
func TestOverlappingWritesTakeTurns(t *testing.T) {
	d, _, address := serveHolding(t, Config{}, Export{MultiConn: true})
	a, b := connected(t, address, false), connected(t, address, false)
	a.request(request{command: cmdWrite, cookie: 1, offset: 100, length: 100}, fill(100, 1))
	first := d.next(t)
	b.request(request{command: cmdWrite, cookie: 2, offset: 199, length: 100}, fill(100, 2))
	d.none(t)
	b.request(request{command: cmdTrim, cookie: 3, offset: 0, length: 101})
	d.none(t)
	b.request(request{command: cmdWriteZeroes, cookie: 4, offset: 298, length: 5})
	d.none(t)
	b.request(request{command: cmdWrite, cookie: 5, offset: 200, length: 1}, []byte{5})
	d.none(t)
	a.request(request{command: cmdWrite, cookie: 6, offset: 400, length: 100}, fill(100, 6))
	beside := d.next(t)
	assert.EqualValues(t, 6, beside.write.Cookie)
	beside.goOn <- nil
	a.reply(0)

	first.goOn <- nil
	a.reply(0)
	x, y := d.next(t), d.next(t) // those that waited for the first alone
	assert.ElementsMatch(t, []uint64{2, 3}, []uint64{x.write.Cookie, y.write.Cookie})
	d.none(t)
	x.goOn <- nil
	y.goOn <- nil
	x, y = d.next(t), d.next(t)
	assert.ElementsMatch(t, []uint64{4, 5}, []uint64{x.write.Cookie, y.write.Cookie})
	x.goOn <- nil
	y.goOn <- nil
	for range 4 {
		b.reply(0)
	}
}

// TestDeathCancels: the requests of a connection that has died are told so, and the device hears of its end after they have returned.
// What overlaps them waits until then.
func TestDeathCancels(t *testing.T) {
	d, _, address := serveHolding(t, Config{}, Export{MultiConn: true})
	a, b := connected(t, address, false), connected(t, address, false)
	a.request(request{command: cmdWrite, cookie: 1, offset: 0, length: 10}, fill(10, 1))
	first := d.next(t)
	a.request(request{command: cmdWrite, cookie: 2, offset: 0, length: 10}, fill(10, 2)) // waits, and never comes to anything
	b.request(request{command: cmdWrite, cookie: 3, offset: 5, length: 10}, fill(10, 3))
	d.none(t)
	require.NoError(t, a.conn.Close())
	last := d.next(t)
	assert.EqualValues(t, 3, last.write.Cookie)
	require.Error(t, first.ctx.Err())
	last.goOn <- nil
	b.reply(0)
	require.Eventually(t, func() bool { return d.hasEnded(first.write.Conn) }, patience, time.Millisecond)
	assert.False(t, d.hasEnded(last.write.Conn))
}

// TestDisconnectWaits: what a client has asked for before it takes its leave is done, and answered.
func TestDisconnectWaits(t *testing.T) {
	d, _, address := serveHolding(t, Config{}, Export{})
	c := connected(t, address, false)
	c.request(request{command: cmdWrite, cookie: 1, length: 10}, fill(10, 1))
	x := d.next(t)
	c.request(request{command: cmdDisconnect})
	d.none(t)
	require.NoError(t, x.ctx.Err())
	x.goOn <- nil
	assert.Equal(t, answer{cookie: 1}, c.reply(0))
	c.hungUp()
	assert.True(t, d.hasEnded(x.write.Conn))
}

// TestStop: requests in flight are finished, nothing more is read, and a client that goes on is disconnected.
func TestStop(t *testing.T) {
	d := holding()
	_, address, stop := startServer(t, Config{Exports: []Export{{Device: d}}})
	c := connected(t, address, false)
	shaking := greeted(t, address)
	c.request(request{command: cmdWrite, cookie: 1, length: 10}, fill(10, 1))
	x := d.next(t)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stop()
	}()
	shaking.hungUp()
	require.NoError(t, x.ctx.Err())
	x.goOn <- nil
	assert.Equal(t, answer{cookie: 1}, c.reply(0))
	c.hungUp()
	<-ended
	_, err := net.Dial("unix", address)
	require.Error(t, err)
}

// TestStopIsNotPatientForEver: a device that does not answer is told after Grace.
func TestStopIsNotPatientForEver(t *testing.T) {
	d := holding()
	_, address, stop := startServer(t, Config{Grace: 20 * time.Millisecond, Exports: []Export{{Device: d}}})
	c := connected(t, address, false)
	c.request(request{command: cmdWrite, cookie: 1, length: 10}, fill(10, 1))
	x := d.next(t)
	stop()
	require.ErrorIs(t, context.Cause(x.ctx), errGrace)
	c.hungUp()
}

// TestClientThatDoesNotRead holds up nobody but itself, and is no obstacle to a stop.
func TestClientThatDoesNotRead(t *testing.T) {
	cfg := Config{Grace: 20 * time.Millisecond, Exports: []Export{{Device: NewMemory(testSize)}}}
	_, address, stop := startServer(t, cfg)
	deaf := connected(t, address, false)
	go func() {
		for range 1000 { // answers of 128 MiB
			if _, err := deaf.conn.Write(requestBytes(request{command: cmdRead, length: 128 << 10})); err != nil {
				return
			}
		}
	}()
	c := connected(t, address, false)
	for range 100 {
		assert.Len(t, c.read(0, 4096), 4096)
	}
	stop()
}

// TestLateWrites is the reason for the hub: a client gives up a connection that has stalled in the middle of a write, writes the same
// again on another one, then writes newer data there. Whatever the first connection brings then changes nothing.
func TestLateWrites(t *testing.T) {
	d := NewMemory(testSize)
	_, address := serving(t, Config{Exports: []Export{{Device: d}}})
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 1000 {
		old, current := byte(i%100), byte(100+i%100)
		offset := uint64(random.IntN(testSize - 8192))
		stalled := connected(t, address, false)
		if i%2 == 0 { // one that has written already, and one that has not
			require.Equal(t, codeOK, stalled.write(offset, fill(10, old)).result)
		}
		late := append(requestBytes(request{command: cmdWrite, offset: offset, length: 8192}), fill(8192, old)...)
		cut := random.IntN(len(late))
		stalled.send(late[:cut])

		retry := connected(t, address, false)
		require.Equal(t, codeOK, retry.write(offset, fill(8192, old)).result)
		require.Equal(t, codeOK, retry.write(offset, fill(8192, current)).result)
		_, _ = stalled.conn.Write(late[cut:]) // fails where the server has closed it already
		stalled.hungUp()
		require.Equal(t, fill(8192, current), retry.read(offset, 8192), "%d: cut at %d of %d", i, cut, len(late))
		retry.disconnect()
	}
}

// TestLateWriteInTheDevice: the same where the stalled write is in the device's hands, or waits before it.
func TestLateWriteInTheDevice(t *testing.T) {
	d, _, address := serveHolding(t, Config{}, Export{})
	for range 100 {
		stalled, monitor := connected(t, address, false), connected(t, address, false)
		stalled.request(request{command: cmdWrite, cookie: 1, length: 10}, fill(10, 1))
		first := d.next(t)
		stalled.request(request{command: cmdWrite, cookie: 2, length: 10}, fill(10, 2))
		retry := connected(t, address, false)
		retry.request(request{command: cmdWrite, cookie: 3, length: 10}, fill(10, 3))
		x := d.next(t)
		require.EqualValues(t, 3, x.write.Cookie)
		require.ErrorIs(t, context.Cause(first.ctx), errFenced)
		x.goOn <- nil
		retry.reply(0)
		stalled.hungUp()
		monitor.request(request{command: cmdRead, length: 10}) // those that only read stay
		d.next(t).goOn <- nil
		assert.Equal(t, fill(10, 3), monitor.reply(10).data)
		retry.disconnect()
		require.NoError(t, monitor.conn.Close())
	}
}

// TestListen: a socket that a dead process left is taken over, one that is in use is not, and nor is a file.
func TestListen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	dead, err := net.Listen("unix", path)
	require.NoError(t, err)
	dead.(*net.UnixListener).SetUnlinkOnClose(false)
	require.NoError(t, dead.Close())
	l, err := Listen(t.Context(), "unix:"+path)
	require.NoError(t, err)
	_, err = Listen(t.Context(), "unix:"+path)
	require.ErrorContains(t, err, "somebody serves")
	require.NoError(t, l.Close())

	tcp, err := Listen(t.Context(), "127.0.0.1:0")
	require.NoError(t, err)
	_, err = Listen(t.Context(), tcp.Addr().String())
	require.ErrorContains(t, err, "HOST:PORT or unix:PATH")
	require.NoError(t, tcp.Close())
	_, err = Listen(t.Context(), "unix:"+t.TempDir())
	require.ErrorContains(t, err, "cannot make the socket")
}

// TestListenerFails: Serve says so.
func TestListenerFails(t *testing.T) {
	s, err := New(twoExports())
	require.NoError(t, err)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	require.ErrorIs(t, s.Serve(t.Context(), l), net.ErrClosed)
}
