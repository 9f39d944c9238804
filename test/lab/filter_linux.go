package lab

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// This file: what is lost or refused on a card, by nftables.

type (
	chain = nftables.Chain
	rule  = []expr.Any
)

// chains are those of one card: ingress sees each packet before ARP and IP do, input is where TCP can be refused.
type chains struct{ ingress, input *chain }

// prepareFilters makes an empty pair of chains for each card, so that a cut only has to add a rule.
func (h *host) prepareFilters() error {
	low := h.filter.AddTable(&nftables.Table{Family: nftables.TableFamilyNetdev, Name: "lab"})
	high := h.filter.AddTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: "lab"})
	for i := range h.cards {
		h.chains = append(h.chains, chains{
			ingress: h.filter.AddChain(&chain{Name: cardName(i), Table: low, Type: nftables.ChainTypeFilter,
				Hooknum: nftables.ChainHookIngress, Priority: nftables.ChainPriorityFilter, Device: cardName(i)}),
			input: h.filter.AddChain(&chain{Name: cardName(i), Table: high, Type: nftables.ChainTypeFilter,
				Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter}),
		})
	}
	if err := h.filter.Flush(); err != nil {
		return fmt.Errorf("lab: no filters on the cards (is the kernel's nf_tables there?): %w", err)
	}
	return nil
}

func (h *host) add(to *chain, r rule) error {
	h.filter.AddRule(&nftables.Rule{Table: to.Table, Chain: to, Exprs: r})
	return h.filter.Flush()
}

func (h *host) empty(c *chain) error {
	h.filter.FlushChain(c)
	return h.filter.Flush()
}

func drop() rule { return rule{&expr.Verdict{Kind: expr.VerdictDrop}} }

// dropSome drops a part of the packets. The random number comes in the machine's order, and is compared byte by byte.
func dropSome(percent float64) rule {
	const parts = 100_000
	below := binary.BigEndian.AppendUint32(nil, uint32(percent*parts/100))
	return rule{
		&expr.Numgen{Register: 1, Modulus: parts, Type: unix.NFT_NG_RANDOM},
		&expr.Byteorder{SourceRegister: 1, DestRegister: 1, Op: expr.ByteorderHton, Len: 4, Size: 4},
		&expr.Cmp{Op: expr.CmpOpLt, Register: 1, Data: below},
		&expr.Verdict{Kind: expr.VerdictDrop},
	}
}

// reset answers TCP on card i with resets. Where passes is false they are stopped at the other end by the same rule.
func reset(i int, passes bool) rule {
	const flags, rst, isTCP, withReset = 13, 4, unix.IPPROTO_TCP, 1
	name := make([]byte, unix.IFNAMSIZ)
	copy(name, cardName(i))
	r := rule{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name},
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{isTCP}},
	}
	if passes {
		r = append(r,
			&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: flags, Len: 1},
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 1, Mask: []byte{rst}, Xor: []byte{0}},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: []byte{rst}},
		)
	}
	return append(r, &expr.Reject{Type: withReset})
}
