package nbd

import "errors"

// request is one request as it came.
type request struct {
	flags   uint16
	command command
	cookie  uint64
	offset  uint64
	length  uint32
}

func parseRequest(head [requestLength]byte) request {
	return request{
		flags:   order.Uint16(head[4:]),
		command: command(order.Uint16(head[6:])),
		cookie:  order.Uint64(head[8:]),
		offset:  order.Uint64(head[16:]),
		length:  order.Uint32(head[24:]),
	}
}

// room is how many bytes a request that was checked needs while it is in flight.
func (q request) room() int {
	switch q.command {
	case cmdRead, cmdWrite:
		return int(q.length)
	default:
		return 0
	}
}

func (q request) fua() bool { return q.flags&flagFUA != 0 }

// check says what is wrong with a request, if something is.
func (c *conn) check(q request) (code, string) {
	e := &c.hub.export
	allowed := flagFUA // it may be on any request, and means something for some
	writes := false
	switch q.command {
	case cmdRead:
		if c.structured {
			allowed |= flagDF
		}
	case cmdWriteZeroes:
		allowed |= flagNoHole
		writes = true
	case cmdWrite, cmdTrim:
		writes = true
	case cmdFlush, cmdCache:
	default:
		return codeInvalid, "this command is not known here"
	}
	switch {
	case q.flags&^allowed != 0:
		return codeInvalid, "flags that this command does not have here"
	case q.command == cmdFlush:
		if q.offset != 0 || q.length != 0 {
			return codeInvalid, "a flush has no range"
		}
		return codeOK, ""
	case writes && e.ReadOnly:
		return codePermission, "the export is for reading only"
	}
	return c.checkRange(q)
}

func (c *conn) checkRange(q request) (code, string) {
	low := uint64(c.hub.export.MinBlock) - 1
	size := uint64(c.size)
	switch {
	case q.length == 0:
		return codeInvalid, "a range of no bytes"
	case q.offset > size || uint64(q.length) > size-q.offset:
		if q.command == cmdWrite || q.command == cmdWriteZeroes {
			return codeNoSpace, "beyond the end of the export"
		}
		return codeInvalid, "the range goes beyond the end of the export"
	case (q.offset|uint64(q.length))&low != 0:
		return codeInvalid, "not a multiple of the smallest block size"
	case (q.command == cmdRead || q.command == cmdWrite) && int64(q.length) > int64(c.cfg.MaxPayload):
		return codeInvalid, "more bytes than one request may have"
	}
	return codeOK, ""
}

// perform carries a request out and answers it. The payload is given back.
func (c *conn) perform(q request, payload *[]byte) {
	if q.command == cmdRead {
		payload = borrow(int(q.length))
	}
	if payload != nil {
		defer giveBack(payload)
	}
	err := c.carryOut(q, payload)
	switch {
	case errors.Is(err, ErrGone), errors.Is(err, errFenced):
		c.kill(err) // not answered: whether it has happened is not known here
		return
	case c.life.Err() != nil:
		return // nobody is there to be answered
	case err != nil:
		err = c.answerError(q, codeOf(err), err.Error())
	case q.command == cmdRead && c.structured:
		err = c.out.data(q.cookie, q.offset, *payload)
	case q.command == cmdRead:
		err = c.out.simple(q.cookie, codeOK, *payload)
	default:
		err = c.out.simple(q.cookie, codeOK, nil)
	}
	if err != nil {
		c.kill(err)
	}
}

// carryOut has the device do it.
func (c *conn) carryOut(q request, payload *[]byte) error {
	device := c.hub.export.Device
	from, length := int64(q.offset), int64(q.length)
	switch q.command {
	case cmdRead:
		return device.ReadAt(c.life, *payload, from)
	case cmdFlush:
		return device.Flush(c.life)
	case cmdCache:
		if p, ok := device.(Prefetcher); ok {
			return p.Prefetch(c.life, from, length)
		}
		return nil
	default:
		return c.carryOutWrite(q, payload)
	}
}

// carryOutWrite does what changes the device, in its turn.
func (c *conn) carryOutWrite(q request, payload *[]byte) error {
	device := c.hub.export.Device
	from, length := int64(q.offset), int64(q.length)
	s, err := c.hub.enter(c.life, c, from, from+length)
	if err != nil {
		return err
	}
	defer c.hub.leave(s)
	switch q.command {
	case cmdWrite:
		return device.WriteAt(c.life, Write{Conn: c.generation, Cookie: q.cookie, Offset: from, Data: *payload, FUA: q.fua()})
	case cmdTrim:
		return device.Trim(c.life, c.rangeOf(q))
	default:
		return device.WriteZeroes(c.life, c.rangeOf(q))
	}
}

func (c *conn) rangeOf(q request) Range {
	return Range{
		Conn: c.generation, Cookie: q.cookie, Offset: int64(q.offset), Length: int64(q.length),
		FUA: q.fua(), Allocate: q.flags&flagNoHole != 0,
	}
}
