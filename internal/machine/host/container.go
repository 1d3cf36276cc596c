package host

import (
	"context"
	"net"

	"skerry/internal/kernel/netns"
)

// Published is a host whose servers are reached at another address or port than they listen on.
type Published interface {
	Host
	// Listen is the IPv4 address that servers bind to. Clients use Addr.
	Listen() string
	// Port maps a port at Listen to the port at Addr.
	Port(port int) int
}

// Listen returns the address that servers on a host bind to.
func Listen(h Host) string {
	if p, ok := h.(Published); ok {
		return p.Listen()
	}
	return h.Addr()
}

// Port returns the port at a host's Addr for a server's port.
func Port(h Host, port int) int {
	if p, ok := h.(Published); ok {
		return p.Port(port)
	}
	return port
}

// Container is a part of a node: processes with a network namespace of their own, reachable as a service of the lab.
// Directory, control group and journal are the node's.
type Container struct {
	*Node
	space Space
}

// Space is a container's position in the network.
type Space struct {
	Netns string // path of its network namespace
	// Listen is the address inside the container, Addr the address that clients use.
	Listen, Addr string
	// Ports maps ports at Listen to ports at Addr; other ports are identical.
	Ports map[int]int
}

var (
	_ Published     = (*Container)(nil)
	_ NamespaceHost = (*Container)(nil)
)

// Container returns a container on the node. Its namespace must exist.
func (n *Node) Container(s Space) *Container { return &Container{Node: n, space: s} }

// Addr returns the address that clients use.
func (c *Container) Addr() string { return c.space.Addr }

func (c *Container) Netns() string { return c.space.Netns }

func (c *Container) Listen() string { return c.space.Listen }

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

// Do calls f on the calling thread in the container's network namespace.
func (c *Container) Do(f func() error) error { return netns.Do(c.space.Netns, f) }

func (c *Container) Dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return DialInside(ctx, c.Do, network, addr)
}
