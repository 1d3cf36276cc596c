// Package service provides the service networking of container orchestrators: how clients reach the members of a
// database that run in containers, and at which cost. The kinds follow Truyen et al., "Evaluation of container
// orchestration systems for deploying and managing NoSQL database clusters" (IEEE CLOUD 2018):
//
//	none        a process with its node's address, as `docker run --net=host`
//	host-port   a container on a bridge of its node; the node's address and a port lead
//	            there by NAT, as `docker run -p`
//	node-port   a container on a network over all nodes; a port of every node's address
//	            leads to some member, as Swarm's routing mesh and Kubernetes' NodePort
//	service-ip  the same network; a virtual address leads to some member, chosen where the
//	            connection begins, as kube-proxy's ClusterIP and Swarm's VIP
//	central     one HAProxy in front of processes with their nodes' addresses
//
// A container is a network namespace next to that of its node. The network over all nodes is VXLAN: its packets cross
// the lab's links in UDP packets from node to node.
//
//	node n1 ─────────────────────────────┐        ┌───────────────── node n2
//	  container         10.77.0.1 (lo)   │        │
//	    eth0 10.112.0.1                  │  link  │
//	     │                               ╞════════╡
//	    svc0 ── vx0 ── VXLAN, UDP 4789 ──┘        └── vx0 ── svc0 ── container
//
// The kernel's nftables, set over netlink, select members and translate addresses.
//
// # Members and services
//
// A clustered database sends clients its members' addresses, and clients connect to these. So every member has its own
// service, as in the study, which the database announces for it (members: own). Another service leads to all members;
// with members: shared, clients know only this one. A client that follows redirections, such as Redis Cluster's, uses it
// for its first contact only; for a database in which any member serves any request, it balances connections.
package service

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"skerry/internal/base/advice"
	"skerry/internal/topology"
)

// Plan is the addresses and ports of a service, known before anything is created.
type Plan struct {
	Service topology.Service `json:"service"`
	// Ports are the ports of each container, the clients' first.
	Ports []int  `json:"ports"`
	Nodes []Node `json:"nodes"`
	// Front are the addresses of the service for all members.
	Front []netip.Addr `json:"front,omitempty"`
	// Shared maps the containers' ports to those of the shared service.
	Shared map[int]int `json:"shared,omitempty"`
	// Balancer is the index of the node that runs HAProxy for central.
	Balancer int `json:"balancer,omitempty"`
}

type Node struct {
	Name string     `json:"name"`
	Addr netip.Addr `json:"addr"`
	// Gateway is its address on the network of containers, if it has one.
	Gateway netip.Addr `json:"gateway,omitzero"`
	// Member is nil for a node without one.
	Member *Member `json:"member,omitempty"`
}

// Member is the database process of a node.
type Member struct {
	// Listen is the address of the servers. Others reach them by Addr and Ports, a map from the servers' ports.
	Listen netip.Addr  `json:"listen"`
	Addr   netip.Addr  `json:"addr"`
	Ports  map[int]int `json:"ports,omitempty"`
	// VIP is the virtual address of the member's own service.
	VIP netip.Addr `json:"vip,omitzero"`
}

// PlannedNode is a node to plan for.
type PlannedNode struct {
	Name   string
	Addr   netip.Addr
	Member bool
}

// Networks. Links use 10.80 to 10.111, nodes 10.77.
var (
	// overlayNet is the network over all nodes: containers from .0.1, nodes from .64.1, virtual addresses from .128.1,
	// the shared service last.
	overlayNet = netip.MustParsePrefix("10.112.0.0/16")
	frontIP    = netip.MustParseAddr("10.112.255.1")
	// bridgeNet is the network of a node's bridge, the same on every node.
	bridgeNet     = netip.MustParsePrefix("172.18.0.0/24")
	bridgeGateway = netip.MustParseAddr("172.18.0.1")
	bridgeMember  = netip.MustParseAddr("172.18.0.2")
)

const (
	perNet   = 254
	maxNodes = perNet * 64
	// Thirds of overlayNet.
	containers, gateways, virtual = 0, 64, 128
)

// overlayAddr is the i-th address of a part of overlayNet.
func overlayAddr(part, i int) netip.Addr {
	base := overlayNet.Addr().As4()
	return netip.AddrFrom4([4]byte{base[0], base[1], byte(part + i/perNet), byte(i%perNet + 1)})
}

// PortTaken reports whether a program listens on a port of a node's address.
type PortTaken func(node string, port int) bool

// NewPlan plans a service for members with these ports. Ports that conflict with each other or, if taken is not nil,
// with programs give ErrPort.
func NewPlan(s topology.Service, places []PlannedNode, ports []int, taken PortTaken) (Plan, error) {
	p := Plan{Service: s, Ports: mergePorts(ports, s.Expose)}
	if len(places) > maxNodes {
		return p, fmt.Errorf("%w: %d nodes, at most %d", ErrTooMany, len(places), maxNodes)
	}
	if taken == nil {
		taken = func(string, int) bool { return false }
	}
	for i, place := range places {
		n := Node{Name: place.Name, Addr: place.Addr}
		if p.Overlay() {
			n.Gateway = overlayAddr(gateways, i)
		}
		if s.Kind == topology.HostPort && place.Member {
			n.Gateway = bridgeGateway
		}
		if place.Member {
			n.Member = p.member(i, place)
		}
		p.Nodes = append(p.Nodes, n)
	}
	if err := p.checkPublished(); err != nil {
		return p, err
	}
	if s.Enabled() && s.Kind != topology.ServiceIP && len(p.Ports) == 0 {
		return p, advice.With(fmt.Errorf("%w: ports unknown", ErrPort), "list the ports as service.expose, the clients' first")
	}
	a := allocator{plan: &p, taken: taken, next: s.Low}
	switch s.Kind {
	case topology.HostPort:
		return p, a.publishHostPorts()
	case topology.NodePort:
		for _, n := range p.Nodes {
			if n.Member != nil {
				p.Front = append(p.Front, n.Addr)
			}
		}
		return p, a.publishFronts(p.Nodes)
	case topology.Central:
		p.Balancer = slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == s.On || s.On == "" && n.Member != nil })
		if p.Balancer < 0 {
			return p, fmt.Errorf("%w: no node %s for the balancer", ErrBalancer, s.On)
		}
		on := p.Nodes[p.Balancer]
		p.Front = []netip.Addr{on.Addr}
		return p, a.publishFronts([]Node{on})
	case topology.ServiceIP:
		p.Front, p.Shared = []netip.Addr{frontIP}, identityPorts(p.Ports)
	}
	return p, nil
}

