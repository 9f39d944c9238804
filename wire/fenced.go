package wire

// FencedOf puts the unsettled generations into a handshake message.
func FencedOf(list []Retired) []*Fenced {
	if len(list) == 0 {
		return nil
	}
	out := make([]*Fenced, len(list))
	for i := range list {
		r := &list[i]
		out[i] = &Fenced{
			Rail:       uint32(r.Rail),
			Generation: uint64(r.Generation),
			Count:      r.Count,
			HaveYours:  r.HaveYours,
			Rejected:   r.Rejected,
			Done:       r.Done,
			Refusals:   r.Refusals,
		}
	}
	return out
}

// RetiredOf takes them out of a message again. The refusals alias the message. The error wraps
// ErrMalformed; there is none where ReadHandshake returned the message.
func RetiredOf(list []*Fenced) ([]Retired, error) {
	c := &checker{}
	if c.fenced(list); c.err != nil || len(list) == 0 {
		return nil, c.err
	}
	out := make([]Retired, len(list))
	for i, f := range list {
		out[i] = Retired{
			Rail:       RailID(f.GetRail()),
			Generation: Generation(f.GetGeneration()),
			Count:      f.GetCount(),
			HaveYours:  f.GetHaveYours(),
			Rejected:   f.GetRejected(),
			Done:       f.GetDone(),
		}
		if r := f.GetRefusals(); len(r) > 0 {
			out[i].Refusals = Refusals(r)
		}
	}
	return out, nil
}
