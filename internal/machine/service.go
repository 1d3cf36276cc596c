package machine

import (
	"context"
	"errors"
	"net/netip"
)

// ErrKernel says that the kernel lacks what services are made of.
var ErrKernel = errors.New("the kernel cannot carry the service")

// Services are how the members of a database are reached that stand in containers.
type Services interface {
	// MTU is the smallest of the devices that packets leave the nodes by, in bytes; 0 where
	// there is none.
	MTU(ctx context.Context) (int, error)
	// Bridge makes the containers' network, and the containers on it.
	Bridge(ctx context.Context, bridges []Bridge) error
	// Rule puts rules in force in place of those that were, in one step for each namespace.
	Rule(ctx context.Context, rules []Rules) error
}

// VXLANHeader is what VXLAN adds to a packet, in bytes: Ethernet, VXLAN, UDP and IPv4 headers.
const VXLANHeader = 14 + 8 + 8 + 20

// Bridge is a node's part of the containers' network.
type Bridge struct {
	Node string `json:"node"`
	// Gateway is the node's address on the network.
	Gateway netip.Prefix `json:"gateway"`
	// Container is the address of the node's container, the zero value where it has none.
	Container netip.Addr `json:"container,omitzero"`
	MTU       int        `json:"mtu"`
	// Over are all addresses of a network over all nodes, which VXLAN joins; nil for a
	// network within each node.
	Over []Located `json:"over,omitempty"`
}

// Located is an address of the containers' network and the address of the node that it is on.
type Located struct {
	Addr netip.Addr `json:"addr"`
	At   netip.Addr `json:"at"`
}

// Rules are those of one network namespace.
type Rules struct {
	Node string `json:"node"`
	// Container says that they are those of the node's container.
	Container bool      `json:"container,omitempty"`
	Forwards  []Forward `json:"forwards,omitempty"`
	// Passing says that forwards hold for packets of others too, not for those alone that
	// begin here.
	Passing bool     `json:"passing,omitempty"`
	Sources []Source `json:"sources,omitempty"`
	// RoundRobin has forwards choose one member after the other, not any at random.
	RoundRobin bool `json:"round_robin,omitempty"`
}

// Forward leads connections to a port of an address to a port of some member.
type Forward struct {
	To      netip.Addr   `json:"to"`
	Port    int          `json:"port"`
	Members []netip.Addr `json:"members"`
	Inside  int          `json:"inside"`
}

// Source has packets leave with another address, so that the answers come back here.
type Source struct {
	From netip.Prefix `json:"from,omitzero"` // of packets from these addresses; the zero value: from any
	// Into says that they leave into the containers' network, after a forward; else by
	// any other device.
	Into bool       `json:"into,omitempty"`
	As   netip.Addr `json:"as"`
}

// Container is processes of a node with a network of their own, which others reach as a
// service of the lab has it.
type Container struct {
	Node string `json:"node"`
	// Listen is the address within, Addr the one that others reach it by.
	Listen netip.Addr `json:"listen"`
	Addr   netip.Addr `json:"addr"`
	// Ports maps ports at Listen to those at Addr that lead there; others are the same.
	Ports map[int]int `json:"ports,omitempty"`
	// Own says that it has a network namespace of its own; else it is in its node's.
	Own bool `json:"own,omitempty"`
}
