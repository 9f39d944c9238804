package nbd

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// This file: from the first byte until the client has chosen an export.

var (
	errAborted   = errors.New("nbd: the client has ended the handshake")
	errTooLong   = errors.New("nbd: the client goes on negotiating and comes to no export")
	errPipelined = errors.New("nbd: the client sent something behind its wish for TLS, before TLS")
)

// negotiate leads the handshake. It has succeeded once the client has an export.
func (c *conn) negotiate(ctx context.Context) error {
	if err := c.deadline(time.Now().Add(c.cfg.Handshake)); err != nil {
		return err
	}
	hello := order.AppendUint64(nil, magicServer)
	hello = order.AppendUint64(hello, magicOption)
	hello = order.AppendUint16(hello, flagFixedNewstyle|flagNoZeroes)
	if _, err := c.net.Write(hello); err != nil {
		return fmt.Errorf("nbd: no greeting: %w", err)
	}
	var flags [4]byte
	if _, err := io.ReadFull(c.in, flags[:]); err != nil {
		return fmt.Errorf("nbd: no answer to the greeting: %w", err)
	}
	answer := order.Uint32(flags[:])
	if answer&^clientFlags != 0 || answer&uint32(flagFixedNewstyle) == 0 {
		return fmt.Errorf("nbd: the client's flags are %#x; it must speak fixed newstyle, and nothing that was not offered", answer)
	}
	c.noZeroes = answer&uint32(flagNoZeroes) != 0
	for range maxOptions {
		opt, data, err := c.readOption()
		if err != nil {
			return err
		}
		if err := c.consider(ctx, opt, data); err != nil {
			return err
		}
		if c.hub != nil {
			return c.deadline(time.Time{})
		}
	}
	return errTooLong
}

// tooBig stands in for the data of an option that was longer than what any option needs, and was passed over.
var tooBig = []byte("too big")

func (c *conn) readOption() (option, []byte, error) {
	var head [optionLength]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, fmt.Errorf("nbd: no option: %w", err)
	}
	if magic := order.Uint64(head[:]); magic != magicOption {
		return 0, nil, fmt.Errorf("nbd: an option begins with %#x", magic)
	}
	opt, length := option(order.Uint32(head[8:])), order.Uint32(head[12:])
	if length > drainedOption {
		return 0, nil, fmt.Errorf("nbd: option %d has %d bytes", opt, length)
	}
	if length > maxOption {
		if _, err := io.CopyN(io.Discard, c.in, int64(length)); err != nil {
			return 0, nil, fmt.Errorf("nbd: option %d ended early: %w", opt, err)
		}
		return opt, tooBig, nil
	}
	data := make([]byte, length)
	if _, err := io.ReadFull(c.in, data); err != nil {
		return 0, nil, fmt.Errorf("nbd: the data of option %d ended early: %w", opt, err)
	}
	return opt, data, nil
}

// consider answers one option.
func (c *conn) consider(ctx context.Context, opt option, data []byte) error {
	big := len(data) > 0 && &data[0] == &tooBig[0]
	switch {
	case opt == optAbort:
		_ = c.option(opt, repAck, nil) // the client may have gone
		return errAborted
	case opt == optExportName:
		return c.byName(data, big)
	case big:
		return c.refuse(opt, repErrTooBig, "no option needs that many bytes")
	case opt == optStartTLS:
		return c.startTLS(ctx, data)
	case c.cfg.RequireTLS && !c.secure:
		return c.refuse(opt, repErrTLSRequired, "start TLS first")
	}
	switch opt {
	case optList:
		return c.list(data)
	case optStructuredReply:
		if len(data) != 0 {
			return c.refuse(opt, repErrInvalid, "this option has no data")
		}
		c.structured = true
		return c.option(opt, repAck, nil)
	case optInfo, optGo:
		return c.info(opt, data)
	default:
		return c.refuse(opt, repErrUnsup, "this option is not known here")
	}
}

// startTLS makes the connection a TLS one. Whatever was agreed on before is forgotten.
func (c *conn) startTLS(ctx context.Context, data []byte) error {
	switch {
	case len(data) != 0:
		return c.refuse(optStartTLS, repErrInvalid, "the wish for TLS has no data")
	case c.secure:
		return c.refuse(optStartTLS, repErrInvalid, "this is TLS")
	case c.cfg.TLS == nil:
		return c.refuse(optStartTLS, repErrPolicy, "this server has no certificate")
	case c.in.Buffered() > 0: // it could be somebody else's, put in front of what the client says under TLS
		return errPipelined
	}
	if err := c.option(optStartTLS, repAck, nil); err != nil {
		return err
	}
	inner := tls.Server(c.net, c.cfg.TLS)
	ctx, done := context.WithTimeout(ctx, c.cfg.Handshake)
	defer done()
	if err := inner.HandshakeContext(ctx); err != nil {
		return fmt.Errorf("nbd: no TLS: %w", err)
	}
	c.wrap(inner)
	c.secure, c.structured = true, false
	return nil
}

