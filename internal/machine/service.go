package machine

import (
	"context"
	"errors"
	"net/netip"
)

// ErrKernel is returned if the kernel lacks a feature that services need.
var ErrKernel = errors.New("the kernel does not support the service")

// Services makes database members in containers reachable.
type Services interface {
	// MTU returns the smallest MTU of the nodes' devices in bytes, 0 without devices.
	MTU(ctx context.Context) (int, error)
	// MakeBridges makes the containers' network and the containers on it.
	MakeBridges(ctx context.Context, bridges []Bridge) error
	// SetRules replaces the rules of each namespace atomically.
	SetRules(ctx context.Context, rules []RuleSet) error
}

// VXLANHeader is the VXLAN overhead in bytes: Ethernet, VXLAN, UDP and IPv4 headers.
const VXLANHeader = 14 + 8 + 8 + 20

// Bridge is a node's part of the containers' network.
type Bridge struct {
	Node string `json:"node"`
	// Gateway is the node's address on the network.
	Gateway netip.Prefix `json:"gateway"`
	// Container is the address of the node's container, the zero value without one.
	Container netip.Addr `json:"container,omitzero"`
	MTU       int        `json:"mtu"`
	// Over lists all addresses of a VXLAN network that spans the nodes; nil for a network per node.
	Over []ContainerLocation `json:"over,omitempty"`
}

// ContainerLocation is an address of the containers' network and the address of the node that it is on.
type ContainerLocation struct {
	Addr netip.Addr `json:"addr"`
	At   netip.Addr `json:"at"`
}

// RuleSet holds the rules of one network namespace.
type RuleSet struct {
	Node string `json:"node"`
	// Container selects the namespace of the node's container.
	Container bool      `json:"container,omitempty"`
	Forwards  []Forward `json:"forwards,omitempty"`
	// Passing applies forwards to forwarded packets too, not only to locally generated ones.
	Passing bool         `json:"passing,omitempty"`
	Sources []SourceRule `json:"sources,omitempty"`
	// RoundRobin selects members in turn instead of at random.
	RoundRobin bool `json:"round_robin,omitempty"`
}

// Forward redirects connections from an address and port to a port of one of its members.
type Forward struct {
	To      netip.Addr   `json:"to"`
	Port    int          `json:"port"`
	Members []netip.Addr `json:"members"`
	Inside  int          `json:"inside"`
}

// SourceRule rewrites the source address of packets so that replies return here.
type SourceRule struct {
	From netip.Prefix `json:"from,omitzero"` // source addresses to match; the zero value matches all
	// Into matches packets that a forward sent into the containers' network; otherwise the rule
	// matches packets on all other devices.
	Into bool       `json:"into,omitempty"`
	As   netip.Addr `json:"as"`
}

// Container is a group of processes on a node with its own network address.
type Container struct {
	Node string `json:"node"`
	// Listen is the address inside the container, Addr the address that clients use.
	Listen netip.Addr `json:"listen"`
	Addr   netip.Addr `json:"addr"`
	// Ports maps ports at Listen to ports at Addr; other ports are identical.
	Ports map[int]int `json:"ports,omitempty"`
	// Own gives the container its own network namespace instead of the node's.
	Own bool `json:"own,omitempty"`
}
