package service

import (
	"fmt"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"skerry/internal/base/advice"
	"skerry/internal/topology"
)

// Plan is which addresses and ports a service has: all that can be known before anything is
// made.
type Plan struct {
	Service topology.Service `json:"service"`
	// Ports are those of each container, the one that clients connect to first.
	Ports []int  `json:"ports"`
	Nodes []Node `json:"nodes"`
	// Front are the addresses of the service for all members.
	Front []netip.Addr `json:"front,omitempty"`
	// Shared are its ports, by the containers'.
	Shared map[int]int `json:"shared,omitempty"`
	// Balancer is the index of the node that central's HAProxy runs on.
	Balancer int `json:"balancer,omitempty"`
}

// Node is a node under a service.
type Node struct {
	Name string     `json:"name"`
	Addr netip.Addr `json:"addr"`
	// Gateway is its address on the network of containers, where it has one.
	Gateway netip.Addr `json:"gateway,omitzero"`
	// Member is nil for a node without one.
	Member *Member `json:"member,omitempty"`
}

// Member is where the database's process of a node is.
type Member struct {
	// Listen is where servers listen; Addr and Ports, by the port there, is where others
	// reach them.
	Listen netip.Addr  `json:"listen"`
	Addr   netip.Addr  `json:"addr"`
	Ports  map[int]int `json:"ports,omitempty"`
	// VIP is the virtual address of its own service.
	VIP netip.Addr `json:"vip,omitzero"`
}

// Place is a node to plan for.
type Place struct {
	Name   string
	Addr   netip.Addr
	Member bool
}

// Networks. Those of links are 10.80 to 10.111, nodes have 10.77.
var (
	// overlayNet is the network over all nodes: containers from .0.1, nodes' own addresses
	// from .64.1, virtual ones from .128.1, that of the service for all members last.
	overlayNet = netip.MustParsePrefix("10.112.0.0/16")
	frontIP    = netip.MustParseAddr("10.112.255.1")
	// bridgeNet is the network of a node's own bridge, the same on every node.
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

// Taken tells whether a program listens on a port of a node's address.
type Taken func(node string, port int) bool

// New plans a service for members with those ports. Ports that conflict with each other or
// with what is taken, where that is not nil, are ErrPort.
func New(s topology.Service, places []Place, ports []int, taken Taken) (Plan, error) {
	p := Plan{Service: s, Ports: withFurther(ports, s.Expose)}
	if len(places) > maxNodes {
		return p, fmt.Errorf("%w: %d, there are addresses for %d", ErrTooMany, len(places), maxNodes)
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
	if err := p.known(); err != nil {
		return p, err
	}
	if s.Enabled() && s.Kind != topology.ServiceIP && len(p.Ports) == 0 {
		return p, advice.With(fmt.Errorf("%w: nothing says which ports there are", ErrPort), "list them as service.expose, the clients' first")
	}
	a := allocator{plan: &p, taken: taken, next: s.Low}
	switch s.Kind {
	case topology.HostPort:
		return p, a.hostPorts()
	case topology.NodePort:
		for _, n := range p.Nodes {
			if n.Member != nil {
				p.Front = append(p.Front, n.Addr)
			}
		}
		return p, a.fronts(p.Nodes)
	case topology.Central:
		p.Balancer = slices.IndexFunc(p.Nodes, func(n Node) bool { return n.Name == s.On || s.On == "" && n.Member != nil })
		if p.Balancer < 0 {
			return p, fmt.Errorf("%w: there is no node %s for the balancer", ErrBalancer, s.On)
		}
		on := p.Nodes[p.Balancer]
		p.Front = []netip.Addr{on.Addr}
		return p, a.fronts([]Node{on})
	case topology.ServiceIP:
		p.Front, p.Shared = []netip.Addr{frontIP}, same(p.Ports)
	}
	return p, nil
}

// member is where the i-th node's member is, its ports still unknown.
func (p *Plan) member(i int, place Place) *Member {
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

// known tells whether what is published is there.
func (p *Plan) known() error {
	for _, c := range slices.Sorted(maps.Keys(p.Service.Publish)) {
		if !slices.Contains(p.Ports, c) {
			return advice.With(fmt.Errorf("%w: nothing in the containers listens on %d, which is to be published as %d", ErrPort, c, p.Service.Publish[c]),
				"their ports are %v", p.Ports)
		}
	}
	return nil
}

// Overlay tells whether containers are on a network over all nodes.
func (p Plan) Overlay() bool {
	return p.Service.Kind == topology.NodePort || p.Service.Kind == topology.ServiceIP
}

// Contained tells whether members are in containers.
func (p Plan) Contained() bool { return p.Overlay() || p.Service.Kind == topology.HostPort }

// Remaps tells whether a member is known by another port than it listens at.
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

// Announces tells whether members are known by other addresses than they listen at.
func (p Plan) Announces() bool {
	return slices.ContainsFunc(p.Nodes, func(n Node) bool { return n.Member != nil && n.Member.Addr != n.Member.Listen })
}

// Contact returns where clients reach the service for all members, for a port of the
// containers; nil where they are told of the members themselves.
func (p Plan) Contact(port int) []string {
	outside, ok := p.Shared[port]
	if !ok || p.Service.Own() {
		return nil
	}
	var all []string
	for _, a := range p.Front {
		all = append(all, net.JoinHostPort(a.String(), strconv.Itoa(outside)))
	}
	return all
}

// NodeOf names the node of the member at an address, with its port or without, "" when
// there is none there.
func (p Plan) NodeOf(address string) string {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	for _, n := range p.Nodes { // several members may be behind different ports of an address
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

// Names are what the service adds to /etc/hosts: its own name and, where members are in
// containers, theirs below it.
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

// Ways are the addresses that lead to members, one a line, for people:
// "10.77.0.1:30000 -> any member's 6379".
func (p Plan) Ways() (lines []string) {
	for _, inside := range p.Ports {
		for _, a := range p.Front {
			lines = append(lines, fmt.Sprintf("%s -> any member's %d", target(a, p.Shared[inside]), inside))
		}
	}
	for _, n := range p.Nodes {
		for _, inside := range p.Ports {
			if m := n.Member; m != nil && m.Addr != m.Listen {
				outside, ok := m.Ports[inside]
				if !ok {
					outside = inside
				}
				lines = append(lines, fmt.Sprintf("%s -> %s's %d", target(m.Addr, outside), n.Name, inside))
			}
		}
	}
	return lines
}

// withFurther are ports and those that they do not hold.
func withFurther(ports, more []int) []int {
	ports = slices.Clone(ports)
	for _, p := range more {
		if !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ports
}

func same(ports []int) map[int]int {
	m := make(map[int]int, len(ports))
	for _, p := range ports {
		m[p] = p
	}
	return m
}
