package machine

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"skerry/internal/link/probe"
)

// FirstPort and Ports define the range of UDP ports between machines. Each lab uses one port.
// Firewalls between machines must permit them.
const FirstPort, Ports = 51820, 80

// IsPrivate reports whether an address belongs to a private, loopback or link-local network.
func IsPrivate(a netip.Addr) bool { return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() }

// Underlay is the network between the parts of a lab on different machines. It carries links between
// machines and is invisible to nodes. Call OpenEndpoint on every part first, then ConnectPeers.
//
//	part ── its namespace, 10.79.0.1 ── encrypted, a UDP port of the machine ══► other machines
//
// Each lab has its own keys. Private keys stay in memory on the machine that generates them.
// Unencrypted packets also carry a key. It rejects stray packets, but an eavesdropper can read it.
type Underlay interface {
	// OpenEndpoint makes the part's endpoint and returns its parameters for the peers.
	OpenEndpoint(ctx context.Context, m EndpointSpec) (Endpoint, error)
	// ConnectPeers connects the part to its peers. All endpoints must be open.
	ConnectPeers(ctx context.Context, c PeerSet) error
}

// EndpointSpec describes an endpoint to open.
type EndpointSpec struct {
	// Addr is the endpoint's address with the prefix length of the underlay.
	Addr netip.Prefix `json:"addr"`
	// PeerAddrs are the addresses of the other machines.
	PeerAddrs []netip.Addr `json:"others"`
	// Plain is the random 24-bit VXLAN ID of an unencrypted network; 0 means encrypted.
	Plain int `json:"plain,omitempty"`
}

// Endpoint holds the parameters of a part's open endpoint.
type Endpoint struct {
	Key  string `json:"key"`  // WireGuard public key, or the hardware address in an unencrypted network
	Port int    `json:"port"` // UDP
	// Path is the path MTU from this machine to all others, in bytes.
	Path int `json:"path"`
}

// PeerSet lists the peers of a part.
type PeerSet struct {
	// Path is the smallest path MTU between any two machines, in bytes.
	Path  int    `json:"path"`
	Peers []Peer `json:"others"`
}

// Peer is the endpoint of a part on another machine.
type Peer struct {
	Machine string         `json:"machine"`
	Key     string         `json:"key"`  // Endpoint.Key of the peer
	At      netip.AddrPort `json:"at"`   // of the machine
	Addr    netip.Addr     `json:"addr"` // address in the underlay
}

// Measurer measures the network between a part's nodes.
type Measurer interface {
	// MeasureRTT measures round-trip times for all paths, in order. Total loss is a result, not an
	// error.
	MeasureRTT(ctx context.Context, e RTTSpec) ([]probe.RTTResult, error)
	// MeasureTrain sends a packet train between two nodes and returns its arrival times. For a train
	// between machines it is called on both; the receiver returns the result.
	MeasureTrain(ctx context.Context, t TrainSpec) (probe.TrainResult, error)
}

// RTTSpec describes a measurement of round-trip times.
type RTTSpec struct {
	Paths    []Path        `json:"ways"`
	Count    int           `json:"count"`
	Interval time.Duration `json:"interval_ns"`
	// Undisturbed excludes probes that this machine itself delayed.
	Undisturbed bool `json:"undisturbed,omitempty"`
}

// Path is a path from a node to an address.
type Path struct {
	Node string     `json:"node"`
	To   netip.Addr `json:"to"`
}

// TrainSpec describes a packet train.
type TrainSpec struct {
	From    TrainEnd    `json:"from"`
	To      TrainEnd    `json:"to"`
	Packets probe.Train `json:"packets"`
	// Meeting is the rendezvous of two ends on different machines; nil on one machine.
	Meeting *probe.Meeting `json:"meeting,omitempty"`
}

// TrainEnd is a node and its address on the path; Node is "" if it is on another machine.
type TrainEnd struct {
	Node string     `json:"node,omitempty"`
	Addr netip.Addr `json:"addr"`
}

// TunnelEnd is one end of a tunnel over a link.
type TunnelEnd struct {
	Link   string     `json:"link"`
	Node   string     `json:"node"`
	Device string     `json:"device"` // device to make
	Addr   netip.Addr `json:"addr"`   // address of this end on the link
}

// Device is the configuration of a network device of a node.
type Device struct {
	Node string `json:"node"`
	Name string `json:"name"`
	// Addrs are added in order; the first is the source address.
	Addrs []netip.Prefix `json:"addrs"`
	// MTU in bytes; 0 keeps the current MTU.
	MTU int `json:"mtu,omitempty"`
	// Up sets the device up, with a link-local address if it has IPv6.
	Up bool `json:"up,omitempty"`
}

// Route is a route from a node to a neighbour.
type Route struct {
	Node   string     `json:"node"`
	To     netip.Addr `json:"to"`
	Device string     `json:"device"`
}

// Cable is the devices of a link at one node, lowest layer first, with the routes over them.
type Cable struct {
	Node    string   `json:"node"`
	Devices []string `json:"devices"`
	Routes  []Route  `json:"routes,omitempty"`
}

// TUN is a TUN device of a node.
type TUN struct {
	Node string `json:"node"`
	Name string `json:"name"`
	MTU  int    `json:"mtu"` // in bytes
	// To is the network that the node routes to the device.
	To netip.Prefix `json:"to"`
}

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