// wrap reads and writes through another layer from here on.
func (c *conn) wrap(inner *tls.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.net = inner
	c.in = bufio.NewReaderSize(inner, readAhead)
	c.out.reset(inner)
}

// option sends one reply to an option.
func (c *conn) option(opt option, reply optReply, data []byte) error {
	b := order.AppendUint64(make([]byte, 0, optionLength+4+len(data)), magicOptReply)
	b = order.AppendUint32(b, uint32(opt))
	b = order.AppendUint32(b, uint32(reply))
	b = order.AppendUint32(b, uint32(len(data)))
	if _, err := c.net.Write(append(b, data...)); err != nil {
		return fmt.Errorf("nbd: no reply to option %d: %w", opt, err)
	}
	return nil
}

// refuse answers with an error, and the words for it. The handshake goes on.
func (c *conn) refuse(opt option, reply optReply, why string) error {
	return c.option(opt, reply, []byte(why))
}

// byName is the old way to an export, which has no reply for errors.
func (c *conn) byName(name []byte, big bool) error {
	h := c.server.find(string(name))
	switch {
	case c.cfg.RequireTLS && !c.secure:
		return errors.New("nbd: the client asks for an export without TLS, and this server requires TLS")
	case big || h == nil:
		return fmt.Errorf("nbd: the client asks for an export %.64q that there is not", name)
	case h.export.MinBlock > blockSizeEveryoneHas:
		return fmt.Errorf("nbd: the client asks for the export %q without being told its block size", h.export.Name)
	}
	c.enter(h)
	b := order.AppendUint64(nil, uint64(c.size))
	b = order.AppendUint16(b, h.export.flags(c.structured))
	if !c.noZeroes {
		b = append(b, make([]byte, zeroesAfterExport)...)
	}
	if _, err := c.net.Write(b); err != nil {
		return fmt.Errorf("nbd: no reply to the export's name: %w", err)
	}
	return nil
}

func (c *conn) list(data []byte) error {
	if len(data) != 0 {
		return c.refuse(optList, repErrInvalid, "the wish for a list has no data")
	}
	for _, h := range c.server.hubs {
		b := order.AppendUint32(nil, uint32(len(h.export.Name)))
		b = append(b, h.export.Name...)
		if err := c.option(optList, repServer, append(b, h.export.Description...)); err != nil {
			return err
		}
	}
	return c.option(optList, repAck, nil)
}

// info answers INFO and GO; after a GO that was acknowledged the export is the connection's.
func (c *conn) info(opt option, data []byte) error {
	name, wants, ok := parseInfo(data)
	if !ok {
		return c.refuse(opt, repErrInvalid, "the lengths within this option do not add up")
	}
	h := c.server.find(name)
	if h == nil {
		return c.refuse(opt, repErrUnknown, "there is no export of this name")
	}
	e := &h.export
	if e.MinBlock > blockSizeEveryoneHas && opt == optGo && !slices.Contains(wants, infoBlockSize) {
		return c.refuse(opt, repErrBlockSizeReqd, "ask for the block size: it is more than 512 bytes here")
	}
	b := order.AppendUint16(nil, infoExport)
	b = order.AppendUint64(b, uint64(e.Device.Size()))
	replies := [][]byte{order.AppendUint16(b, e.flags(c.structured))}
	if slices.Contains(wants, infoName) {
		replies = append(replies, append(order.AppendUint16(nil, infoName), e.Name...))
	}
	if slices.Contains(wants, infoDescription) && e.Description != "" {
		replies = append(replies, append(order.AppendUint16(nil, infoDescription), e.Description...))
	}
	if slices.Contains(wants, infoBlockSize) {
		b := order.AppendUint16(nil, infoBlockSize)
		b = order.AppendUint32(b, uint32(e.MinBlock))
		b = order.AppendUint32(b, uint32(e.Preferred))
		replies = append(replies, order.AppendUint32(b, uint32(c.cfg.MaxPayload)))
	}
	for _, r := range replies {
		if err := c.option(opt, repInfo, r); err != nil {
			return err
		}
	}
	if opt == optGo {
		c.enter(h)
	}
	return c.option(opt, repAck, nil)
}

// enter makes the export the connection's. That is before the client hears of it: a connection that a client makes after it has heard
// is a newer one.
func (c *conn) enter(h *hub) {
	c.size, c.hub = h.export.Device.Size(), h
	c.generation = c.server.generations.Add(1)
	h.join(c)
}

// parseInfo takes the data of INFO and GO apart: a name with its length, a count, and that many numbers of what is asked for.
func parseInfo(data []byte) (name string, wants []uint16, ok bool) {
	if len(data) < 6 {
		return "", nil, false
	}
	n := order.Uint32(data)
	rest := data[4:]
	if n > longestString || int(n) > len(rest)-2 {
		return "", nil, false
	}
	name, rest = string(rest[:n]), rest[n:]
	count := int(order.Uint16(rest))
	if rest = rest[2:]; len(rest) != 2*count {
		return "", nil, false
	}
	for ; len(rest) > 0; rest = rest[2:] {
		wants = append(wants, order.Uint16(rest))
	}
	return name, wants, true
}
