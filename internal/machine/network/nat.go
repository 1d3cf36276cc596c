package network

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"

	"github.com/google/nftables"
	"github.com/google/nftables/binaryutil"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"skerry/internal/kernel/netns"
	"skerry/internal/machine"
)

// tableName is the nftables table in every namespace.
const tableName = "skerry"

// Packet offsets and registers.
const (
	sourceAt, targetAt, addrLen = 12, 16, 4 // in the IPv4 header
	portAt, portLen             = 2, 2      // in the TCP header
	reg1, reg2                  = 1, 2
	// dnatDone is IPS_DST_NAT in the connection's status.
	dnatDone = 1 << 5
)

// ReplaceRules replaces the rules of a namespace atomically.
func ReplaceRules(path string, r machine.RuleSet) error {
	return netns.Do(path, func() error { return applyRules(r) })
}

func applyRules(r machine.RuleSet) error {
	c, err := nftables.New()
	if err != nil {
		return fmt.Errorf("%w: open nftables: %w", machine.ErrKernel, err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyIPv4, Name: tableName}
	c.AddTable(table) // so that there is one to delete
	c.DelTable(table)
	c.AddTable(table)
	b := ruleBuilder{conn: c, table: table, numgen: unix.NFT_NG_RANDOM}
	if r.RoundRobin {
		b.numgen = unix.NFT_NG_INCREMENTAL
	}
	chains := []*nftables.Chain{b.chain("output", nftables.ChainHookOutput, nftables.ChainPriorityNATDest)}
	if r.Passing {
		chains = append(chains, b.chain("prerouting", nftables.ChainHookPrerouting, nftables.ChainPriorityNATDest))
	}
	for _, chain := range chains {
		for _, f := range r.Forwards {
			b.forward(chain, f)
		}
	}
	if len(r.Sources) > 0 {
		chain := b.chain("postrouting", nftables.ChainHookPostrouting, nftables.ChainPriorityNATSource)
		for _, s := range r.Sources {
			b.source(chain, s)
		}
	}
	if err := errors.Join(b.err, c.Flush()); err != nil {
		return fmt.Errorf("%w: set rules of nftables: %w", machine.ErrKernel, err)
	}
	return nil
}

// ruleBuilder collects one batch for the kernel.
type ruleBuilder struct {
	conn   *nftables.Conn
	table  *nftables.Table
	numgen uint32
	err    error
}

func (b *ruleBuilder) chain(name string, hook *nftables.ChainHook, priority *nftables.ChainPriority) *nftables.Chain {
	return b.conn.AddChain(&nftables.Chain{Name: name, Table: b.table, Type: nftables.ChainTypeNAT, Hooknum: hook, Priority: priority})
}

func (b *ruleBuilder) rule(chain *nftables.Chain, exprs ...expr.Any) {
	b.conn.AddRule(&nftables.Rule{Table: b.table, Chain: chain, Exprs: exprs})
}

// forward adds
//
//	ip daddr ADDRESS tcp dport PORT dnat to MEMBER:PORT
//	ip daddr ADDRESS tcp dport PORT dnat to numgen random mod N map { 0: MEMBER, ... }:PORT
func (b *ruleBuilder) forward(chain *nftables.Chain, f machine.Forward) {
	exprs := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: reg1},
		equal([]byte{unix.IPPROTO_TCP}),
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseNetworkHeader, Offset: targetAt, Len: addrLen},
		equal(f.To.AsSlice()),
		&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseTransportHeader, Offset: portAt, Len: portLen},
		equal(port(f.Port)),
	}
	if len(f.Members) == 1 {
		exprs = append(exprs, &expr.Immediate{Register: reg1, Data: f.Members[0].AsSlice()})
	} else {
		members := b.members(f.Members)
		exprs = append(exprs,
			&expr.Numgen{Register: reg1, Modulus: uint32(len(f.Members)), Type: b.numgen},
			&expr.Lookup{SourceRegister: reg1, DestRegister: reg1, IsDestRegSet: true, SetName: members.Name, SetID: members.ID})
	}
	b.rule(chain, append(exprs,
		&expr.Immediate{Register: reg2, Data: port(f.Inside)},
		&expr.NAT{Type: expr.NATTypeDestNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: reg1, RegProtoMin: reg2})...)
}

// members adds a map from numbers to addresses.
func (b *ruleBuilder) members(addrs []netip.Addr) *nftables.Set {
	set := &nftables.Set{Table: b.table, Anonymous: true, Constant: true, IsMap: true,
		KeyType: nftables.TypeInteger, DataType: nftables.TypeIPAddr, KeyByteOrder: binaryutil.NativeEndian}
	elements := make([]nftables.SetElement, len(addrs))
	for i, a := range addrs {
		elements[i] = nftables.SetElement{Key: binaryutil.NativeEndian.PutUint32(uint32(i)), Val: a.AsSlice()}
	}
	b.err = errors.Join(b.err, b.conn.AddSet(set, elements))
	return set
}

// source adds
//
//	ip saddr NET oifname != "svc0" snat to ADDRESS
//	ip saddr NET oifname "svc0" ct status dnat snat to ADDRESS
func (b *ruleBuilder) source(chain *nftables.Chain, s machine.SourceRule) {
	var exprs []expr.Any
	if s.From.IsValid() {
		mask := make([]byte, addrLen)
		binary.BigEndian.PutUint32(mask, ^uint32(0)<<(32-s.From.Bits()))
		exprs = append(exprs,
			&expr.Payload{DestRegister: reg1, Base: expr.PayloadBaseNetworkHeader, Offset: sourceAt, Len: addrLen},
			&expr.Bitwise{SourceRegister: reg1, DestRegister: reg1, Len: addrLen, Mask: mask, Xor: make([]byte, addrLen)},
			equal(s.From.Masked().Addr().AsSlice()))
	}
	device := make([]byte, unix.IFNAMSIZ)
	copy(device, bridgeDevice)
	out := equal(device)
	if !s.Into {
		out.Op = expr.CmpOpNeq
	}
	exprs = append(exprs, &expr.Meta{Key: expr.MetaKeyOIFNAME, Register: reg1}, out)
	if s.Into {
		exprs = append(exprs,
			&expr.Ct{Key: expr.CtKeySTATUS, Register: reg1},
			&expr.Bitwise{SourceRegister: reg1, DestRegister: reg1, Len: 4, Mask: binaryutil.NativeEndian.PutUint32(dnatDone), Xor: make([]byte, 4)},
			&expr.Cmp{Op: expr.CmpOpNeq, Register: reg1, Data: make([]byte, 4)})
	}
	b.rule(chain, append(exprs,
		&expr.Immediate{Register: reg1, Data: s.As.AsSlice()},
		&expr.NAT{Type: expr.NATTypeSourceNAT, Family: unix.NFPROTO_IPV4, RegAddrMin: reg1})...)
}

func equal(data []byte) *expr.Cmp {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: reg1, Data: data}
}

func port(p int) []byte { return binary.BigEndian.AppendUint16(nil, uint16(p)) }
