package replica

// ring is a staging ring as its only writer sees it: which bytes of the region at the other end are free.
//
// Invariant: a piece is free only when its put has completed, so that nothing more of it can land, and the other end has
// taken what it held. Pieces become free in the order in which they were handed out.
type ring struct {
	size   int64
	first  int64 // running offset of the oldest piece
	next   int64 // running offset of the next one
	pieces []piece
}

type piece struct {
	item             uint64
	end              int64 // running
	completed, taken bool
}

// take hands out n bytes, all in one piece; not ok: there is no room now.
func (r *ring) take(item uint64, n int64) (offset int64, ok bool) {
	at := r.next
	if rest := r.size - at%r.size; rest < n {
		at += rest // not across the end
	}
	if n > r.size || at+n-r.first > r.size {
		return 0, false
	}
	r.next = at + n
	r.pieces = append(r.pieces, piece{item: item, end: r.next})
	return at % r.size, true
}

// completed: the put of an item has ended well.
func (r *ring) completed(item uint64) {
	for i := range r.pieces {
		if r.pieces[i].item == item {
			r.pieces[i].completed = true
			break
		}
	}
	r.release()
}

// taken: the other end has taken all items up to this one.
func (r *ring) taken(item uint64) {
	for i := range r.pieces {
		if r.pieces[i].item > item {
			break
		}
		r.pieces[i].taken = true
	}
	r.release()
}

func (r *ring) release() {
	for len(r.pieces) > 0 && r.pieces[0].completed && r.pieces[0].taken {
		r.first = r.pieces[0].end
		r.pieces = r.pieces[1:]
	}
}
