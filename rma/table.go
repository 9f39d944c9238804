package rma

import (
	"crypto/subtle"
	"fmt"
	"io"
	"sync"

	"railyard/wire"
)

// Claim is what a peer presents with each chunk and each get.
type Claim struct {
	// Region and Token are from the key.
	Region uint64
	Token  wire.Token
	// Want is RemoteWrite for a put, RemoteRead for a get.
	Want Rights
	// Offset and Length, in bytes, are what is to be touched.
	Offset, Length uint64
}

// DefaultRegions is the limit of a table that was given none.
const DefaultRegions = 1 << 20

// RevokedMemory is how many revoked keys a table remembers, so that their holders learn ErrRevoked;
// those of keys revoked longer ago learn ErrUnknownRegion.
const RevokedMemory = 64 << 10

// shardCount spreads look-ups over locks; a power of two.
const shardCount = 32

// Table is a node's registered regions. All methods may be called from any goroutine.
//
// Invariant: a region is in its shard from Register until its Revoke has drained the lease, and its
// key is in the graveyard from before it leaves the shard: a look-up always finds one of the two
// until the graveyard forgets.
type Table struct {
	shards [shardCount]shard
	// dummy is compared with where there is no region, so that a miss takes as long as a wrong
	// token.
	dummy wire.Token

	// mu guards what follows, and is never held together with a shard's lock.
	mu      sync.Mutex
	entropy io.Reader
	limit   int
	live    int
	last    uint64
	ended   bool

	gone graveyard
}

type shard struct {
	mu      sync.RWMutex
	regions map[uint64]*Region
}

// NewTable makes an empty table. Tokens are read from entropy, which must be as unguessable as
// crypto/rand's. At most limit regions are registered at one time; DefaultRegions where limit is
// not positive.
func NewTable(entropy io.Reader, limit int) *Table {
	return newTable(entropy, limit, RevokedMemory)
}

func newTable(entropy io.Reader, limit, memory int) *Table {
	if limit <= 0 {
		limit = DefaultRegions
	}
	t := &Table{entropy: entropy, limit: limit, gone: graveyard{limit: memory}}
	for i := range t.shards {
		t.shards[i].regions = make(map[uint64]*Region)
	}
	return t
}

// Register makes buf a region that peers who hold its key may use by the given rights. The memory
// must stay put and unshared until Revoke has returned.
//
// Errors: ErrEmptyRegion, ErrNoRights, ErrTooManyRegions, ErrEntropy, ErrShutdown.
func (t *Table) Register(buf []byte, rights Rights) (*Region, error) {
	if len(buf) == 0 {
		return nil, ErrEmptyRegion
	}
	if !rights.valid() {
		return nil, fmt.Errorf("rights are %s: %w", rights, ErrNoRights)
	}
	r := &Region{buf: buf, table: t}
	r.lease.init()
	if err := t.admit(r, rights); err != nil {
		return nil, err
	}
	s := t.shard(r.key.region)
	s.mu.Lock()
	s.regions[r.key.region] = r
	s.mu.Unlock()
	return r, nil
}

// admit counts r in and gives it its key.
func (t *Table) admit(r *Region, rights Rights) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return fmt.Errorf("cannot register a region: %w", ErrShutdown)
	}
	if t.live >= t.limit {
		return fmt.Errorf("the limit is %d: %w", t.limit, ErrTooManyRegions)
	}
	var token wire.Token
	if _, err := io.ReadFull(t.entropy, token[:]); err != nil {
		return fmt.Errorf("%w: %w", ErrEntropy, err)
	}
	t.live++
	t.last++
	r.key = Key{region: t.last, token: token, length: uint64(len(r.buf)), rights: rights}
	return nil
}

// Check says whether the claim is good; the region comes with OK only. Everything that needs no
// valid token looks the same from outside: UnknownRegion. With one, Revoked comes before Rights
// before Bounds.
//
// OK holds for this moment: touch the memory only under the region's lease, which
// refuses after a revoke.
func (t *Table) Check(c Claim) (*Region, wire.Code) {
	if r := t.find(c.Region); r != nil {
		code := r.Check(c)
		if code != wire.CodeOK {
			return nil, code
		}
		return r, code
	}
	token, known := t.gone.find(c.Region)
	if !known {
		token = t.dummy
	}
	if sameToken(c.Token, token) && known {
		return nil, wire.CodeRevoked
	}
	return nil, wire.CodeUnknownRegion
}

// Live is the number of regions that are registered and not yet revoked.
func (t *Table) Live() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.live
}

// Limit is the most regions that may be registered at a time.
func (t *Table) Limit() int { return t.limit }

// Close revokes all regions, waiting as Revoke does, and refuses new ones. The error is nil today.
func (t *Table) Close() error {
	t.mu.Lock()
	t.ended = true
	t.mu.Unlock()
	for i := range t.shards {
		for _, r := range t.shards[i].all() {
			if err := r.Revoke(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (t *Table) shard(region uint64) *shard { return &t.shards[region%shardCount] }

func (t *Table) find(region uint64) *Region {
	s := t.shard(region)
	s.mu.RLock()
	r := s.regions[region]
	s.mu.RUnlock()
	return r
}

// bury takes a drained region out; only the first call for a region does anything.
func (t *Table) bury(r *Region) {
	id := r.key.region
	t.gone.add(id, r.key.token)
	s := t.shard(id)
	s.mu.Lock()
	_, there := s.regions[id]
	delete(s.regions, id)
	s.mu.Unlock()
	if !there {
		return
	}
	t.mu.Lock()
	t.live--
	t.mu.Unlock()
}

func (s *shard) all() []*Region {
	s.mu.RLock()
	defer s.mu.RUnlock()
	regions := make([]*Region, 0, len(s.regions))
	for _, r := range s.regions {
		regions = append(regions, r)
	}
	return regions
}

// sameToken takes the same time wherever the two differ.
func sameToken(a, b wire.Token) bool {
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}
