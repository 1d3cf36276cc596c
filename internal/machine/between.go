package machine

import (
	"context"
	"net/netip"
)

// FirstPort and Ports are the UDP ports that labs reach other machines by, one each: firewalls between
// machines have to let them through.
const FirstPort, Ports = 51820, 80

// Private tells whether an address is of a network that strangers' packets do not come from, as far
// as an address can tell.
func Private(a netip.Addr) bool { return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() }

// Between is how a part reaches the parts of its lab on other machines, for links that lead
// there: a network of the parts' own, which no node sees, through the machines' networks. Every
// part is asked to Meet first, and then told of the others by Cross.
//
//	part ── its namespace, 10.79.0.1 ── encrypted, a UDP port of the machine ══► other machines
//
// Keys are made for each lab. The private ones stay where they are made, and are on no disk. Packets
// that are not encrypted have a key, too: without it none gets in, but who sees one has the key.
type Between interface {
	// Meet makes the part's end, and says what others need to know of it.
	Meet(ctx context.Context, m Meeting) (Met, error)
	// Cross has the part reach the others, all of which have met.
	Cross(ctx context.Context, c Crossing) error
}

// Meeting asks a part for its end of the network between machines.
type Meeting struct {
	// Addr is the end's address and the network between.
	Addr netip.Prefix `json:"addr"`
	// Others are the addresses that other machines are reached by from here.
	Others []netip.Addr `json:"others"`
	// Plain is the number of the network, random and of 24 bits, where its packets are not
	// encrypted; 0 where they are.
	Plain int `json:"plain,omitempty"`
}

// Met is a part's end of the network between machines.
type Met struct {
	Key  string `json:"key"`  // public, of WireGuard; of a plain network the end's hardware address
	Port int    `json:"port"` // UDP
	// Path is the longest packet, in bytes, that the machine's own network takes to all others.
	Path int `json:"path"`
}

// Crossing tells a part of the others.
type Crossing struct {
	// Path is the longest packet that all machines' networks take, in bytes.
	Path   int     `json:"path"`
	Others []Other `json:"others"`
}

// Other is a part of the lab on another machine.
type Other struct {
	Machine string         `json:"machine"`
	Key     string         `json:"key"`  // as it Met
	At      netip.AddrPort `json:"at"`   // of the machine
	Addr    netip.Addr     `json:"addr"` // within the network between
}
