package session

import (
	"fmt"

	"railyard/rma"
	"railyard/wire"
)

// getIn serves a get: its bytes travel back like those of a put.
func (s *Session) getIn(f wire.GetRequest) error {
	if s.serving[f.Op] != nil {
		return protocolError("get %d was asked for twice", f.Op)
	}
	if len(s.serving) >= s.cfg.PeerMaxOpen {
		return protocolError("more than %d gets at once", s.cfg.PeerMaxOpen)
	}
	region, code := s.regions.Check(rma.Claim{Region: f.Region, Token: f.Token, Want: rma.RemoteRead,
		Offset: f.Offset, Length: f.Length})
	if code != wire.CodeOK || f.Length == 0 {
		s.sayGetDone(f.Op, code)
		return nil
	}
	data, _ := region.Slice(f.Offset, f.Length)
	o := &Op{Kind: Serve, ID: f.Op, Offset: f.Offset, Data: data, region: region, begun: true}
	s.serving[f.Op] = o
	s.addBody(o)
	s.startBulk(o)
	return nil
}

// served says the verdict on a get once all its data is acknowledged: so no padding can follow it.
func (s *Session) served(o *Op) {
	delete(s.serving, o.ID)
	s.dropBody(o)
	code := wire.CodeOK
	if o.padded || o.region.Revoked() {
		code = wire.CodeRevoked
	}
	if s.closed == nil {
		s.sayGetDone(o.ID, code)
	}
}

func (s *Session) sayGetDone(id wire.OpID, code wire.Code) {
	it := item{kind: wire.KindGetDone, frames: 1, id: id, code: code}
	if g := s.best(wire.HeaderSize); g != nil {
		g.counted.push(it)
		s.wake(g)
		return
	}
	s.verdicts = append(s.verdicts, it)
}

// getDoneIn is the verdict on a get of ours.
func (s *Session) getDoneIn(f wire.GetDone) error {
	if o := s.parting[f.Op]; o != nil { // canceled meanwhile
		o.verdict = true
		s.part(o)
		return nil
	}
	o := s.ops[f.Op]
	if o == nil || o.Kind != Get {
		return nil
	}
	if o.ended { // and only waits for a read call
		o.verdict = true
		return nil
	}
	if f.Code != wire.CodeOK {
		s.stats.Refused++
		o.verdict = true
		s.finish(o, &rma.OpError{Op: "get", ID: o.ID, Err: rma.CodeError(f.Code)})
		return nil
	}
	o.verdict = true
	if o.landed != uint64(len(o.Data)) {
		return protocolError("get %d is called done with %d of %d bytes", f.Op, o.landed, len(o.Data))
	}
	s.getProgress(o)
	return nil
}

func (s *Session) getProgress(o *Op) {
	switch {
	case o.landed > uint64(len(o.Data)):
		s.finish(o, fmt.Errorf("%w: get %d was answered with more bytes than asked for", ErrProtocol, o.ID))
	case o.verdict && o.landed == uint64(len(o.Data)):
		s.finish(o, nil)
	}
}