// member describes the i-th node's member, without ports.
func (p *Plan) member(i int, place PlannedNode) *Member {
	m := &Member{Listen: place.Addr, Addr: place.Addr}
	if p.Overlay() {
		m.Listen, m.VIP = overlayAddr(containers, i), overlayAddr(virtual, i)
		m.Addr = m.Listen
	}
	switch {
	case p.Service.Kind == topology.HostPort:
		m.Listen = bridgeMember
	case p.Service.Members != topology.Own:
	case p.Service.Kind == topology.ServiceIP:
		m.Addr = m.VIP
	case p.Service.Kind == topology.NodePort:
		m.Addr = place.Addr
	}
	return m
}

// checkPublished checks that published ports exist.
func (p *Plan) checkPublished() error {
	for _, c := range slices.Sorted(maps.Keys(p.Service.Publish)) {
		if !slices.Contains(p.Ports, c) {
			return advice.With(fmt.Errorf("%w: no container listens on %d, to be published as %d", ErrPort, c, p.Service.Publish[c]),
				"use one of the ports %v", p.Ports)
		}
	}
	return nil
}

// Overlay reports whether containers use a network over all nodes.
func (p Plan) Overlay() bool {
	return p.Service.Kind == topology.NodePort || p.Service.Kind == topology.ServiceIP
}

// Contained reports whether members run in containers.
func (p Plan) Contained() bool { return p.Overlay() || p.Service.Kind == topology.HostPort }

// Remaps reports whether any member has another public port than it listens on.
func (p Plan) Remaps() bool {
	for _, n := range p.Nodes {
		if n.Member == nil {
			continue
		}
		for inside, outside := range n.Member.Ports {
			if inside != outside {
				return true
			}
		}
	}
	return false
}

// ContactPoints returns the addresses of the shared service for a port of the containers; nil if clients get the
// members' addresses.
func (p Plan) ContactPoints(port int) []string {
	outside, ok := p.Shared[port]
	if !ok || p.Service.PerMember() {
		return nil
	}
	var all []string
	for _, a := range p.Front {
		all = append(all, net.JoinHostPort(a.String(), strconv.Itoa(outside)))
	}
	return all
}

// NodeOf returns the node of the member at an address, with or without port; "" if there is none.
func (p Plan) NodeOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	for _, n := range p.Nodes { // members may share an address with different ports
		if n.Member == nil || n.Member.Addr.String() != host {
			continue
		}
		for _, outside := range n.Member.Ports {
			if strconv.Itoa(outside) == port {
				return n.Name
			}
		}
	}
	for _, n := range p.Nodes {
		m := n.Member
		if m == nil {
			continue
		}
		if m.Listen != bridgeMember && m.Listen.String() == host || len(m.Ports) == 0 && m.Addr.String() == host {
			return n.Name
		}
	}
	return ""
}

// Names are the service's entries in /etc/hosts: its own name and, with containers, the members' names below it.
func (p Plan) Names() map[string]netip.Addr {
	names := map[string]netip.Addr{}
	if len(p.Front) > 0 {
		names[FullName(p.Service)] = p.Front[0]
	}
	for _, n := range p.Nodes {
		if n.Member != nil && p.Contained() {
			names[n.Name+"."+FullName(p.Service)] = n.Member.Addr
		}
	}
	return names
}

// DescribeAddresses lists the public addresses of members, one per line: "10.77.0.1:30000 -> any member's 6379".
func (p Plan) DescribeAddresses() (lines []string) {
	for _, inside := range p.Ports {
		for _, a := range p.Front {
			lines = append(lines, fmt.Sprintf("%s -> any member's %d", hostPort(a, p.Shared[inside]), inside))
		}
	}
	for _, n := range p.Nodes {
		for _, inside := range p.Ports {
			if m := n.Member; m != nil && m.Addr != m.Listen {
				outside, ok := m.Ports[inside]
				if !ok {
					outside = inside
				}
				lines = append(lines, fmt.Sprintf("%s -> %s's %d", hostPort(m.Addr, outside), n.Name, inside))
			}
		}
	}
	return lines
}

// mergePorts appends the missing ports.
func mergePorts(ports, more []int) []int {
	ports = slices.Clone(ports)
	for _, p := range more {
		if !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ports
}

func identityPorts(ports []int) map[int]int {
	m := make(map[int]int, len(ports))
	for _, p := range ports {
		m[p] = p
	}
	return m
}

var (
	ErrPort     = errors.New("port cannot be published")
	ErrTooMany  = errors.New("too many nodes for the service's network")
	ErrBalancer = errors.New("balancer failed")
)

// Domain is the domain of the services' names.
const Domain = "skerry.internal"

func FullName(s topology.Service) string { return s.Name + "." + Domain }
