package nbd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// both runs a test with simple and with structured replies.
func both(t *testing.T, test func(t *testing.T, structured bool)) {
	for _, structured := range []bool{false, true} {
		t.Run(fmt.Sprintf("structured=%v", structured), func(t *testing.T) { test(t, structured) })
	}
}

func TestReadsWhatWasWritten(t *testing.T) {
	both(t, func(t *testing.T, structured bool) {
		_, address := serving(t, twoExports())
		c := connected(t, address, structured)
		assert.Equal(t, structured, c.flags&exportDF != 0)
		large := make([]byte, 300_000)
		for i := range large {
			large[i] = byte(i % 251)
		}
		assert.Equal(t, codeOK, c.write(1000, large).result)
		assert.Equal(t, codeOK, c.write(5000, fill(100, 1), flagFUA).result)
		copy(large[4000:], fill(100, 1))
		assert.Equal(t, codeOK, c.do(request{command: cmdFlush}).result)
		assert.Equal(t, codeOK, c.do(request{command: cmdFlush, flags: flagFUA}).result)
		assert.Equal(t, codeOK, c.do(request{command: cmdCache, offset: 1, length: testSize - 1}).result)
		assert.Equal(t, codeOK, c.do(request{command: cmdTrim, flags: flagFUA, offset: 1000, length: 50}).result)
		assert.Equal(t, codeOK, c.do(request{command: cmdWriteZeroes, flags: flagNoHole, offset: 1050, length: 50}).result)
		clear(large[:100])
		assert.True(t, bytes.Equal(large, c.read(1000, len(large))))
		assert.Equal(t, make([]byte, 1000), c.read(0, 1000))
		c.disconnect()
	})
}

// TestRequestsRefused: each gets its error, and the stream stays in step.
func TestRequestsRefused(t *testing.T) {
	cfg := Config{MaxPayload: 64 << 10, Exports: []Export{
		{Name: "disk", Device: NewMemory(testSize), MinBlock: 512},
		{Name: "ro", Device: NewMemory(testSize), ReadOnly: true},
	}}
	_, address := serving(t, cfg)
	type refused map[string]struct {
		request request
		want    code
	}
	check := func(t *testing.T, c *client, list refused) {
		for name, x := range list {
			var payload []byte
			if x.request.command == cmdWrite {
				payload = fill(int(x.request.length), 9)
			}
			a := c.do(x.request, payload)
			assert.Equal(t, x.want, a.result, name)
			assert.Equal(t, c.structured, a.why != "", name)
			assert.Equal(t, make([]byte, 512), c.read(512, 512), name)
		}
	}
	both(t, func(t *testing.T, structured bool) {
		list := refused{
			"an unknown command":         {request{command: 4711, length: 512}, codeInvalid},
			"block status":               {request{command: 7, length: 512}, codeInvalid},
			"resize":                     {request{command: 8, offset: 512}, codeInvalid},
			"an unknown flag":            {request{command: cmdRead, flags: 1 << 9, length: 512}, codeInvalid},
			"no hole in a trim":          {request{command: cmdTrim, flags: flagNoHole, length: 512}, codeInvalid},
			"a fast zero":                {request{command: cmdWriteZeroes, flags: 1 << 4, length: 512}, codeInvalid},
			"a flag with a payload":      {request{command: cmdWrite, flags: flagNoHole, length: 512}, codeInvalid},
			"a flush of a range":         {request{command: cmdFlush, length: 512}, codeInvalid},
			"a read of nothing":          {request{command: cmdRead}, codeInvalid},
			"a write of nothing":         {request{command: cmdWrite}, codeInvalid},
			"an odd offset":              {request{command: cmdWrite, offset: 1, length: 512}, codeInvalid},
			"an odd length":              {request{command: cmdWrite, length: 513}, codeInvalid},
			"a read over the end":        {request{command: cmdRead, offset: testSize - 512, length: 1024}, codeInvalid},
			"a write over the end":       {request{command: cmdWrite, offset: testSize - 512, length: 1024}, codeNoSpace},
			"zeroes over the end":        {request{command: cmdWriteZeroes, offset: testSize, length: 512}, codeNoSpace},
			"a trim far behind":          {request{command: cmdTrim, offset: math.MaxUint64 - 511, length: 512}, codeInvalid},
			"an offset that wraps":       {request{command: cmdRead, offset: math.MaxUint64 - 511, length: 1024}, codeInvalid},
			"a trim of nearly all bytes": {request{command: cmdTrim, offset: 512, length: math.MaxUint32 - 511}, codeInvalid},
			"a read of too much":         {request{command: cmdRead, length: 64<<10 + 512}, codeInvalid},
			"a write of too much":        {request{command: cmdWrite, length: 128 << 10}, codeInvalid},
			"a cache behind the end":     {request{command: cmdCache, offset: testSize, length: 512}, codeInvalid},
		}
		if !structured {
			list["do not fragment"] = struct {
				request request
				want    code
			}{request{command: cmdRead, flags: flagDF, length: 512}, codeInvalid}
		}
		check(t, connected(t, address, structured), list)
		c := greeted(t, address)
		c.enter("ro")
		check(t, c, refused{
			"a write":     {request{command: cmdWrite, length: 512}, codePermission},
			"a trim":      {request{command: cmdTrim, length: 512}, codePermission},
			"zeroes":      {request{command: cmdWriteZeroes, length: 512}, codePermission},
			"a FUA write": {request{command: cmdWrite, flags: flagFUA, length: 512}, codePermission},
		})
	})
}

