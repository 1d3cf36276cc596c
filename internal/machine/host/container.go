package host

import (
	"context"
	"net"

	"skerry/internal/kernel/netns"
)

// Published is a host whose servers are reached by others at another address, or behind
// other ports, than those they listen at.
type Published interface {
	Host
	// Listen is the IPv4 address that servers on it bind to. Others reach them by Addr.
	Listen() string
	// Port is the one at Addr that leads to a port at Listen.
	Port(port int) int
}

// Listen is the address that servers on a host bind to.
func Listen(h Host) string {
	if p, ok := h.(Published); ok {
		return p.Listen()
	}
	return h.Addr()
}

// Port is the port at a host's Addr that leads to one that a server on it listens at.
func Port(h Host, port int) int {
	if p, ok := h.(Published); ok {
		return p.Port(port)
	}
	return port
}

// Container is a part of a node: processes in a network namespace of their own, which
// others reach as a service of the lab has it. All else is the node's: directory, control
// group, journal.
type Container struct {
	*Node
	space Space
}

// Space is where a container's processes are in the network.
type Space struct {
	Netns string // path of its network namespace
	// Listen is the address within, Addr the one that others reach it by.
	Listen, Addr string
	// Ports maps ports at Listen to those at Addr that lead there; others are the same.
	Ports map[int]int
}

var (
	_ Published     = (*Container)(nil)
	_ NamespaceHost = (*Container)(nil)
)

// Container returns a container on the node. Its namespace is there already.
func (n *Node) Container(s Space) *Container { return &Container{Node: n, space: s} }

// Addr is the address that others reach the container by.
func (c *Container) Addr() string { return c.space.Addr }

// Netns is the path of the container's network namespace.
func (c *Container) Netns() string { return c.space.Netns }

// Listen is the address that servers in the container bind to.
func (c *Container) Listen() string { return c.space.Listen }

// Port is the one at Addr that leads to a port at Listen.
func (c *Container) Port(port int) int {
	if p, ok := c.space.Ports[port]; ok {
		return p
	}
	return port
}

// Start runs a program in the container.
func (c *Container) Start(ctx context.Context, cmd Command) (Process, error) {
	return c.Node.startIn(ctx, cmd, c.space.Netns)
}

// Exec replaces the calling process by a program in the container, as Node.Exec does.
func (c *Container) Exec(cmd Command) error { return c.Node.execIn(cmd, c.space.Netns) }

// Do calls f with the calling thread in the container's network namespace.
func (c *Container) Do(f func() error) error { return netns.Do(c.space.Netns, f) }

// Dial connects from the container.
func (c *Container) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return DialInside(ctx, c.Do, network, addr)
}