// TestGarbageEndsItsConnectionOnly, at any place of a stream.
func TestGarbageEndsItsConnectionOnly(t *testing.T) {
	_, address := serving(t, twoExports())
	healthy := connected(t, address, false)
	for name, sent := range map[string][]byte{
		"no magic":                pack(uint32(1), make([]byte, 24)),
		"a payload of gigabytes":  requestBytes(request{command: cmdWrite, length: math.MaxUint32}),
		"behind a proper request": append(requestBytes(request{command: cmdFlush}), make([]byte, 28)...),
	} {
		c := connected(t, address, false)
		c.send(sent)
		if name == "behind a proper request" {
			assert.LessOrEqual(t, len(c.rest()), 16, name)
		} else {
			c.hungUp()
		}
		assert.Equal(t, codeOK, healthy.write(0, []byte("x")).result, name)
	}
}

// TestDeviceErrors: what the device says becomes the protocol's number and, with structured replies, words.
func TestDeviceErrors(t *testing.T) {
	both(t, func(t *testing.T, structured bool) {
		d := &scripted{Memory: NewMemory(testSize)}
		_, address := serving(t, Config{Exports: []Export{{Device: d}}})
		c := connected(t, address, structured)
		for _, x := range []struct {
			err  error
			want code
		}{
			{errors.New("the disk burns"), codeIO},
			{fmt.Errorf("sector 7: %w", syscall.EIO), codeIO},
			{fmt.Errorf("full: %w", syscall.ENOSPC), codeNoSpace},
			{syscall.EROFS, codePermission},
			{syscall.ENOMEM, codeNoMemory},
			{syscall.EOPNOTSUPP, codeNotSupported},
			{context.DeadlineExceeded, codeShutdown},
			{nil, codeOK},
		} {
			d.fail(x.err)
			for _, q := range []request{
				{command: cmdRead, length: 4096}, {command: cmdWrite, length: 4096}, {command: cmdFlush},
				{command: cmdTrim, length: 4096}, {command: cmdWriteZeroes, length: 4096}, {command: cmdCache, length: 4096},
			} {
				var payload []byte
				if q.command == cmdWrite {
					payload = make([]byte, 4096)
				}
				a := c.do(q, payload)
				assert.Equal(t, x.want, a.result, "%v %d", x.err, q.command)
				if structured && x.err != nil {
					assert.Equal(t, x.err.Error(), a.why)
				}
			}
		}
	})
}

// TestLongErrors are cut, in the middle of a letter perhaps.
func TestLongErrors(t *testing.T) {
	d := &scripted{Memory: NewMemory(testSize)}
	_, address := serving(t, Config{Exports: []Export{{Device: d}}})
	c := connected(t, address, true)
	d.fail(errors.New(string(bytes.Repeat([]byte("é"), 40_000)) + "\xff"))
	assert.Len(t, c.do(request{command: cmdFlush}).why, longestWhy)
}

// TestGone: no answer, so that the client asks again elsewhere.
func TestGone(t *testing.T) {
	d := &scripted{Memory: NewMemory(testSize)}
	_, address := serving(t, Config{Exports: []Export{{Device: d}}})
	c := connected(t, address, true)
	d.fail(fmt.Errorf("deposed: %w", ErrGone))
	c.request(request{command: cmdWrite, length: 5}, []byte("hello"))
	c.hungUp()
	d.fail(nil)
	require.Equal(t, codeOK, connected(t, address, true).write(0, []byte("hello")).result)
}
